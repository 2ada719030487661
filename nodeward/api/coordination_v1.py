"""Leases: coordination.k8s.io/v1."""

from __future__ import annotations

from nodeward.api.fields import Int32, KubeStruct, MicroTime, nested
from nodeward.api.meta import KubeObject


class LeaseSpec(KubeStruct):
    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    acquire_time: MicroTime | None = None
    renew_time: MicroTime | None = None
    lease_transitions: Int32 | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(KubeObject):
    spec: LeaseSpec = nested(LeaseSpec)
