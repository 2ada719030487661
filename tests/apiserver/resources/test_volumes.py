"""Volumes and claims begin as Pending, whatever their makers say."""

from __future__ import annotations

import asyncio
from typing import Any

from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.apiserver.running import Caller, running

VOLUMES = "/api/v1/persistentvolumes"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
WANTED = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def volume(**status: str) -> dict[str, Any]:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}
    return {"metadata": {"name": "v"}, "spec": spec, "status": status}


def test_a_new_claim_is_pending_and_is_shown_so() -> None:
    async def main() -> None:
        async with running() as server:
            caller = Caller.of(server)
            claim = {"metadata": {"name": "c"}, "spec": WANTED, "status": {"phase": "Bound"}}
            code, made = await caller.json("POST", CLAIMS, claim)
            assert (code, made["status"]) == (201, {"phase": "Pending"})
            _, table = await caller.json("GET", CLAIMS, accept=TABLE)
            assert table["rows"][0]["cells"][:2] == ["c", "Pending"]

    asyncio.run(main())


def test_a_volume_remembers_since_when_it_is_in_its_phase() -> None:
    async def main(clock: VirtualClock) -> None:
        async with running(clock=clock) as server:
            caller = Caller.of(server)
            _, made = await caller.json("POST", VOLUMES, volume(phase="Bound"))
            born = made["metadata"]["creationTimestamp"]
            assert made["status"] == {"phase": "Pending", "lastPhaseTransitionTime": born}
            for phase, seconds in (("Available", 5), ("Available", 5), ("Bound", 5)):
                await clock.sleep(seconds)
                before = made["status"]
                told = {**made, "status": {"phase": phase}}
                code, made = await caller.json("PUT", f"{VOLUMES}/v/status", told)
                assert code == 200
                since = made["status"]["lastPhaseTransitionTime"]
                assert (since == before["lastPhaseTransitionTime"]) == (phase == before["phase"])
                assert made["status"]["phase"] == phase

    run_virtual(main)
