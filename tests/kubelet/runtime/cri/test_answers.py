"""Reading what the runtime says: messages, statuses, image names, how commands ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodeward.base.errors import WorldError
from nodeward.kubelet.runtime.cri.endings import addresses, exited, found_container, found_pod, newest
from nodeward.kubelet.runtime.cri.execution import exit_code
from nodeward.kubelet.runtime.cri.messages import EXITED, RUNNING, message
from nodeward.kubelet.runtime.cri.pulling import full_name
from nodeward.kubelet.runtime.cri.runtime import abilities_of

LABELS = {"io.kubernetes.pod.uid": "u1", "io.kubernetes.container.name": "c"}


def status(**fields: Any) -> Any:
    usual = {"id": "id-1", "labels": LABELS, "started_at": 100, "finished_at": 200, "state": EXITED}
    return message("ContainerStatus")(**{**usual, **fields})


def test_messages_are_on_the_wire_as_the_protocol_says() -> None:
    made = message("PodSandboxConfig")(
        metadata={"name": "p", "attempt": 1},
        labels={"k": "v"},
        linux={"security_context": {"namespace_options": {"network": 2}}},
    )
    wire = bytes.fromhex("0a050a0170200132060a016b1201764206120" + "40a020802")
    assert made.SerializeToString(deterministic=True) == wire
    assert message("PodSandboxConfig").FromString(wire) == made


def test_the_runtime_can_do_what_it_says_and_this_agent_can_make_use_of() -> None:
    assert abilities_of(message("StatusResponse")().features) == {}
    both = message("StatusResponse").FromString(bytes.fromhex("220410011801"))
    assert (both.features.user_namespaces_host_network, both.features.mount_options) == (True, True)
    assert abilities_of(both.features) == {"runtime.mountOptions": "true"}


def test_fields_nobody_asked_for_are_skipped() -> None:
    assert message("VersionResponse").FromString(b"\x12\x01r\xfa\x3e\x02zz").runtime_name == "r"


@pytest.mark.parametrize(
    ("fields", "code", "reason"),
    [
        ({"reason": "Completed"}, 0, "Completed"),
        ({"exit_code": 3, "reason": "Error"}, 3, "Error"),
        ({"exit_code": 137, "reason": "OOMKilled"}, 137, "OOMKilled"),
        ({"exit_code": 1}, 1, "Error"),
        ({}, 0, "Completed"),
    ],
)
def test_an_end_is_told_in_the_words_of_the_runtime(fields: dict[str, Any], code: int, reason: str) -> None:
    event = exited(status(**fields))
    assert (event.uid, event.container, event.id) == ("u1", "c", "id-1")
    assert (event.exit_code, event.reason, event.started_ns, event.at_ns) == (code, reason, 100, 200)


def test_nothing_ends_before_it_has_started() -> None:
    assert exited(status(started_at=300)).at_ns == 300


def test_last_words_are_read_where_the_container_wrote_them(tmp_path: Path) -> None:
    file = tmp_path / "message"
    file.write_text("bye")
    annotations = {"io.kubernetes.container.terminationMessagePath": "/dev/last"}
    mounts = [
        {"container_path": "/data", "host_path": "/none"},
        {"container_path": "/dev/last", "host_path": str(file)},
    ]
    assert exited(status(annotations=annotations, mounts=mounts)).message == "bye"
    assert exited(status(annotations=annotations, message="failed to run")).message == "failed to run"


def test_last_words_may_come_from_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("2026-01-01T00:00:00Z stderr F it broke\n")
    annotations = {"io.kubernetes.container.terminationMessagePolicy": "FallbackToLogsOnError"}
    assert exited(status(annotations=annotations, log_path=str(log), exit_code=1)).message == "it broke\n"
    assert exited(status(annotations=annotations, log_path=str(log))).message == ""


def test_a_container_is_found_as_it_is() -> None:
    shown = status(
        state=RUNNING,
        metadata={"name": "c", "attempt": 4},
        image={"image": "sha256:1", "user_specified_image": "app:2"},
        image_ref="app@sha256:1",
    )
    found = found_container(message("ContainerStatusResponse")(status=shown))
    assert (found.name, found.attempt, found.image, found.image_id) == ("c", 4, "app:2", "app@sha256:1")
    assert found.exited is None


def test_of_several_sandboxes_the_ready_one_counts_and_then_the_latest() -> None:
    def sandbox(name: str, state: int, attempt: int) -> Any:
        return message("PodSandbox")(
            id=name, state=state, metadata={"uid": "u1", "name": "p", "attempt": attempt}
        )

    ready, dead, older = sandbox("ready", 0, 1), sandbox("dead", 1, 2), sandbox("older", 1, 0)
    assert newest([older, dead, ready]).id == "ready"
    assert newest([older, dead]).id == "dead"
    assert found_pod(ready, ("10.0.0.1",), []).sandbox_id == "ready"
    lost = found_pod(dead, ("10.0.0.1",), [])
    assert (lost.sandbox_id, lost.ips) == ("", ())


def test_all_addresses_of_a_sandbox_are_read() -> None:
    network = {"ip": "10.0.0.1", "additional_ips": [{"ip": "fd00::1"}]}
    assert addresses(message("PodSandboxStatus")(network=network)) == ("10.0.0.1", "fd00::1")
    assert addresses(message("PodSandboxStatus")()) == ()


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("team/app:2", "docker.io/team/app:2"),
        ("localhost/app", "localhost/app:latest"),
        ("registry.example:5000/app", "registry.example:5000/app:latest"),
        ("example.com/a/b:1@sha256:00", "example.com/a/b@sha256:00"),
    ],
)
def test_an_image_is_known_under_its_full_name(image: str, name: str) -> None:
    assert full_name(image) == name


def test_how_a_command_ended_is_in_its_last_status() -> None:
    assert exit_code(b'{"metadata":{},"status":"Success"}') == 0
    causes = [{"reason": "ExitCode", "message": "42"}]
    failure = {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}
    assert exit_code(json.dumps(failure).encode()) == 42
    with pytest.raises(WorldError, match="no such file"):
        exit_code(b'{"status":"Failure","message":"no such file"}')
    with pytest.raises(WorldError, match="without saying"):
        exit_code(b"")
