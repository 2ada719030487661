"""`nodeward report-readiness` as a process: against a real cluster, an endpoint on a socket, and Ctrl-C."""

from __future__ import annotations

import http.server
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import Cluster, command, running_cluster
from tests.patience import PATIENCE_SECONDS

AGENT = "example.com/Agent"


class Endpoint(http.server.ThreadingHTTPServer):
    """A health endpoint that answers what it is told to."""

    code = 503


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Endpoint)
        self.send_response(self.server.code)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Not into the output of the tests."""


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def reporter(cluster: Cluster, server: Endpoint, **more: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "KUBECONFIG": str(cluster.kubeconfig),
        "NODE_NAME": "n1",
        "CONDITION_TYPE": AGENT,
        "CHECK_POINT": f"http://127.0.0.1:{server.server_address[1]}/healthz",
        "POLL_INTERVAL": "1s",
        **more,
    }
    return subprocess.Popen(
        command("report-readiness"),
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def reported(cluster: Cluster, wanted: tuple[str, str]) -> None:
    """Wait, on a watch, until the condition is as wanted."""
    with cluster.watching(
        "/api/v1/nodes?watch=true&resourceVersion=0&fieldSelector=metadata.name=n1"
    ) as events:
        for event in events:
            conditions = event["object"]["status"].get("conditions", [])
            if any((each["type"], each["status"], each["reason"]) == (AGENT, *wanted) for each in conditions):
                return


@pytest.mark.slow
def test_the_condition_follows_the_endpoint_and_ctrl_c_ends_it_cleanly(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as cluster, endpoint() as server:
        assert cluster.call("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})[0] == 201
        process = reporter(cluster, server)
        try:
            reported(cluster, ("False", "EndpointNotReady"))
            server.code = 204
            reported(cluster, ("True", "EndpointOK"))
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            process.kill()
        assert (process.returncode, out) == (0, "")
        assert "stopped; the condition stays as it was last reported" in err
        assert "Traceback" not in err
        reported(cluster, ("True", "EndpointOK"))


@pytest.mark.slow
def test_with_that_strategy_it_ends_after_its_first_success(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as cluster, endpoint() as server:
        assert cluster.call("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})[0] == 201
        server.code = 200
        process = reporter(cluster, server, REPORT_STRATEGY="ReportOnSuccessAndTerminate")
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0, err
        reported(cluster, ("True", "EndpointOK"))


def test_a_wrong_environment_stops_it_with_what_is_wrong() -> None:
    environment = {"PATH": os.environ["PATH"], "CHECK_POINT": "localhost"}
    done = subprocess.run(
        command("report-readiness"), env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "nodeward: the environment of the reporter is wrong:",
        "  NODE_NAME is not set",
        "  CONDITION_TYPE is not set",
        '  CHECK_POINT="localhost": must be http or https; want a URL such as http://localhost:8080/healthz',
    ]
