"""Bytes in the store that are no object: what is broken is named, everything else is served."""

from __future__ import annotations

import asyncio
import json

import pytest

from nodeward.apiserver.server import ApiServer
from nodeward.machinery.clock import RealClock, SeededChance
from nodeward.store.memory import MemoryStore
from tests.apiserver.running import Caller, settings

MAPS = "/api/v1/namespaces/default/configmaps"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
GOOD = b'{"metadata":{"name":"good","namespace":"default","uid":"1"},"data":{"a":"b"}}'


def role(name: str, rules: object) -> bytes:
    return json.dumps(
        {"metadata": {"name": name, "uid": name}, "rules": rules}, separators=(",", ":")
    ).encode()


BROKEN = {
    "/registry/configmaps/default/garbage": b"\x00\xff not JSON at all",
    "/registry/configmaps/default/cut": GOOD[:40],
    "/registry/configmaps/default/flipped": GOOD.replace(b'"good"', b'"gxod"'),
    "/registry/configmaps/default/list": b"[]",
    "/registry/configmaps/default/empty": b"",
    "/registry/rbac.authorization.k8s.io/clusterroles/nonsense": b"{",
}


def test_broken_objects_are_named_and_left_out_and_all_others_are_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        store = MemoryStore()
        await store.open()
        for key, value in BROKEN.items():
            assert (await store.put(key, value, expected=0)).succeeded
        await store.put("/registry/configmaps/default/good", GOOD, expected=0)
        # JSON, and of the right name, but not what a role looks like.
        shapeless = role("shapeless", "everything")
        await store.put("/registry/rbac.authorization.k8s.io/clusterroles/shapeless", shapeless, expected=0)
        server = ApiServer(store, RealClock(), SeededChance(7), settings(), owns_store=False)
        await server.start()
        try:
            caller = Caller.of(server)
            code, found = await caller.json("GET", MAPS)
            assert code == 200
            assert [each["metadata"]["name"] for each in found["items"]] == ["good"]
            assert (await caller.json("GET", f"{MAPS}/garbage"))[0] == 404
            code, answer = await caller.json("POST", MAPS, {"metadata": {"name": "new"}})
            assert code == 201, answer
            code, roles = await caller.json("GET", ROLES)
            assert code == 200
            assert "nonsense" not in {each["metadata"]["name"] for each in roles["items"]}
            page = (await caller.send("GET", "/metrics")).body or b""
            assert f"nodeward_storage_broken_objects {len(BROKEN)}.0".encode() in page
            for key, value in BROKEN.items():
                left = await store.get(key)
                assert left is not None, "what is broken stays where it is, for whoever can mend it"
                assert left.value == value
        finally:
            await server.stop()
            await store.close()

    asyncio.run(main())
    said = caplog.text
    assert all(key in said for key in BROKEN)
    assert "a stored ClusterRole cannot be decoded and has no effect" in said
