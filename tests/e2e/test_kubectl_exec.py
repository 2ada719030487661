"""kubectl logs, exec, attach, cp and port-forward, with pods that are real processes and pods that are simulated."""

from __future__ import annotations

import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.e2e.cluster import running_cluster
from tests.e2e.kubectl import Ended, Kubectl, check_version, find
from tests.kubelet.server.serving import THEN, Serving, serving
from tests.patience import PATIENCE_SECONDS


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    check_version()
    with serving(tmp_path_factory.mktemp("serving")) as running:
        running.run_pod("shell", "sh", "-c", "echo hello; echo oops >&2; exec sleep 1000")
        running.run_pod("old", node=THEN)
        yield running


def run(served: Serving, *arguments: str, stdin: bytes = b"", **environment: str) -> Ended:
    ended = subprocess.run(
        [find(), *arguments],
        input=stdin,
        capture_output=True,
        env=served.environment() | environment,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


@contextmanager
def going_on(served: Serving, *arguments: str) -> Iterator[IO[str]]:
    """A kubectl that does not end by itself: what it prints."""
    process = subprocess.Popen(
        [find(), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=served.environment(),
    )
    assert process.stdout is not None
    giving_up = threading.Timer(PATIENCE_SECONDS, process.kill)
    giving_up.start()
    try:
        yield process.stdout
    finally:
        giving_up.cancel()
        process.kill()
        process.communicate()


def test_logs_show_what_a_process_wrote(served: Serving) -> None:
    assert run(served, "logs", "shell") == (0, "hello\noops\n", "")
    assert run(served, "logs", "shell", "--tail=1") == (0, "oops\n", "")
    assert run(served, "logs", "shell", "--limit-bytes=3").out == "hel"
    stamped = run(served, "logs", "shell", "--timestamps", "--tail=1").out
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z oops\n", stamped)


def test_logs_can_be_followed_to_the_end(served: Serving) -> None:
    go = served.home / "go"
    script = f"echo one; while [ ! -e {go} ]; do sleep 0.05; done; echo two"
    served.run_pod("story", "sh", "-c", script, restart_policy="Never")
    with going_on(served, "logs", "-f", "story") as lines:
        assert lines.readline() == "one\n"
        go.touch()
        assert lines.readline() == "two\n"
        assert lines.readline() == "", "the container has ended, and so does its log"


def test_logs_that_are_not_there_are_refused_in_the_usual_words(served: Serving) -> None:
    assert run(served, "logs", "shell", "-p") == (
        1,
        "",
        'Error from server (BadRequest): previous terminated container "c0" in pod "shell" not found\n',
    )


def test_exec_gives_output_errors_and_the_exit_code(served: Serving) -> None:
    ended = run(served, "exec", "shell", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert ended == (7, "out\n", "err\ncommand terminated with exit code 7\n")


@pytest.mark.parametrize("websockets", ["true", "false"])
@pytest.mark.parametrize("pod", ["shell", "old"])
def test_exec_reads_its_input_to_the_end(served: Serving, pod: str, websockets: str) -> None:
    """Over WebSocket and over SPDY, on a node that speaks both and on one that speaks only the latter."""
    ended = run(
        served,
        *("exec", "-i", pod, "--", "wc", "-c"),
        stdin=b"x" * 3_000_000,
        KUBECTL_REMOTE_COMMAND_WEBSOCKETS=websockets,
    )
    assert ended == (0, "3000000\n" if pod == "shell" else "simulated: wc -c\n", "")


def test_exec_of_what_cannot_be_run_says_why(served: Serving) -> None:
    ended = run(served, "exec", "shell", "--", "no-such-program")
    assert ended.code == 1
    assert "executable file not found in $PATH" in ended.err
    assert run(served, "exec", "shell", "-c", "none", "--", "ls").err == (
        "Error from server (BadRequest): container none is not valid for pod shell\n"
    )


def test_attach_shows_what_is_written_from_now_on(served: Serving) -> None:
    served.run_pod("clock", "sh", "-c", "while sleep 0.1; do echo tick; done")
    with going_on(served, "attach", "clock") as lines:
        assert lines.readline() == "tick\n"
        assert lines.readline() == "tick\n"


def test_attach_with_input_is_refused_in_words(served: Serving) -> None:
    ended = run(served, "attach", "-i", "shell")
    assert ended.code == 1
    assert "cannot be attached to on this node; attach without --stdin" in ended.err


def test_files_are_copied_both_ways(served: Serving, tmp_path: Path) -> None:
    data = bytes(range(256)) * 10_000
    source, inside, back = tmp_path / "source", tmp_path / "inside", tmp_path / "back"
    source.write_bytes(data)
    assert run(served, "cp", str(source), f"shell:{inside}").code == 0
    assert inside.read_bytes() == data
    assert run(served, "cp", f"shell:{inside}", str(back)).code == 0
    assert back.read_bytes() == data


@contextmanager
def echoing() -> Iterator[int]:
    """A server on this machine, as a process of a pod would be one: it says everything twice."""

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                data = b""
                while piece := connection.recv(1 << 16):
                    data += piece
                connection.sendall(data * 2)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(PATIENCE_SECONDS)


def _forwarded(lines: IO[str]) -> int:
    found = re.match(r"Forwarding from 127\.0\.0\.1:(\d+) -> ", lines.readline())
    assert found is not None
    return int(found[1])


def _said(port: int, data: bytes) -> bytes:
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        while piece := connection.recv(1 << 16):
            answer += piece
    return answer


def test_ports_are_forwarded(served: Serving) -> None:
    with echoing() as port, going_on(served, "port-forward", "pod/shell", f":{port}") as lines:
        local = _forwarded(lines)
        for data in (b"hello", b"again", b"x" * 300_000):
            assert _said(local, data) == data * 2


def test_a_port_nobody_listens_on_closes_the_connection(served: Serving) -> None:
    with echoing() as port:
        pass
    with going_on(served, "port-forward", "pod/shell", f":{port}") as lines:
        assert _said(_forwarded(lines), b"") == b""


def test_ports_of_simulated_pods_are_refused_in_words(served: Serving) -> None:
    ended = run(served, "port-forward", "old", ":80")
    assert ended.code == 1
    assert "pod old is simulated, so nothing listens on its ports" in ended.err


def test_a_node_that_cannot_be_reached_is_named(served: Serving) -> None:
    port, served.kubelet_port = served.kubelet_port, 1
    try:
        logs, command = run(served, "logs", "shell"), run(served, "exec", "shell", "--", "ls")
    finally:
        served.kubelet_port = port
    assert logs.code == command.code == 1
    assert 'Error from server: Get "https://127.0.0.1:1/containerLogs/default/shell/c0' in logs.err
    assert "error dialing backend: dial tcp 127.0.0.1:1:" in command.err


def test_a_cluster_that_was_just_started_shows_logs_and_runs_commands(tmp_path: Path) -> None:
    """`nodeward up` with simulated nodes, as users see it."""
    check_version()
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        "apiVersion: nodeward.dev/v1alpha1\nkind: Fleet\npools: [{name: new}, {name: old, version: '1.35'}]\n"
    )
    with running_cluster(tmp_path / "home", "--fleet-config", str(fleet)) as cluster:
        kubectl = Kubectl(cluster, "default", tmp_path)
        for name in ("new", "old"):
            node = f'{{"spec": {{"nodeName": "{name}-0"}}}}'
            kubectl("run", name, "--image=image", f"--overrides={node}")
            kubectl("wait", "--for=condition=Ready", f"pod/{name}", f"--timeout={PATIENCE_SECONDS:.0f}s")
            assert (
                kubectl("logs", name) == "this container is simulated: it runs nothing and writes nothing\n"
            )
            assert kubectl("exec", name, "--", "uname", "-a") == "simulated: uname -a\n"
