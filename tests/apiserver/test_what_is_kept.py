"""What of a sent object is kept, in which form, and what is dropped: row by row as a real server answers."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import pytest

from nodeward.store.memory import MemoryStore
from tests.apiserver.running import Caller, running, settings

CORE, SPACE = "/api/v1", "/api/v1/namespaces/default"
NOT_NEGATIVE = "must be greater than or equal to 0"
_POD = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_SLICE = {
    "driver": "dra.example.com",
    "nodeName": "n",
    "pool": {"name": "p", "resourceSliceCount": 1, "generation": 1},
}
GONE = object()
EVENT = {
    "regarding": {"kind": "Pod", "name": "x", "namespace": "default"},
    "eventTime": "2026-01-02T03:04:05.123456Z",
    "reportingController": "x.io/c",
    "reportingInstance": "i",
    "action": "A",
    "reason": "R",
    "type": "Normal",
}


class Row(NamedTuple):
    """`expected`: dotted paths of the answer and what stands there, GONE for nothing."""

    promise: str
    path: str
    sent: dict[str, Any]
    expected: dict[str, Any]
    gates: str = ""


def _at(tree: Any, path: str) -> Any:
    for step in path.split("."):
        if isinstance(tree, list):
            if int(step) >= len(tree):
                return GONE
            tree = tree[int(step)]
        elif step in (tree or {}):
            tree = tree[step]
        else:
            return GONE
    return tree


DERIVED = [{"name": "example.com/a", "expression": "1"}]
RESOURCE = "/apis/resource.k8s.io/v1"

ROWS = [
    # two ways to write one value
    Row(
        "stringData becomes data and wins over it",
        f"{SPACE}/secrets",
        {"data": {"a": "b2xk", "b": "Yg=="}, "stringData": {"a": "new"}},
        {"data": {"a": "bmV3", "b": "Yg=="}, "stringData": GONE},
    ),
    Row(
        "stringData counts for what a type of secret needs",
        f"{SPACE}/secrets",
        {"type": "kubernetes.io/basic-auth", "stringData": {"username": "u"}},
        {"data": {"username": "dQ=="}},
    ),
    Row(
        "podCIDR fills podCIDRs",
        f"{CORE}/nodes",
        {"spec": {"podCIDR": "10.2.0.0/24"}},
        {"spec.podCIDRs": ["10.2.0.0/24"]},
    ),
    Row(
        "podCIDRs fills podCIDR",
        f"{CORE}/nodes",
        {"spec": {"podCIDRs": ["10.2.0.0/24", "fd00::/64"]}},
        {"spec.podCIDR": "10.2.0.0/24"},
    ),
    Row(
        "podCIDR wins where it is not the first of podCIDRs",
        f"{CORE}/nodes",
        {"spec": {"podCIDR": "10.3.0.0/24", "podCIDRs": ["10.2.0.0/24", "fd00::/64"]}},
        {"spec.podCIDRs": ["10.3.0.0/24"]},
    ),
    Row(
        "a podCIDR that is none is refused as the first of podCIDRs",
        f"{CORE}/nodes",
        {"spec": {"podCIDR": "bad"}},
        {"code": 422, "details.causes.0.field": "spec.podCIDRs[0]"},
    ),
    Row(
        "a claim's dataSource fills dataSourceRef",
        f"{SPACE}/persistentvolumeclaims",
        {"spec": {**_CLAIM, "dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}}},
        {"spec.dataSourceRef": {"apiGroup": None, "kind": "PersistentVolumeClaim", "name": "x"}},
    ),
    Row(
        "a claim's dataSourceRef fills dataSource",
        f"{SPACE}/persistentvolumeclaims",
        {"spec": {**_CLAIM, "dataSourceRef": {"apiGroup": "a.b", "kind": "Thing", "name": "x"}}},
        {"spec.dataSource": {"apiGroup": "a.b", "kind": "Thing", "name": "x"}},
    ),
    Row(
        "dataSource takes no kind but claims and snapshots",
        f"{SPACE}/persistentvolumeclaims",
        {"spec": {**_CLAIM, "dataSource": {"apiGroup": "a.b", "kind": "Thing", "name": "x"}}},
        {"spec.dataSource": GONE, "spec.dataSourceRef": GONE},
    ),
    # metadata
    Row(
        "what stands in no namespace loses the one it was sent with",
        f"{CORE}/nodes",
        {"metadata": {"namespace": "default"}},
        {"code": GONE, "metadata.namespace": GONE},
    ),
    Row(
        "a generation is kept where the server counts none",
        f"{SPACE}/configmaps",
        {"metadata": {"generation": 5}},
        {"metadata.generation": 5},
    ),
    Row(
        "a negative generation is refused",
        f"{SPACE}/configmaps",
        {"metadata": {"generation": -1}},
        {
            "code": 422,
            "details.causes.0.message": f"Invalid value: -1: {NOT_NEGATIVE}",
            "details.causes.0.field": "metadata.generation",
        },
    ),
    Row(
        "a generation the server counts starts at one",
        f"{RESOURCE}/deviceclasses",
        {"metadata": {"generation": 5}, "spec": {}},
        {"metadata.generation": 1},
    ),
    # required lists
    Row(
        "required lists left out are null",
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        {"addressType": "IPv4"},
        {"endpoints": None, "ports": None},
    ),
    Row("an empty required list is null", f"{SPACE}/limitranges", {"spec": {}}, {"spec.limits": None}),
    Row(
        "a required list inside a list is null",
        "/apis/storage.k8s.io/v1/csinodes",
        {"spec": {"drivers": [{"name": "csi.x.io", "nodeID": "n"}]}},
        {"spec.drivers.0.topologyKeys": None},
    ),
    Row("a null in a map is empty", f"{SPACE}/configmaps", {"data": {"k": None}}, {"data": {"k": ""}}),
    Row("a role without rules", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {}, {"rules": None}),
    # less is kept than was sent
    Row(
        "of an account's secrets the name is kept",
        f"{SPACE}/serviceaccounts",
        {"secrets": [{"name": "a", "kind": "Secret", "uid": "u"}]},
        {"secrets": [{"name": "a"}]},
    ),
    Row(
        "deprecatedTopology is not written",
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        {
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.2.3"], "deprecatedTopology": {"kubernetes.io/hostname": "n"}}],
        },
        {"endpoints.0.deprecatedTopology": GONE, "endpoints.0.nodeName": GONE},
    ),
    Row(
        "a service that is only a name has no traffic policy",
        f"{SPACE}/services",
        {"spec": {"type": "ExternalName", "externalName": "a.b", "internalTrafficPolicy": "Cluster"}},
        {"spec.internalTrafficPolicy": GONE},
    ),
    Row(
        "a headless service without a selector is dual-stack",
        f"{SPACE}/services",
        {"spec": {"clusterIP": "None", "ports": [{"port": 80}]}},
        {"spec.ipFamilies": ["IPv4", "IPv6"], "spec.ipFamilyPolicy": "RequireDualStack"},
    ),
    # who owns what
    Row(
        "a required list that was sent empty is owned",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        {"rules": []},
        {"rules": None, "metadata.managedFields.0.fieldsV1": {"f:rules": {}}},
    ),
    Row(
        "a required list nobody spoke of is not owned",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        {},
        {"rules": None, "metadata.managedFields": GONE},
    ),
    Row(
        "nobody owns what is wiped from a new object",
        f"{SPACE}/secrets",
        {"metadata": {"deletionGracePeriodSeconds": 5, "selfLink": "/x"}},
        {"metadata.managedFields.0.fieldsV1": {"f:type": {}}},
    ),
    Row(
        "an event is owned in the form in which it was written",
        "/apis/events.k8s.io/v1/namespaces/default/events",
        EVENT,
        {
            "metadata.managedFields.0.apiVersion": "events.k8s.io/v1",
            "metadata.managedFields.0.fieldsV1.f:reportingController": {},
        },
    ),
    Row(
        "an event of the newer form is held to its rules",
        "/apis/events.k8s.io/v1/namespaces/default/events",
        {**EVENT, "type": "Odd", "deprecatedCount": 1},
        {"code": 422, "details.causes.0.field": "type", "details.causes.1.field": "count"},
    ),
    # times
    Row(
        "a time is kept in UTC, to the second",
        f"{SPACE}/events",
        {
            "involvedObject": {"namespace": "default"},
            "firstTimestamp": "2026-01-02T03:04:05.9+02:00",
        },
        {"firstTimestamp": "2026-01-02T01:04:05Z"},
    ),
    Row(
        "a lease's time has six digits of a second",
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        {"spec": {"renewTime": "2026-01-02T03:04:05Z"}},
        {
            "code": 400,
            "message": 'Lease in version "v1" cannot be handled as a Lease: parsing time "2026-01-02T03:04:05Z" as '
            '"2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"',
        },
    ),
    # refusals
    Row(
        "devices of others are for namespaces that are marked",
        f"{RESOURCE}/namespaces/default/resourceclaims",
        {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "g", "adminAccess": True}}]}}},
        {"code": 422, "details.causes.0.field": "spec.devices.requests[0].adminAccess"},
    ),
    Row(
        "a fault is reported once, and what upstream finds late is last",
        f"{RESOURCE}/namespaces/default/resourceclaims",
        {
            "spec": {
                "devices": {
                    "requests": [
                        {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "A B"}]},
                        {"name": "A B", "exactly": {"deviceClassName": "g"}},
                    ]
                }
            }
        },
        {
            "details.causes.0.field": "spec.devices.requests[1].name",
            "details.causes.1.field": "spec.devices.requests[0].firstAvailable[0].deviceClassName",
            "details.causes.2": GONE,
        },
    ),
    Row(
        "a struct that is refused is shown with the names of Go",
        "/apis/batch/v1/namespaces/default/jobs",
        {"spec": {"template": {"spec": _POD}, "successPolicy": {"rules": [{"succeededCount": 1}]}}},
        {
            "details.causes.0.message": 'Invalid value: {"Rules":[{"SucceededIndexes":null,"SucceededCount":1}]}: '
            "requires indexed completion mode"
        },
    ),
    Row(
        "labels that are refused are shown in order",
        "/apis/batch/v1/namespaces/default/jobs",
        {
            "spec": {
                "manualSelector": True,
                "selector": {"matchLabels": {"z": "1", "a": "2"}},
                "template": {"metadata": {"labels": {"y": "1", "a": "b"}}, "spec": _POD},
            }
        },
        {
            "details.causes.0.message": 'Invalid value: {"a":"b","y":"1"}: '
            "`selector` does not match template `labels`"
        },
    ),
    Row(
        "a port that is refused is shown in the order of its fields",
        f"{SPACE}/services",
        {"spec": {"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]}},
        {
            "details.causes.0.message": 'Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,'
            '"TargetPort":0,"NodePort":0}'
        },
    ),
    # order of checks
    Row(
        "a budget's metadata is looked at when its spec is sound",
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        {"metadata": {"labels": {"a b": ""}}, "spec": {"minAvailable": -1}},
        {"code": 422, "details.causes.0.field": "spec.minAvailable", "details.causes.1": GONE},
    ),
    # gates that are off
    Row(
        "a lease's strategy behind its gate is dropped, right or wrong",
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        {"spec": {"strategy": "Wrong", "preferredHolder": "x"}},
        {"spec": {}},
    ),
    Row(
        "a lease's strategy with the gate on is checked",
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        {"spec": {"strategy": "Wrong"}},
        {"code": 422},
        gates="CoordinatedLeaderElection=true",
    ),
    Row(
        "a job's scheduling behind its gate is dropped",
        "/apis/batch/v1/namespaces/default/jobs",
        {"spec": {"template": {"spec": _POD}, "scheduling": {"schedulingPolicy": {}}}},
        {"spec.scheduling": GONE, "spec.parallelism": 1},
    ),
    Row(
        "derived attributes behind their gate are dropped",
        f"{RESOURCE}/namespaces/default/resourceclaims",
        {
            "spec": {
                "devices": {
                    "requests": [
                        {"name": "r", "exactly": {"deviceClassName": "g", "derivedAttributes": DERIVED}}
                    ]
                }
            }
        },
        {
            "spec.devices.requests.0.exactly.derivedAttributes": GONE,
            "spec.devices.requests.0.exactly.deviceClassName": "g",
        },
    ),
    Row(
        "a slice's partitionTypeAttribute behind its gate is dropped",
        f"{RESOURCE}/resourceslices",
        {"spec": {**_SLICE, "partitionTypeAttribute": "wrong"}},
        {"spec.partitionTypeAttribute": GONE, "spec.driver": "dra.example.com"},
    ),
    Row(
        "list attributes of devices behind their gate are dropped",
        f"{RESOURCE}/resourceslices",
        {"spec": {**_SLICE, "devices": [{"name": "d", "attributes": {"a": {"int": 1, "ints": [1]}}}]}},
        {"spec.devices.0.attributes.a": {"int": 1}},
    ),
    Row(
        "a data source of another namespace behind its gate is dropped",
        f"{SPACE}/persistentvolumeclaims",
        {"spec": {**_CLAIM, "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "x", "namespace": "n"}}},
        {"spec.dataSourceRef": GONE, "spec.dataSource": GONE},
    ),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.promise)
def test_a_new_object_is_kept_as_a_real_server_keeps_it(row: Row) -> None:
    async def scenario() -> Any:
        async with running(settings(gates=row.gates)) as server:
            body = {**row.sent, "metadata": {"name": "x", **row.sent.get("metadata", {})}}
            _, answer = await Caller.of(server).json("POST", row.path, body)
            return answer

    answer = asyncio.run(scenario())
    assert {path: _at(answer, path) for path in row.expected} == row.expected, answer


def test_a_job_without_labels_has_those_of_its_pods() -> None:
    async def scenario() -> None:
        async with running() as server:
            caller = Caller.of(server)
            for own, shares in (({}, True), ({"a": "b"}, False)):
                template = {"metadata": {"labels": {"a": "b"}}, "spec": _POD}
                body = {"metadata": {"name": f"j{len(own)}", "labels": own}, "spec": {"template": template}}
                _, job = await caller.json("POST", "/apis/batch/v1/namespaces/default/jobs", body)
                labels, pods = job["metadata"]["labels"], job["spec"]["template"]["metadata"]["labels"]
                assert pods["batch.kubernetes.io/controller-uid"] == job["metadata"]["uid"]
                assert labels == (pods if shares else own)

    asyncio.run(scenario())


def test_a_field_behind_a_closed_gate_stays_where_it_is_in_use() -> None:
    """The gate was open when the object was made; the store outlives the server."""

    async def scenario() -> None:
        store = MemoryStore()
        path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
        async with running(settings(gates="CoordinatedLeaderElection=true"), store=store) as server:
            spec = {"strategy": "OldestEmulationVersion"}
            await Caller.of(server).json("POST", path, {"metadata": {"name": "x"}, "spec": spec})
        async with running(store=store) as server:
            patch = {"spec": {"holderIdentity": "h", "preferredHolder": "p"}}
            _, lease = await Caller.of(server).json(
                "PATCH", f"{path}/x", patch, content_type="application/merge-patch+json"
            )
            assert lease["spec"] == {"holderIdentity": "h", "strategy": "OldestEmulationVersion"}

    asyncio.run(scenario())


def test_a_null_list_is_read_back_as_an_empty_one_and_changes_nothing() -> None:
    async def scenario() -> None:
        async with running() as server:
            caller = Caller.of(server)
            path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
            _, made = await caller.json("POST", path, {"metadata": {"name": "x"}})
            status, again = await caller.json("PUT", f"{path}/x", made)
            assert (status, again) == (200, made)
            _, same = await caller.json("PUT", f"{path}/x", {**made, "rules": []})
            assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]

    asyncio.run(scenario())


def test_a_change_of_a_claim_is_refused_with_what_differs() -> None:
    async def scenario() -> str:
        async with running() as server:
            caller = Caller.of(server)
            path = f"{SPACE}/persistentvolumeclaims"
            await caller.json("POST", path, {"metadata": {"name": "x"}, "spec": _CLAIM})
            patch = {"spec": {"resources": {"limits": {"storage": "2Gi"}}}}
            _, status = await caller.json(
                "PATCH", f"{path}/x", patch, content_type="application/merge-patch+json"
            )
            return str(status["message"])

    message = asyncio.run(scenario())
    assert '-  "Limits": null,\n+  "Limits": {\n+   "storage": "2Gi"\n+  },\n' in message


def test_an_applied_null_is_owned_and_takes_the_value_away() -> None:
    async def scenario() -> None:
        async with running() as server:
            caller = Caller.of(server)
            path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
            await caller.json(
                "POST",
                f"{path}?fieldManager=a",
                {"metadata": {"name": "x"}, "spec": {"leaseDurationSeconds": 5}},
            )
            body = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": "x"},
                "spec": {"leaseDurationSeconds": None},
            }
            target = f"{path}/x?fieldManager=b"
            status, _ = await caller.json("PATCH", target, body, content_type="application/apply-patch+yaml")
            assert status == 409
            _, lease = await caller.json(
                "PATCH", f"{target}&force=true", body, content_type="application/apply-patch+yaml"
            )
            assert lease["spec"] == {}
            owned = [entry["fieldsV1"] for entry in lease["metadata"]["managedFields"]]
            assert owned == [{"f:spec": {"f:leaseDurationSeconds": {}}}]

    asyncio.run(scenario())
