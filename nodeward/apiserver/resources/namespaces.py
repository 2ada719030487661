"""The strategy of namespaces: created with a finalizer; a deleted one is Terminating until it has been emptied."""

from __future__ import annotations

from typing import Any, ClassVar

from nodeward.api.core_v1.cluster import Namespace
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.resources.strategy import STATUS_PATHS, Strategy, UpdateMode

FINALIZER = "kubernetes"
NAME_LABEL = "kubernetes.io/metadata.name"


class Namespaces(Strategy):
    answers_deleted: ClassVar[bool] = True
    names_preconditions_shortly: ClassVar[bool] = True
    selectable: ClassVar[tuple[str, ...]] = ("status.phase",)

    def update_modes(self) -> tuple[UpdateMode, ...]:
        finalize = UpdateMode("finalize", self.prepare_finalize, self.validate_update, STATUS_PATHS)
        return (*super().update_modes(), finalize)

    def prepare_create(self, obj: Namespace, env: Environment) -> None:
        obj.status = type(obj.status)(phase="Active")
        obj.metadata.labels[NAME_LABEL] = obj.metadata.name  # which may have been generated just now
        if FINALIZER not in obj.spec.finalizers:
            obj.spec.finalizers = [*obj.spec.finalizers, FINALIZER]

    def prepare_update(self, new: Namespace, old: Namespace, env: Environment) -> None:
        new.spec.finalizers = old.spec.finalizers
        new.status = old.status

    def prepare_finalize(self, new: Namespace, old: Namespace, env: Environment) -> None:
        """Prepare PUT .../finalize, the one way to change spec.finalizers."""
        new.status = old.status

    def begin_delete(self, obj: Namespace, env: Environment) -> None:
        obj.status.phase = "Terminating"
        obj.metadata.deletion_grace_period_seconds = None  # emptying takes as long as it takes

    def has_own_finalizers(self, obj: Any) -> bool:
        return bool(obj.spec.finalizers)
