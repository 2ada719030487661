"""Strategies of persistent volumes and claims: the status in a create is dropped, both begin as Pending.

Binding one to the other is a controller's work and is not done here.
"""

from __future__ import annotations

from typing import ClassVar, Final

from nodeward.api.context import Context
from nodeward.api.core_v1.references import TypedLocalObjectReference, TypedObjectReference
from nodeward.api.core_v1.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeStatus,
)
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.resources.strategy import Strategy

PENDING = "Pending"
#: Kinds `dataSource` may name: kind and group.
_PLAIN_SOURCES: Final = (("PersistentVolumeClaim", ""), ("VolumeSnapshot", "snapshot.storage.k8s.io"))


class PersistentVolumes(Strategy):
    answers_deleted: ClassVar[bool] = True

    def prepare_create(self, obj: PersistentVolume, env: Environment) -> None:
        super().prepare_create(obj, env)
        obj.status = PersistentVolumeStatus(phase=PENDING, last_phase_transition_time=env.now())

    def prepare_status(self, new: PersistentVolume, old: PersistentVolume, env: Environment) -> None:
        """Keep the time of the last phase change where the client does not set it."""
        super().prepare_status(new, old, env)
        said, known = new.status.last_phase_transition_time, old.status.last_phase_transition_time
        if new.status.phase == old.status.phase:
            new.status.last_phase_transition_time = said or known
        elif said is None or said == known:
            new.status.last_phase_transition_time = env.now()


class PersistentVolumeClaims(Strategy):
    """`dataSource` and `dataSourceRef` are filled in from each other."""

    answers_deleted: ClassVar[bool] = True

    def prepare_create(self, obj: PersistentVolumeClaim, env: Environment) -> None:
        super().prepare_create(obj, env)
        obj.status = PersistentVolumeClaimStatus(phase=PENDING)
        _settle_data_source(obj.spec, None, env.context)

    def prepare_update(
        self, new: PersistentVolumeClaim, old: PersistentVolumeClaim, env: Environment
    ) -> None:
        super().prepare_update(new, old, env)
        _settle_data_source(new.spec, old.spec, env.context)


def _settle_data_source(
    spec: PersistentVolumeClaimSpec, old: PersistentVolumeClaimSpec | None, ctx: Context
) -> None:
    """Reduce `dataSource` to a claim or a snapshot; `dataSourceRef` may name any kind.

    A reference into another namespace is dropped while its feature is off. A claim that has a source already keeps it.
    """
    old = old or PersistentVolumeClaimSpec()
    source, ref = spec.data_source, spec.data_source_ref
    crosses = ref is not None and bool(ref.namespace) and old.data_source_ref is None
    if crosses and not ctx.on("CrossNamespaceVolumeDataSource"):
        ref = spec.data_source_ref = None
    has_source = old.data_source is not None or old.data_source_ref is not None
    if ref is None and not has_source and not _is_plain(source):
        source = spec.data_source = None
    if source is not None and ref is None:
        spec.data_source_ref = TypedObjectReference(
            api_group=source.api_group, kind=source.kind, name=source.name
        )
    elif ref is not None and source is None and not ref.namespace:
        spec.data_source = TypedLocalObjectReference(api_group=ref.api_group, kind=ref.kind, name=ref.name)


def _is_plain(source: TypedLocalObjectReference | None) -> bool:
    return source is not None and (source.kind, source.api_group or "") in _PLAIN_SOURCES
