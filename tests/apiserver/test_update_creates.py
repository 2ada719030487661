"""PUT and apply of what is not there make it: for who may create, once, and not in place of something else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from nodeward.apiserver.auth.user import AUTHENTICATED, User
from nodeward.apiserver.server import ApiServer
from tests.apiserver.running import Caller, running

APPLY = "application/apply-patch+yaml"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
MAPS = "/api/v1/namespaces/default/configmaps"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"


def play(story: Callable[[ApiServer, Caller], Awaitable[None]]) -> None:
    async def told() -> None:
        async with running() as server:
            await story(server, Caller.of(server))

    asyncio.run(told())


def config(name: str, manager: str = "a", **meta: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **meta},
        "data": {manager: "1"},
    }


async def allow(admin: Caller, *verbs: str) -> None:
    """Let user `u` do this to leases and config maps."""
    rules = [
        {"apiGroups": ["coordination.k8s.io", ""], "resources": ["leases", "configmaps"], "verbs": verbs}
    ]
    role = {"metadata": {"name": "r"}, "rules": rules}
    assert (await admin.send("PUT", f"{ROLES}/r", role)).status in (200, 201)
    binding = {
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "u"}],
    }
    assert (await admin.send("PUT", f"{BINDINGS}/b", binding)).status in (200, 201)


def test_who_may_only_update_or_patch_creates_nothing() -> None:
    async def story(server: ApiServer, admin: Caller) -> None:
        await allow(admin, "update", "patch")
        user = Caller.of(server, User("u", "", (AUTHENTICATED,), {}))
        status, answer = await user.json("PUT", f"{LEASES}/l", {"metadata": {"name": "l"}})
        assert (status, answer["reason"]) == (403, "Forbidden")
        assert 'User "u" cannot create resource "leases"' in answer["message"]
        target = f"{MAPS}/c?fieldManager=m"
        status, answer = await user.json("PATCH", target, config("c"), content_type=APPLY)
        assert (status, answer["reason"]) == (403, "Forbidden")
        assert (await admin.send("GET", f"{LEASES}/l")).status == 404
        assert (await admin.send("GET", f"{MAPS}/c")).status == 404
        await allow(admin, "update", "patch", "create")
        assert (await user.send("PUT", f"{LEASES}/l", {"metadata": {"name": "l"}})).status == 201
        assert (await user.send("PATCH", target, config("c"), content_type=APPLY)).status == 201

    play(story)


@pytest.mark.parametrize("count", [2, 5])
def test_applies_that_race_to_create_all_succeed(count: int) -> None:
    async def story(server: ApiServer, admin: Caller) -> None:
        answers = await asyncio.gather(
            *(
                admin.send("PATCH", f"{MAPS}/c?fieldManager=m{n}", config("c", f"k{n}"), content_type=APPLY)
                for n in range(count)
            )
        )
        assert sorted(answer.status for answer in answers) == [200] * (count - 1) + [201]
        _, found = await admin.json("GET", f"{MAPS}/c")
        assert sorted(found["data"]) == [f"k{n}" for n in range(count)]

    play(story)


def test_a_put_that_creates_ignores_the_version_but_not_the_uid_it_was_meant_for() -> None:
    async def story(server: ApiServer, admin: Caller) -> None:
        gone = {"metadata": {"name": "l", "resourceVersion": "3", "uid": "an-old-one"}}
        status, answer = await admin.json("PUT", f"{LEASES}/l", gone)
        assert (status, answer["reason"]) == (409, "Conflict")
        assert answer["message"].endswith("UID in precondition: an-old-one, UID in object meta: ")
        status, answer = await admin.json(
            "PATCH", f"{MAPS}/c?fieldManager=m", config("c", uid="an-old-one"), content_type=APPLY
        )
        assert (status, answer["reason"]) == (409, "Conflict")
        assert "specified uid an-old-one, and no existing object was found" in answer["message"]
        del gone["metadata"]["uid"]
        assert (await admin.send("PUT", f"{LEASES}/l", gone)).status == 201

    play(story)


def test_a_deletion_timestamp_is_neither_set_nor_changed_by_an_update() -> None:
    async def story(server: ApiServer, admin: Caller) -> None:
        await admin.send("POST", MAPS, config("c", finalizers=["example.com/f"]))
        stamp = {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}
        merge = "application/merge-patch+json"
        status, _ = await admin.json("PATCH", f"{MAPS}/c", stamp, content_type=merge)
        assert status == 422
        _, marked = await admin.json("DELETE", f"{MAPS}/c")
        status, answer = await admin.json("PATCH", f"{MAPS}/c", stamp, content_type=merge)
        assert status == 200
        assert answer["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]

    play(story)


def test_version_zero_is_no_version() -> None:
    async def story(server: ApiServer, admin: Caller) -> None:
        await admin.send("POST", MAPS, config("c"))
        await admin.send("POST", LEASES, {"metadata": {"name": "l"}})
        body = config("c", "b", resourceVersion="0")
        assert (await admin.send("PUT", f"{MAPS}/c", body)).status == 200
        lease = {"metadata": {"name": "l", "resourceVersion": "0"}}
        status, answer = await admin.json("PUT", f"{LEASES}/l", lease)
        assert (status, answer["details"]["causes"][0]["field"]) == (422, "metadata.resourceVersion")

    play(story)
