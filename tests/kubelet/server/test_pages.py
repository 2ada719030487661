"""Who may ask a kubelet, and what its pages say."""

from __future__ import annotations

import http.client
import json
import ssl

import pytest

from nodeward.apiserver.pki import KeyPair
from nodeward.machinery.http_transport import HttpTransport
from nodeward.machinery.transport import Request, Response
from tests.kubelet.server.serving import Serving, context_of
from tests.patience import PATIENCE_SECONDS


def ask(served: Serving, target: str, pair: KeyPair | None = None, method: str = "GET") -> Response:
    """One request straight to the kubelet, as the API server unless said otherwise."""
    context = context_of(served.pki, pair or served.pki.kubelet_client())
    path, _, query = target.partition("?")

    async def asked() -> Response:
        url = f"https://127.0.0.1:{served.kubelet_port}"
        transport = HttpTransport(url, clock=served.clock, ssl_context=context)
        try:
            return await transport.send(Request(method, path, query))
        finally:
            await transport.aclose()

    return served.do(asked())


def nobody(served: Serving) -> http.client.HTTPSConnection:
    """A client that shows no certificate."""
    context = ssl.create_default_context(cafile=served.pki.authority_path)
    return http.client.HTTPSConnection(
        "127.0.0.1", served.kubelet_port, context=context, timeout=PATIENCE_SECONDS
    )


@pytest.mark.parametrize(
    "path",
    ["/pods", "/metrics", "/containerLogs/default/p/c0", "/exec/default/p/c0", "/healthzz", "/nowhere"],
)
def test_nobody_gets_in_without_a_certificate(served: Serving, path: str) -> None:
    connection = nobody(served)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (401, b"Unauthorized")
    connection.close()


def test_whether_it_is_healthy_may_be_asked_by_all(served: Serving) -> None:
    connection = nobody(served)
    connection.request("GET", "/healthz")
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (200, b"ok")
    connection.close()


def test_a_certificate_of_the_cluster_alone_opens_no_door(served: Serving) -> None:
    node = served.pki.client("node", "system:node:here", ("system:nodes",))
    answer = ask(served, "/exec/default/p/c0?command=sh&output=1", node, "POST")
    assert answer.status == 403
    assert answer.body == (
        b"Forbidden (user=system:node:here, verb=create, resource=nodes, subresource(s)=[proxy])\n"
    )


def test_those_who_may_do_everything_may_ask(served: Serving) -> None:
    assert ask(served, "/metrics", served.pki.admin()).status == 200


def test_pods_are_listed_with_the_status_the_node_knows(served: Serving) -> None:
    served.run_pod("listed", "sleep", "1000")
    pods = json.loads(ask(served, "/pods").body or b"")
    assert (pods["kind"], pods["apiVersion"]) == ("PodList", "v1")
    (found,) = [pod for pod in pods["items"] if pod["metadata"]["name"] == "listed"]
    assert found["status"]["phase"] == "Running"
    running = json.loads(ask(served, "/runningpods").body or b"")
    assert "listed" in [pod["metadata"]["name"] for pod in running["items"]]


@pytest.mark.parametrize(
    ("target", "code", "text"),
    [
        ("/containerLogs/default/none/c0", 404, 'pod "none" does not exist'),
        ("/containerLogs/default/refusing/nope", 404, 'container "nope" not found in pod "refusing"'),
        ("/containerLogs/default/refusing/c0?tailLines=x", 400, '{"message": "Unable to decode query."}'),
        ("/containerLogs/default/refusing/c0?tailLines=-1", 422, '{"message": "Invalid request."}'),
        ("/containerLogs/default/refusing/c0?stream=Stdin", 400, 'invalid stream type "Stdin"'),
        (
            "/containerLogs/default/refusing/c0?previous=true",
            400,
            'previous terminated container "c0" in pod "refusing" not found',
        ),
        ("/exec/default/none/c0?command=ls&output=1", 404, "pod does not exist"),
        ("/exec/default/refusing/nope?command=ls&output=1", 500, 'container not found ("nope")'),
        ("/exec/default/refusing/c0?command=ls", 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ("/exec/default/refusing/c0?command=ls&output=1", 400, "Upgrade request required"),
        ("/attach/default/refusing/nope?output=1", 500, "container nope not found in pod refusing_default"),
        ("/portForward/default/none", 404, "pod does not exist"),
        ("/portForward/default/refusing", 400, "Upgrade request required"),
        ("/nowhere", 404, "404 page not found\n"),
    ],
)
def test_what_cannot_be_is_refused_in_the_words_of_kubelets(
    served: Serving, target: str, code: int, text: str
) -> None:
    if "refusing" in target and "/containerLogs/default/none" not in target:
        _ensure(served, "refusing")
    answer = ask(served, target)
    assert (answer.status, (answer.body or b"").decode()) == (code, text)


def _ensure(served: Serving, name: str) -> None:
    pods = json.loads(ask(served, "/pods").body or b"")
    if name not in [pod["metadata"]["name"] for pod in pods["items"]]:
        served.run_pod(name, "sleep", "1000")


def test_a_log_of_a_container_that_has_ended_is_there_still(served: Serving) -> None:
    served.run_pod("ended", "sh", "-c", "echo one; echo two >&2; exit 3", restart_policy="Never")
    served.wait("ended", lambda pod: pod.status.phase == "Failed")
    assert ask(served, "/containerLogs/default/ended/c0").body == b"one\ntwo\n"
    assert ask(served, "/containerLogs/default/ended/c0?stream=Stderr").body == b"two\n"
    assert ask(served, "/containerLogs/default/ended/c0?follow=true&tailLines=1").body == b"two\n"
    assert ask(served, "/containerLogs/default/ended/c0?tail=all&limitBytes=2").body == b"on"


def test_the_log_of_the_instance_before_is_there(served: Serving) -> None:
    counter = served.home / "runs"
    script = (
        f"echo x >> {counter}; echo run $(wc -l < {counter}); [ $(wc -l < {counter}) -lt 2 ] || sleep 1000"
    )
    served.run_pod("again", "sh", "-c", script, restart_policy="Always")
    served.wait("again", lambda pod: pod.status.container_statuses[0].restart_count == 1)
    assert ask(served, "/containerLogs/default/again/c0?previous=true").body == b"run 1\n"
    # It has started, and may not have written yet: follow it until there are as many bytes.
    answer = ask(served, "/containerLogs/default/again/c0?follow=true&limitBytes=6")
    assert answer.body == b"run 2\n"


def test_simulated_containers_say_that_they_are(served: Serving) -> None:
    served.run_pod("simulated", node="then")
    answer = ask(served, "/containerLogs/default/simulated/c0")
    assert answer.body == b"this container is simulated: it runs nothing and writes nothing\n"
