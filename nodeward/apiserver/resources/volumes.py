"""Volumes and claims: what they are created with says nothing of their state, and nobody has looked at them yet.

Both begin as Pending. Who binds one to the other says so in their statuses; that is not done here.
"""

from __future__ import annotations

from typing import ClassVar

from nodeward.api.core_v1.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeStatus,
)
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.resources.strategy import Strategy

PENDING = "Pending"


class PersistentVolumes(Strategy):
    answers_deleted: ClassVar[bool] = True

    def prepare_create(self, obj: PersistentVolume, env: Environment) -> None:
        obj.status = PersistentVolumeStatus(phase=PENDING, last_phase_transition_time=env.now())

    def prepare_status(self, new: PersistentVolume, old: PersistentVolume, env: Environment) -> None:
        """The time of a change of phase is kept for whoever does not say it."""
        super().prepare_status(new, old, env)
        said, known = new.status.last_phase_transition_time, old.status.last_phase_transition_time
        if new.status.phase == old.status.phase:
            new.status.last_phase_transition_time = said or known
        elif said is None or said == known:
            new.status.last_phase_transition_time = env.now()


class PersistentVolumeClaims(Strategy):
    answers_deleted: ClassVar[bool] = True

    def prepare_create(self, obj: PersistentVolumeClaim, env: Environment) -> None:
        obj.status = PersistentVolumeClaimStatus(phase=PENDING)
