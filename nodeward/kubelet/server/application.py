"""The kubelet's HTTPS pages: who may ask, and which page is meant.

Requests come from the API server, which shows a client certificate of the cluster's authority; whoever it is, only
those who may do everything on a node are let in, because a command in a container is everything. /healthz is for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs, unquote

import msgspec

from nodeward.api.codec import encode
from nodeward.base.errors import WorldError
from nodeward.kubelet.server.cpu_page import cpu_page
from nodeward.kubelet.server.finding import Hosts, Refused
from nodeward.kubelet.server.log_page import container_logs
from nodeward.kubelet.server.streams import Streams
from nodeward.machinery.clock import Clock
from nodeward.machinery.metrics import Metrics
from nodeward.machinery.serving.answer import TEXT, Answer
from nodeward.machinery.serving.connection import Peer
from nodeward.machinery.serving.health import HealthPages
from nodeward.machinery.transport import Request

#: Whom the API server is to a kubelet.
API_SERVER: Final = "kube-apiserver-kubelet-client"
_MASTERS: Final = "system:masters"
_VERBS: Final = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "DELETE": "delete"}


class KubeletServer:
    """The application of a kubelet's listener; `handle` answers one request."""

    def __init__(self, hosts: Hosts, clock: Clock, metrics: Metrics) -> None:
        self._hosts = hosts
        self._clock = clock
        self._pages = HealthPages(metrics, {"syncloop": lambda: all(each.is_healthy for each in hosts())})
        self._streams = Streams(hosts, clock)

    async def handle(self, request: Request, peer: Peer) -> Answer:
        if request.path.partition("/")[2].partition("/")[0] != "healthz":
            refusal = _authorize(request, peer)
            if refusal is not None:
                return refusal
        page = self._pages.answer(request)
        if page is not None:
            return page
        try:
            return await self._serve(request)
        except Refused as error:
            return Answer(error.code, str(error).encode(), TEXT)
        except WorldError as error:
            return Answer(500, str(error).encode(), TEXT)

    async def aclose(self) -> None:
        """End the commands that are run for callers."""
        await self._streams.aclose()

    async def _serve(self, request: Request) -> Answer:
        parts = [unquote(part) for part in request.path.split("/")[1:]]
        query = {name: values[0] for name, values in _parsed(request.query).items()}
        match parts:
            case ["pods"] | ["runningpods"] if request.method == "GET":
                return self._pods(only_running=parts[0] == "runningpods")
            case ["debug", "cpus"] if request.method == "GET":
                return cpu_page(self._hosts, self._clock, query.get("node", ""))
            case ["containerLogs", namespace, pod, container] if request.method == "GET":
                return await container_logs(self._hosts, self._clock, namespace, pod, container, query)
            case ["exec", namespace, pod, container] | ["exec", namespace, pod, _, container]:
                command = tuple(_parsed(request.query).get("command", ()))
                return self._streams.exec(request, namespace, pod, container, command, query)
            case ["attach", namespace, pod, container] | ["attach", namespace, pod, _, container]:
                return self._streams.attach(request, namespace, pod, container, query)
            case ["portForward", namespace, pod] | ["portForward", namespace, pod, _]:
                return self._streams.port_forward(request, namespace, pod)
        return Answer(404, b"404 page not found\n", TEXT)

    def _pods(self, *, only_running: bool) -> Answer:
        now_ns = self._clock.now_ns()
        pods = []
        for host in self._hosts():
            for agent in host.nodes.agents.values():
                for managed in agent.pods.values():
                    status = managed.life.status(now_ns)
                    if not only_running or status.phase == "Running":
                        pods.append(encode(msgspec.structs.replace(managed.life.pod, status=status)))
        items = b",".join(pods)
        return Answer(200, b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[%b]}\n' % items)


def _authorize(request: Request, peer: Peer) -> Answer | None:
    """What to answer somebody who may not ask; None to who may."""
    if not peer.certificate:
        return Answer(401, b"Unauthorized", TEXT)
    name, groups = _subject(peer.certificate)
    if name == API_SERVER or _MASTERS in groups:
        return None
    verb = _VERBS.get(request.method, request.method.lower())
    why = f"Forbidden (user={name}, verb={verb}, resource=nodes, subresource(s)=[proxy])\n"
    return Answer(403, why.encode(), TEXT)


def _subject(certificate: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The name and the groups in a certificate, as Kubernetes reads it."""
    pairs = [pair for part in certificate.get("subject", ()) for pair in part]
    names = [value for key, value in pairs if key == "commonName"]
    return (names[-1] if names else ""), [value for key, value in pairs if key == "organizationName"]


def _parsed(query: str) -> dict[str, list[str]]:
    return parse_qs(query, keep_blank_values=True)
