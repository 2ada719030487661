"""A cluster, a kubelet under its node's own identity and a DRA driver, each a process of its own (KEP-5945)."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import yaml

from nodeward.machinery.clock import RealClock
from tests.e2e.cluster import REPOSITORY, Cluster, command, running_cluster
from tests.patience import PATIENCE_SECONDS, until

DRIVER = "gpu.example.com"
ON = "DRAOptionalNodePreparation=true"
_TOKEN = "token-of-n1"
_RESOURCES = "/apis/resource.k8s.io/v1"
_PODS = "/api/v1/namespaces/default/pods"
CLAIMS = f"{_RESOURCES}/namespaces/default/resourceclaims"


@dataclass
class Process:
    """One `nodeward` process; its lines are read one by one."""

    popen: subprocess.Popen[str]
    log: IO[str]

    def line(self) -> str:
        assert self.popen.stdout is not None
        return self.popen.stdout.readline().rstrip("\n")

    def until(self, call: str) -> dict[str, Any]:
        """Read on to the line of a call, and return it."""
        while text := self.line():
            if text.startswith("{") and json.loads(text)["call"] == call:
                found: dict[str, Any] = json.loads(text)
                return found
        self.log.seek(0)
        raise AssertionError(f"it ended before {call}: {self.log.read()}")

    def stop(self, how: signal.Signals = signal.SIGINT) -> str:
        """End it; return what it still said."""
        if self.popen.poll() is None:
            self.popen.send_signal(how)
        rest, _ = self.popen.communicate(timeout=PATIENCE_SECONDS)
        return rest

    def wait(self) -> int:
        self.popen.communicate(timeout=PATIENCE_SECONDS)
        return self.popen.returncode


@dataclass
class Site:
    """The processes of one test."""

    cluster: Cluster
    root: Path
    processes: list[Process] = field(default_factory=list)

    @property
    def kubelet_root(self) -> Path:
        return self.root / "k"

    @property
    def cdi(self) -> Path:
        return self.root / "cdi"

    def start(self, *words: str, kubeconfig: Path) -> Process:
        log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (lives as long as the process)
        popen = subprocess.Popen(
            command(*words, "--kubeconfig", str(kubeconfig)),
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=REPOSITORY,
            text=True,
        )
        process = Process(popen, log)
        self.processes.append(process)
        return process

    def start_kubelet(self, gates: str = ON) -> Process:
        """The kubelet of n1, as system:node:n1, with real processes; returns when it is ready."""
        config = self.root / "kubelet.yaml"
        config.write_text(_kubeconfig(self.cluster))
        process = self.start(
            *("kubelet", "--node-name", "n1", "--runtime", "process", "--root-dir", str(self.kubelet_root)),
            *("--cdi-dirs", str(self.cdi), "--healthz-port", "0", "--port", "0", "--feature-gates", gates),
            kubeconfig=config,
        )
        assert process.line().startswith("nodeward kubelet: node n1"), self.logs()
        self.wait_for("/api/v1/nodes", lambda node: _is_ready(node))
        return process

    def start_driver(
        self, *flags: str, node: str = "n1", skips: Any = None, is_awaited: bool = True
    ) -> Process:
        """A driver, with a node part unless `node` is ""; returns when it is registered, or has published its devices.

        `is_awaited`: False if it may end before it is registered.
        """
        profile = self.root / "profile.yaml"
        tree: dict[str, Any] = {
            "apiVersion": "nodeward.dev/v1alpha1",
            "kind": "DeviceProfile",
            "driver": DRIVER,
            "pools": [{"name": "n1", "count": 2, "device": {"attributes": {"index": {"int": "{n}"}}}}],
        }
        if not node:
            tree["pools"][0]["nodeName"] = "n1"
        if skips is not None:
            tree["skipNodeOperations"] = skips
        profile.write_text(yaml.safe_dump(tree))
        words = ["dra-driver", str(profile), "--cdi-dir", str(self.cdi), *flags]
        if node:
            words += ["--node", node, "--kubelet-dir", str(self.kubelet_root)]
        process = self.start(*words, kubeconfig=self.cluster.kubeconfig)
        assert process.line().startswith(f"driver {DRIVER} "), self.logs()
        if node and is_awaited:
            assert process.line() == f"driver {DRIVER} is registered with the kubelet", self.logs()
        return process

    def logs(self) -> str:
        texts = []
        for each in self.processes:
            each.log.seek(0)
            texts.append(each.log.read())
        return "\n".join(texts)

    # -- objects

    def create(self, path: str, tree: dict[str, Any]) -> Any:
        status, answer = self.cluster.call("POST", path, tree)
        assert status == 201, answer
        return answer

    def start_pod(self, name: str = "p", claim: str = "c") -> Any:
        """A class, a claim for one device and a pod that uses it."""
        spec = {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}
        with suppress(AssertionError):
            self.create(f"{_RESOURCES}/deviceclasses", {"metadata": {"name": "gpu"}, "spec": spec})
        request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
        with suppress(AssertionError):
            self.create(CLAIMS, {"metadata": {"name": claim}, "spec": {"devices": {"requests": [request]}}})
        container = {
            "name": "c",
            "image": "any",
            "command": ["sh", "-c", 'echo "devices: $DRA_DEVICES"; sleep 1000'],
            "resources": {"claims": [{"name": "gpu"}]},
        }
        return self.create(
            _PODS,
            {
                "metadata": {"name": name},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
                    "containers": [container],
                },
            },
        )

    def wait_for(self, path: str, holds: Callable[[Any], bool]) -> Any:
        with self.cluster.watching(f"{path}?watch=true&resourceVersion=0") as events:
            for event in events:
                if holds(event["object"]):
                    return event["object"]
        raise AssertionError("the watch ended")

    def wait_running(self, name: str = "p") -> Any:
        return self.wait_for(
            _PODS, lambda pod: pod["metadata"]["name"] == name and pod["status"].get("phase") == "Running"
        )

    def wait_output(self, text: str) -> None:
        """Follow what the container writes until it has written a text."""
        pattern = "logs/pods/default_p_*/c/0.log"

        async def ask() -> str:
            return "".join(each.read_text() for each in self.kubelet_root.glob(pattern))

        asyncio.run(until(RealClock(), ask, lambda found: text in found, "the container's output"))

    def wait_event(self, reason: str, part: str = "") -> str:
        """Wait for an event with a text; return its message."""
        path = "/api/v1/namespaces/default/events"
        found = self.wait_for(path, lambda event: event["reason"] == reason and part in event["message"])
        text: str = found["message"]
        return text

    def delete_pod(self, name: str = "p") -> None:
        """Delete a pod and wait until it is gone."""
        status, pod = self.cluster.call("GET", f"{_PODS}/{name}")
        assert status == 200
        version = pod["metadata"]["resourceVersion"]
        status, answer = self.cluster.call("DELETE", f"{_PODS}/{name}")
        assert status == 200, answer
        with self.cluster.watching(f"{_PODS}?watch=true&resourceVersion={version}") as events:
            for event in events:
                if event["type"] == "DELETED" and event["object"]["metadata"]["name"] == name:
                    return

    def events(self, reason: str) -> list[str]:
        _, listed = self.cluster.call("GET", "/api/v1/namespaces/default/events")
        return [each["message"] for each in listed["items"] if each["reason"] == reason]

    def prepared(self) -> list[str]:
        """The files of claims that are prepared."""
        return sorted(each.name for each in self.cdi.glob("*.json")) if self.cdi.exists() else []

    def claims_on_disk(self) -> list[dict[str, Any]]:
        """What the kubelet's checkpoint says."""
        tree = json.loads((self.kubelet_root / "dra_manager_state").read_bytes())
        found: list[dict[str, Any]] = json.loads(tree["Data"])["ClaimInfoStateList"] or []
        return found


def _is_ready(node: Any) -> bool:
    conditions = node["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _kubeconfig(cluster: Cluster) -> str:
    tree = yaml.safe_load(cluster.kubeconfig.read_text())
    tree["users"] = [{"name": tree["users"][0]["name"], "user": {"token": _TOKEN}}]
    return str(yaml.safe_dump(tree))


@contextmanager
def site() -> Iterator[Site]:
    """A control plane without nodes; everything that was started is ended. Paths of sockets must be short."""
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nw")))
        tokens = root / "tokens"
        tokens.write_text(f'{_TOKEN},system:node:n1,n1,"system:nodes"\n')
        flags = (
            *("--nodes", "0", "--feature-gates", ON, "--token-auth-file", str(tokens)),
            *(
                "--enable-admission-plugins",
                "NodeRestriction",
                "--disable-admission-plugins",
                "ServiceAccount",
            ),
        )
        cluster = stack.enter_context(running_cluster(root / "c", *flags))
        made = Site(cluster, root)
        try:
            yield made
        finally:
            for each in reversed(made.processes):
                if each.popen.poll() is None:
                    each.popen.kill()
                each.popen.communicate()
                each.log.close()
