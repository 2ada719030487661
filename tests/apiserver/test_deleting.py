"""DELETE: what it is refused with, what it warns of, and what it leaves alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.apiserver.running import Caller, running

DEFAULT = "/api/v1/namespaces/default"
PODS = f"{DEFAULT}/pods"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
SPEC: dict[str, Any] = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}


def play(story: Callable[[Caller], Awaitable[None]]) -> None:
    async def told() -> None:
        async with running() as server:
            await story(Caller.of(server))

    asyncio.run(told())


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_a_delete_meant_for_another_object_says_which_one_was_found(field: str) -> None:
    async def story(caller: Caller) -> None:
        _, made = await caller.json("POST", PODS, {"metadata": {"name": "p"}, "spec": SPEC})
        body = {"preconditions": {field: "other"}}
        status, answer = await caller.json("DELETE", f"{PODS}/p", body)
        name = {"uid": "UID", "resourceVersion": "ResourceVersion"}[field]
        assert (status, answer["reason"]) == (409, "Conflict")
        assert answer["message"].startswith(
            f'Operation cannot be fulfilled on Pod "p": the {name} in the precondition (other) does not match '
            f"the {name} in record ({made['metadata'][field]}). The object might have been "
        )
        status, answer = await caller.json("DELETE", "/api/v1/namespaces/default", body)
        assert status == 409
        assert answer["message"].startswith(
            'Operation cannot be fulfilled on namespaces "default": Precondition failed: '
            f"{name} in precondition: other, {name} in object meta: "
        )

    play(story)


@pytest.mark.parametrize("target", [f"{JOBS}/j", JOBS])
def test_a_delete_of_jobs_that_does_not_say_what_becomes_of_pods_is_warned_of(target: str) -> None:
    async def story(caller: Caller) -> None:
        job = {"metadata": {"name": "j"}, "spec": {"template": {"spec": SPEC}}}
        for policy, warned in (("", True), ("?propagationPolicy=Background", False)):
            await caller.send("POST", JOBS, job)
            response = await caller.send("DELETE", target + policy)
            assert response.status == 200
            assert ("child pods are preserved by default" in response.headers.get("warning", "")) is warned

    play(story)


@pytest.mark.parametrize("policy", ["Foreground", "Orphan"])
def test_an_event_has_no_dependents_to_wait_for(policy: str) -> None:
    async def story(caller: Caller) -> None:
        event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default", "name": "p"}}
        assert (await caller.send("POST", f"{DEFAULT}/events", event)).status == 201
        status, answer = await caller.json("DELETE", f"{DEFAULT}/events/e?propagationPolicy={policy}")
        assert (status, answer["status"]) == (200, "Success")
        assert (await caller.send("GET", f"{DEFAULT}/events/e")).status == 404

    play(story)


def test_collections_deleted_at_the_same_time_do_not_miss_each_others_objects() -> None:
    async def story(caller: Caller) -> None:
        for number in range(20):
            await caller.send("POST", f"{DEFAULT}/configmaps", {"metadata": {"name": f"c{number}"}})
        answers = await asyncio.gather(
            *(caller.send("DELETE", f"{DEFAULT}/configmaps") for _ in range(3)),
            *(caller.send("DELETE", f"{DEFAULT}/configmaps/c{number}") for number in range(0, 20, 3)),
        )
        assert [answer.status for answer in answers[:3]] == [200, 200, 200]

    play(story)


def test_no_grace_is_too_long_to_be_counted() -> None:
    async def story(caller: Caller) -> None:
        await caller.send("POST", PODS, {"metadata": {"name": "p"}, "spec": {**SPEC, "nodeName": "n"}})
        status, answer = await caller.json("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 2**63 - 1})
        assert status == 200
        assert answer["metadata"]["deletionTimestamp"] == "9999-12-31T23:59:59Z"
        status, answer = await caller.json("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 30})
        assert (status, answer["metadata"]["deletionGracePeriodSeconds"]) == (200, 1)
        assert (await caller.send("DELETE", f"{PODS}/p?gracePeriodSeconds=0")).status == 200
        assert (await caller.send("GET", f"{PODS}/p")).status == 404

    play(story)


def test_delete_options_that_contradict_each_other_are_invalid() -> None:
    async def story(caller: Caller) -> None:
        status, answer = await caller.json(
            "DELETE", f"{PODS}/p", {"propagationPolicy": "Orphan", "orphanDependents": True}
        )
        assert status == 422
        assert answer["message"].startswith('DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: ')

    play(story)


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, 200), ({"orphanDependents": False}, 202), ({"propagationPolicy": "Background"}, 200)],
)
def test_a_delete_that_is_not_over_is_accepted(options: dict[str, Any], expected: int) -> None:
    async def story(caller: Caller) -> None:
        held = {"metadata": {"name": "c", "finalizers": ["example.com/f"]}}
        await caller.send("POST", f"{DEFAULT}/configmaps", held)
        assert (await caller.send("DELETE", f"{DEFAULT}/configmaps/c", options)).status == expected

    play(story)


def test_the_largest_generation_survives_a_delete_that_waits_for_a_finalizer() -> None:
    async def story(caller: Caller) -> None:
        maps, largest = f"{DEFAULT}/configmaps", 2**63 - 1
        metadata = {"name": "m", "generation": largest, "finalizers": ["example.com/hold"]}
        status, _ = await caller.json("POST", maps, {"metadata": metadata})
        assert status == 201
        await caller.send("DELETE", f"{maps}/m")
        status, marked = await caller.json("GET", f"{maps}/m")
        assert (status, marked["metadata"]["generation"]) == (200, largest)
        status, _ = await caller.json("PUT", f"{maps}/m", {"metadata": metadata | {"finalizers": []}})
        assert status == 200
        status, _ = await caller.json("GET", f"{maps}/m")
        assert status == 404

    play(story)
