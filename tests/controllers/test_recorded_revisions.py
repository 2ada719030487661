"""ControllerRevisions that kube-controller-manager 1.37 wrote, and what ours writes for the same owners.

`recorded_revisions.json` holds daemon sets and stateful sets as a kube-apiserver served them, each with the revision of
its template: plain ones, and some whose templates use most fields there are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodeward.api.apps_v1 import ControllerRevision, DaemonSet, StatefulSet
from nodeward.api.codec import from_tree
from nodeward.api.core_v1.pod import Pod
from nodeward.apiserver.server import ApiServer
from nodeward.cluster.description import Pool
from nodeward.controllers.controller_revisions import data_of, hash_of_data, template_of
from nodeward.machinery.clock import Clock, VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.store.memory import MemoryStore
from tests.apiserver.running import Caller, running
from tests.controllers.live import live

RECORDED: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("recorded_revisions.json").read_text("utf-8")
)
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
PLAIN = [case for case in RECORDED if case["owner"]["name"].startswith("plain")]


def name_of(case: dict[str, Any]) -> str:
    return str(case["revision"]["name"])


def owner_tree(case: dict[str, Any], **spec: Any) -> dict[str, Any]:
    name, template = case["owner"]["name"], case["owner"]["template"]
    selector = {"matchLabels": {"app": name}}
    return {"metadata": {"name": name}, "spec": {"selector": selector, "template": template, **spec}}


def owner_of(case: dict[str, Any]) -> DaemonSet | StatefulSet:
    tree = owner_tree(case)
    return from_tree(tree, DaemonSet) if case["kind"] == "DaemonSet" else from_tree(tree, StatefulSet)


async def made(caller: Caller, kind: str, body: dict[str, Any]) -> dict[str, Any]:
    """An object of apps/v1, or a pod, as the server answers it."""
    api_version = "v1" if kind == "Pod" else "apps/v1"
    path = f"/{'api' if kind == 'Pod' else 'apis'}/{api_version}/namespaces/default/{kind.lower()}s"
    status, answer = await caller.json("POST", path, {"apiVersion": api_version, "kind": kind, **body})
    assert status == 201, answer
    return dict(answer)


@pytest.mark.parametrize("case", RECORDED, ids=name_of)
def test_the_data_is_byte_for_byte_what_was_recorded(case: dict[str, Any]) -> None:
    assert data_of(owner_of(case)).decode() == case["revision"]["data"]


@pytest.mark.parametrize("case", [case for case in RECORDED if case["kind"] == "StatefulSet"], ids=name_of)
def test_a_stateful_sets_revision_has_the_recorded_name(case: dict[str, Any]) -> None:
    hash_ = hash_of_data(case["revision"]["data"].encode(), case["owner"]["collisionCount"])
    assert f"{case['owner']['name']}-{hash_}" == case["revision"]["name"]
    assert case["revision"]["labels"]["controller.kubernetes.io/hash"] == hash_


def test_a_revision_of_a_release_before_1_34_is_known_for_the_same_template() -> None:
    """Those releases wrote `creationTimestamp: null` into it."""
    case = PLAIN[0]
    data = json.loads(case["revision"]["data"])
    data["spec"]["template"]["metadata"]["creationTimestamp"] = None
    assert template_of(ControllerRevision(data=data)) == owner_of(case).spec.template


@pytest.mark.parametrize("case", RECORDED, ids=name_of)
def test_the_server_gives_back_the_bytes_of_the_data(case: dict[str, Any]) -> None:
    """Who compares bytes reads what it wrote, whatever was done to the object meanwhile."""
    data = case["revision"]["data"]

    async def scenario(clock: Clock) -> None:
        async with running(clock=clock) as server:
            await write_and_renumber(server, case)
            caller = Caller.of(server)
            one = (await caller.send("GET", f"{REVISIONS}/{case['revision']['name']}")).body or b""
            all_ = (await caller.send("GET", REVISIONS)).body or b""
            assert f'"data":{data}' in one.decode()
            assert f'"data":{data}' in all_.decode()
            assert json.loads(one)["revision"] == 7

    async def write_and_renumber(server: ApiServer, case: dict[str, Any]) -> None:
        caller = Caller.of(server)
        head = {"apiVersion": "apps/v1", "kind": "ControllerRevision"}
        meta = {"name": case["revision"]["name"], "labels": case["revision"]["labels"]}
        body = json.dumps({**head, "metadata": meta, "revision": 1, "data": 0})
        sent = body.replace('"data": 0', f'"data": {data}').encode()
        assert (await caller.send("POST", REVISIONS, sent)).status == 201
        merged = await caller.send(
            "PATCH",
            f"{REVISIONS}/{case['revision']['name']}",
            {"revision": 7},
            content_type="application/merge-patch+json",
        )
        assert merged.status == 200

    run_virtual(scenario)


@pytest.mark.parametrize("case", RECORDED, ids=name_of)
def test_our_controllers_write_the_recorded_revision(case: dict[str, Any]) -> None:
    async def scenario(clock: VirtualClock) -> None:
        async with live(clock) as each:
            caller = Caller.of(each.cluster.server)
            spec = {"replicas": 0} if case["kind"] == "StatefulSet" else {}
            await made(caller, case["kind"], owner_tree(case, **spec))
            await each.pass_time(10)
            answer = (await caller.send("GET", REVISIONS)).body or b""
            assert f'"data":{case["revision"]["data"]}' in answer.decode()
            (revision,) = json.loads(answer)["items"]
            if case["kind"] == "StatefulSet":
                assert revision["metadata"]["name"] == case["revision"]["name"]
                assert revision["metadata"]["labels"] == case["revision"]["labels"]

    run_virtual(scenario)


@pytest.mark.parametrize("case", PLAIN, ids=name_of)
def test_a_cluster_that_is_taken_over_keeps_its_revisions_and_pods(case: dict[str, Any]) -> None:
    store, kind, recorded = MemoryStore(), case["kind"], case["revision"]

    async def scenario(clock: VirtualClock) -> None:
        async with running(store=store, clock=clock) as server:
            caller = Caller.of(server)
            spec = {"replicas": 1} if kind == "StatefulSet" else {}
            owner = (await made(caller, kind, owner_tree(case, **spec)))["metadata"]
            reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner["name"], "uid": owner["uid"]}
            owned = {"ownerReferences": [{**reference, "controller": True, "blockOwnerDeletion": True}]}
            meta = {key: recorded[key] for key in ("name", "labels", "annotations")}
            revision = {"metadata": {**meta, **owned}, "revision": 1, "data": json.loads(recorded["data"])}
            await made(caller, "ControllerRevision", revision)
            pod = (await made(caller, "Pod", pod_tree(case, owned)))["metadata"]
        async with live(clock, Pool(name="n"), store=store) as each:
            await each.pass_time(120)
            revisions = (await each.client.list(ControllerRevision)).items
            assert [(found.metadata.name, found.revision) for found in revisions] == [(recorded["name"], 1)]
            pods = (await each.client.list(Pod, "default")).items
            assert [(found.metadata.name, found.metadata.uid) for found in pods] == [
                (pod["name"], pod["uid"])
            ]
            assert pods[0].status.phase == "Running"

    run_virtual(scenario)


def pod_tree(case: dict[str, Any], owned: dict[str, Any]) -> dict[str, Any]:
    """The pod that the owner has on node n-0, as kube-controller-manager makes it."""
    name, recorded = case["owner"]["name"], case["revision"]
    labels = {**case["owner"]["template"]["metadata"]["labels"], "controller-revision-hash": recorded["name"]}
    spec = {**case["owner"]["template"]["spec"], "nodeName": "n-0"}
    if case["kind"] == "StatefulSet":
        own = {"statefulset.kubernetes.io/pod-name": f"{name}-0", "apps.kubernetes.io/pod-index": "0"}
        spec |= {"hostname": f"{name}-0"}
        return {"metadata": {"name": f"{name}-0", "labels": {**labels, **own}, **owned}, "spec": spec}
    labels["controller-revision-hash"] = recorded["labels"]["controller-revision-hash"]
    return {"metadata": {"name": f"{name}-x", "labels": labels, **owned}, "spec": spec}
