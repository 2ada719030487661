"""pods/log, pods/exec, pods/attach, pods/portforward: what the API server itself says, before it asks a kubelet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.node import DaemonEndpoint, Node, NodeAddress, NodeDaemonEndpoints, NodeStatus
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.errors import ApiError
from nodeward.api.meta import ObjectMeta
from nodeward.apiserver.auth.user import AUTHENTICATED, User
from nodeward.apiserver.kubelet_access import KubeletAccess
from nodeward.apiserver.server import ApiServer
from tests.apiserver.running import Caller, running, settings

PODS = "/api/v1/namespaces/default/pods"
SWITCH = {"connection": "Upgrade", "upgrade": "websocket"}


def pod(name: str, *containers: str, node: str = "n") -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PodSpec(
            node_name=node, containers=[Container(name=each, image="i") for each in containers or ("c",)]
        ),
    )


@asynccontextmanager
async def server_with_pods(**chosen: Any) -> AsyncIterator[ApiServer]:
    async with running(settings(**chosen)) as server:
        client = server.client("test")
        node = Node(
            metadata=ObjectMeta(name="n"),
            status=NodeStatus(
                addresses=[NodeAddress(type="InternalIP", address="192.0.2.7")],
                daemon_endpoints=NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=10999)),
            ),
        )
        await client.create(node)
        for each in (pod("one"), pod("two", "a", "b"), pod("nowhere", node=""), pod("lost", node="gone")):
            await client.create(each)
        yield server


def ask(method: str, target: str, **headers: str) -> tuple[int, str, str]:
    """The code, the reason and the text of a refusal."""

    async def run() -> tuple[int, str, str]:
        async with server_with_pods() as server:
            code, answer = await Caller.of(server).json(method, f"{PODS}/{target}", headers=headers or None)
            assert (answer["kind"], answer["status"], answer["code"]) == ("Status", "Failure", code)
            return code, answer.get("reason", ""), answer["message"]

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("none/log", (404, "NotFound", 'pods "none" not found')),
        ("one/log?container=x", (400, "BadRequest", "container x is not valid for pod one")),
        (
            "two/log",
            (400, "BadRequest", "a container name must be specified for pod two, choose one of: [a b]"),
        ),
        ("lost/log", (404, "NotFound", 'nodes "gone" not found')),
        (
            "one/log?tailLines=-1",
            (
                422,
                "Invalid",
                'PodLogOptions "one" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0',
            ),
        ),
        (
            "one/log?limitBytes=0",
            (
                422,
                "Invalid",
                'PodLogOptions "one" is invalid: limitBytes: Invalid value: 0: must be greater than 0',
            ),
        ),
        (
            "one/log?sinceSeconds=0",
            (
                422,
                "Invalid",
                'PodLogOptions "one" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0',
            ),
        ),
        (
            "one/log?stream=Stdout",
            (422, "Invalid", 'PodLogOptions "one" is invalid: stream: Forbidden: may not be specified'),
        ),
    ],
)
def test_a_log_that_cannot_be_had_is_refused_in_the_usual_words(
    target: str, expected: tuple[int, str, str]
) -> None:
    assert ask("GET", target) == expected


def test_only_one_beginning_of_a_log_can_be_asked_for() -> None:
    code, reason, message = ask("GET", "one/log?sinceSeconds=1&sinceTime=2026-11-15T06:00:00Z")
    assert (code, reason) == (422, "Invalid")
    assert "at most one of `sinceTime` or `sinceSeconds` may be specified" in message


def test_a_pod_that_is_nowhere_has_no_log_yet() -> None:
    async def run() -> tuple[int, bytes | None]:
        async with server_with_pods() as server:
            response = await Caller.of(server).send("GET", f"{PODS}/nowhere/log")
            return response.status, response.body

    assert asyncio.run(run()) == (204, b"")


@pytest.mark.parametrize("subresource", ["exec", "attach"])
@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("none/{}", (404, "NotFound", 'pods "none" not found')),
        ("one/{}?container=x", (400, "BadRequest", "container x is not valid for pod one")),
        (
            "two/{}",
            (400, "BadRequest", "a container name must be specified for pod two, choose one of: [a b]"),
        ),
        ("nowhere/{}", (400, "BadRequest", "pod nowhere does not have a host assigned")),
    ],
)
def test_a_command_that_cannot_be_run_is_refused_in_the_usual_words(
    subresource: str, target: str, expected: tuple[int, str, str]
) -> None:
    assert ask("POST", target.format(subresource), **SWITCH) == expected


def test_a_port_of_a_pod_that_is_nowhere_cannot_be_forwarded() -> None:
    said = ask("POST", "nowhere/portforward", **SWITCH)
    assert said == (400, "BadRequest", "pod nowhere does not have a host assigned")


def test_a_connection_must_be_asked_for() -> None:
    assert ask("POST", "one/exec?command=ls") == (400, "BadRequest", "Upgrade request required")


def test_a_node_is_looked_for_at_its_address_and_port() -> None:
    node = Node(
        status=NodeStatus(
            addresses=[
                NodeAddress(type="ExternalIP", address="198.51.100.1"),
                NodeAddress(type="InternalIP", address="192.0.2.7"),
            ],
            daemon_endpoints=NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=10999)),
        )
    )
    assert KubeletAccess().address(node) == ("192.0.2.7", 10999)
    assert KubeletAccess(preferred=("ExternalIP",)).address(node) == ("198.51.100.1", 10999)
    assert KubeletAccess(resolve=lambda node: ("127.0.0.1", 1)).address(node) == ("127.0.0.1", 1)
    with pytest.raises(ApiError, match=r"no preferred addresses found; known addresses: \[\]"):
        KubeletAccess().address(Node())


ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"name": "reader", "namespace": "default"},
    "rules": [{"apiGroups": [""], "resources": ["pods/exec", "pods/log"], "verbs": ["get"]}],
}
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "reader", "namespace": "default"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}],
}


@pytest.mark.parametrize(
    ("gates", "code"), [("", 403), ("AuthorizePodWebsocketUpgradeCreatePermission=false", 400)]
)
def test_reading_is_not_enough_to_run_a_command(gates: str, code: int) -> None:
    async def run() -> tuple[int, Any]:
        async with server_with_pods(gates=gates) as server:
            admin = Caller.of(server)
            base = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
            for resource, body in (("roles", ROLE), ("rolebindings", BINDING)):
                status, answer = await admin.json("POST", f"{base}/{resource}", body)
                assert status == 201, answer
            eve = Caller.of(server, User("eve", groups=(AUTHENTICATED,)))
            status, answer = await eve.json("GET", f"{PODS}/one/log")
            assert status == 500, "the log may be read, if only there were a kubelet"
            return await eve.json("GET", f"{PODS}/nowhere/exec?command=ls", headers=SWITCH)

    status, answer = asyncio.run(run())
    assert status == code
    if code == 403:
        assert answer["message"].startswith('pods "nowhere" is forbidden: User "eve" cannot create resource')
