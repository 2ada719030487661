"""The `api` part of the benchmark: a real server process, durable on SQLite, over TLS, from another process.

Everything is on: authentication by client certificate, RBAC, admission, validation, managedFields, group commit.
"""

from __future__ import annotations

import asyncio
import compileall
import os
import shutil
import signal
import ssl
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import nodeward
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.bench.figures import ClusterSize, Figure
from nodeward.bench.load import Counter, Target, hammer, listen, request
from nodeward.machinery.clock import Clock, RealClock

CONNECTIONS = 32
GETS = 60_000
PATCHES = 6_000
#: watchers -> events each of them sees
WATCHED = {1: 10_000, 100: 4_000, 1_000: 500}
PODS_PATH = "/api/v1/namespaces/default/pods"
MAPS_PATH = "/api/v1/namespaces/default/configmaps"


@dataclass(slots=True)
class Server:
    """A server process."""

    process: asyncio.subprocess.Process
    target: Target
    kubeconfig: Path
    #: from the start of the process to the first answer
    start_seconds: float

    def rss_bytes(self) -> int:
        fields = Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


#: An API server alone.
ALONE = ("--nodes", "0", "--no-scheduler", "--controllers", "serviceaccount")


@asynccontextmanager
async def server(clock: Clock, *flags: str, alone: Sequence[str] = ALONE) -> AsyncIterator[Server]:
    """`nodeward up` in a directory of its own, without anybody who works on pods unless told otherwise.

    Stopped and removed at the end.
    """
    home = await asyncio.to_thread(tempfile.mkdtemp, prefix="nodeward-bench-")
    # As an installed program starts: with its bytecode compiled.
    await asyncio.to_thread(compileall.compile_dir, Path(nodeward.__file__).parent, quiet=1)
    started = clock.monotonic_ns()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "nodeward", "up", "--dir", home, "--port", "0", *alone, *flags,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        if "https://" not in line:
            assert process.stderr is not None
            raise WorldError(f"the server did not start: {(await process.stderr.read()).decode()[-2000:]}")
        port = int(line.partition("https://")[2].partition(",")[0].rpartition(":")[2])
        target = Target("127.0.0.1", port, _tls(Path(home)), clock)
        await hammer(target, iter([request("GET", "/readyz")]), connections=1)
        yield Server(process, target, Path(home) / "kubeconfig", (clock.monotonic_ns() - started) / SECOND_NS)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
            await process.wait()
        await asyncio.to_thread(shutil.rmtree, home, ignore_errors=True)


def _tls(home: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=home / "pki" / "ca.crt")
    context.load_cert_chain(home / "pki" / "admin.crt", home / "pki" / "admin.key")
    return context


async def api_figures(cluster: ClusterSize) -> AsyncIterator[Figure]:
    """All figures, in the order they are measured."""
    clock = RealClock()
    size = f"{cluster.nodes:,} nodes, {cluster.pods:,} pods of {len(_pod('p'))} B, TLS, SQLite"
    starts: list[float] = []
    for _ in range(2):
        async with server(clock) as running:
            starts.append(running.start_seconds)
    async with server(clock) as running:
        starts.append(running.start_seconds)
        yield Figure(
            "api/start", median(starts), "s", "process start to first answer, first start of a cluster"
        )
        empty = running.rss_bytes()
        yield Figure("api/memory-empty", empty / 2**20, "MiB", "resident, no nodes, no pods")
        await hammer(running.target, _nodes(cluster.nodes), connections=CONNECTIONS, expected=201)
        async for figure in _creates(running, cluster.pods, size):
            yield figure
        async for figure in _reads(running, cluster.pods, size):
            yield figure
        for watchers, events in WATCHED.items():
            yield await _watch(running, watchers, events)


async def _creates(running: Server, pods: int, size: str) -> AsyncIterator[Figure]:
    """Replicas, as most pods are, and strangers: decision 0008 makes the first cheaper, so both are measured."""
    for word, prefix, is_alike in (("", "p", True), ("-strangers", "s", False)):
        kind = "equal but for their names" if is_alike else "each with an environment of its own"
        before, cpu = running.rss_bytes(), running.cpu_seconds()
        requests = _creations(pods, prefix, is_alike=is_alike)
        result = await hammer(running.target, requests, connections=CONNECTIONS, expected=201)
        conditions = f"{kind}; {CONNECTIONS} connections; {size}"
        yield Figure(f"api/creates{word}", result.rate, "1/s", conditions)
        yield Figure(f"api/create-p50{word}", result.percentile_ms(0.5), "ms", conditions)
        yield Figure(f"api/create-p99{word}", result.percentile_ms(0.99), "ms", conditions)
        spent = (running.cpu_seconds() - cpu) / pods * 1e6
        yield Figure(f"api/create-cpu{word}", spent, "us", f"CPU of the server per create; {kind}")
        grown = (running.rss_bytes() - before) / pods / 1024
        yield Figure(
            f"api/memory-per-pod{word}", grown, "KiB", f"growth of resident memory per stored pod; {kind}"
        )
        if not is_alike:
            await hammer(running.target, _deletions(pods, prefix), connections=CONNECTIONS)


async def _reads(running: Server, pods: int, size: str) -> AsyncIterator[Figure]:
    gets = (request("GET", f"{PODS_PATH}/p-{number * 7919 % pods}") for number in range(GETS))
    cpu = running.cpu_seconds()
    result = await hammer(running.target, gets, connections=CONNECTIONS)
    yield Figure("api/gets", result.rate, "1/s", f"{CONNECTIONS} connections; {size}")
    yield Figure("api/get-cpu", (running.cpu_seconds() - cpu) / GETS * 1e6, "us", "CPU of the server per get")
    cpu = running.cpu_seconds()
    result = await hammer(running.target, _patches(PATCHES, pods), connections=CONNECTIONS)
    yield Figure("api/patches", result.rate, "1/s", f"strategic merge of a status condition; {size}")
    yield Figure(
        "api/patch-cpu", (running.cpu_seconds() - cpu) / PATCHES * 1e6, "us", "CPU of the server per patch"
    )
    lists = [await hammer(running.target, iter([request("GET", PODS_PATH)]), connections=1) for _ in range(7)]
    times = [one.percentile_ms(0.5) for one in lists]
    megabytes = lists[0].bytes_read / 2**20
    yield Figure(
        "api/list", median(times), "ms", f"LIST of {pods:,} pods, {megabytes:.1f} MiB, one client; {size}"
    )


async def _watch(running: Server, watchers: int, events: int) -> Figure:
    """Creates while everybody watches; done when the last watcher has the last event."""
    path = f"/api/v1/configmaps?watch=1&resourceVersion={await _revision(running)}"
    counter: Counter = await listen(running.target, path, watchers)
    clock = running.target.clock
    started = clock.monotonic_ns()
    await hammer(running.target, _maps(events, f"w{watchers}"), connections=CONNECTIONS, expected=201)
    await counter.reach(events * watchers)
    seconds = (clock.monotonic_ns() - started) / SECOND_NS
    counter.close()
    conditions = f"{events:,} creates of 2 KB seen by {watchers:,} watchers, until the last has the last"
    return Figure(f"api/watch-deliveries-{watchers}", events * watchers / seconds, "1/s", conditions)


async def _revision(running: Server) -> str:
    reader, writer = await asyncio.open_connection(
        running.target.host, running.target.port, ssl=running.target.tls, server_hostname=running.target.host
    )
    writer.write(request("GET", "/api/v1/namespaces?limit=1"))
    text = await reader.read(4096)
    writer.close()
    return text.partition(b'"resourceVersion":"')[2].partition(b'"')[0].decode()


def _nodes(number: int) -> Iterator[bytes]:
    for index in range(number):
        body = (
            b'{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-%d","labels":{"kubernetes.io/hostname":'
            b'"node-%d","topology.kubernetes.io/zone":"zone-%d","pool":"a"}},"status":{"capacity":{"cpu":"32",'
            b'"memory":"128Gi","pods":"110"},"allocatable":{"cpu":"31","memory":"120Gi","pods":"110"},"conditions":'
            b'[{"type":"Ready","status":"True","reason":"KubeletReady"}]}}' % (index, index, index % 3)
        )
        yield request("POST", "/api/v1/nodes", body)


def _pod(name: str) -> bytes:
    """1.5 KB, as a deployment's pods are: two containers, probes, resources, environment."""
    return b"".join(
        (
            b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"', name.encode(), b'","labels":{"app":"web",'
            b'"pod-template-hash":"6d4cf56db6","release":"stable"},"annotations":{"example.com/config-hash":"',
            b"0123456789abcdef" * 8,
            b'"}},"spec":{"nodeSelector":{"pool":"a"},"terminationGracePeriodSeconds":30,"serviceAccountName":"default",'
            b'"containers":[{"name":"web","image":"example.com/web:1.27.3","imagePullPolicy":"IfNotPresent","command":'
            b'["/bin/web","--listen=:8080","--log-level=info"],"ports":[{"name":"http","containerPort":8080,"protocol":'
            b'"TCP"}],"env":[{"name":"POD_NAME","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},{"name":"MODE",'
            b'"value":"production"},{"name":"REGION","value":"eu-central-1"}],"resources":{"requests":{"cpu":"250m",'
            b'"memory":"256Mi"},"limits":{"memory":"512Mi"}},"readinessProbe":{"httpGet":{"path":"/readyz","port":8080},'
            b'"periodSeconds":5},"livenessProbe":{"httpGet":{"path":"/livez","port":8080},"periodSeconds":10}},{"name":'
            b'"sidecar","image":"example.com/sidecar:0.9","args":["--upstream=127.0.0.1:8080"],"resources":{"requests":'
            b'{"cpu":"50m","memory":"64Mi"}}}],"tolerations":[{"key":"dedicated","operator":"Equal","value":"web",'
            b'"effect":"NoSchedule"}],"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":'
            b'[{"weight":100,"podAffinityTerm":{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":'
            b'{"app":"web"}}}}]}}}}',
        )
    )  # fmt: skip


def _creations(number: int, prefix: str, *, is_alike: bool = True) -> Iterator[bytes]:
    for index in range(number):
        body = _pod(f"{prefix}-{index}")
        # Another name in the environment: another spec, and another text of who set which field.
        yield request("POST", PODS_PATH, body if is_alike else body.replace(b'"MODE"', b'"MODE_%d"' % index))


def _deletions(number: int, prefix: str) -> Iterator[bytes]:
    return (request("DELETE", f"{PODS_PATH}/{prefix}-{index}") for index in range(number))


def _maps(number: int, prefix: str) -> Iterator[bytes]:
    content = b"x" * 1500
    for index in range(number):
        body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%b-%d"},"data":{"content":"%b"}}'
        yield request("POST", MAPS_PATH, body % (prefix.encode(), index, content))


def _patches(number: int, pods: int) -> Iterator[bytes]:
    for index in range(number):
        body = b'{"status":{"conditions":[{"type":"Ready","status":"%b"}]}}' % (
            b"True" if index // pods % 2 else b"False"
        )
        path = f"{PODS_PATH}/p-{index * 31 % pods}/status"
        yield request("PATCH", path, body, "application/strategic-merge-patch+json")
