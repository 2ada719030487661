"""`nodeward up` as a process among others: what it writes and where, what it says, how it ends."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.e2e.cluster import command, refusal, running_cluster
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a cluster that was stopped, to be copied."""
    home = tmp_path_factory.mktemp("stopped") / "state"
    with running_cluster(home):
        pass
    return home


def test_everything_is_in_one_directory_that_only_its_owner_can_open(tmp_path: Path) -> None:
    home = tmp_path / "a place with spaces" / "state"
    with running_cluster(home, "--store", "sqlite") as cluster:
        # As a shell reads it: the line can be typed as it stands.
        assert shlex.split(str(cluster.kubeconfig)) == [str(home / "kubeconfig")]
        assert {path.name for path in home.iterdir()} >= {"kubeconfig", "pki", "state.db"}
        # What containers see of a node is readable to them; nobody else gets past the directory around it.
        outside = [path for path in home.rglob("*") if home / "nodes" not in (path, *path.parents)]
        for path in (home, *outside):
            wanted = 0o700 if path.is_dir() else 0o600
            assert (path.name, oct(path.stat().st_mode & 0o777)) == (path.name, oct(wanted))
    assert [path.name for path in tmp_path.rglob("*") if home not in (path, *path.parents)] == [
        home.parent.name
    ]


def test_more_is_said_when_asked_but_never_a_secret(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("swordfish,alice,1\n")
    secret = {"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}}
    with running_cluster(tmp_path / "state", "--token-auth-file", str(tokens), "-vv") as cluster:
        assert cluster.call("POST", "/api/v1/namespaces/default/secrets", secret)[0] == 201
        assert cluster.call("GET", "/api/v1/namespaces/default/secrets/s?pretty=sesame")[0] == 200
        status, token = cluster.call("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {})
        assert status == 201
        cluster.stop(signal.SIGTERM)
        said = cluster.errors()
    assert f"store sqlite:{tmp_path / 'state' / 'state.db'}" in said
    assert "create /api/v1/namespaces/default/secrets by kubernetes-admin: 201 in " in said
    assert "get /api/v1/namespaces/default/secrets/s by kubernetes-admin: 200 in " in said
    key = (tmp_path / "state" / "pki" / "ca.key").read_text().splitlines()[1]
    for hidden in ("swordfish", "hunter2", "sesame", token["status"]["token"], key):
        assert hidden not in said


def test_nothing_is_said_unasked(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as cluster:
        assert cluster.call("GET", "/api/v1/namespaces/nowhere")[0] == 404
        cluster.stop()
        assert cluster.errors() == "stopping...\n"


def test_clusters_live_side_by_side(tmp_path: Path) -> None:
    with running_cluster(tmp_path / "one") as one, running_cluster(tmp_path / "two") as two:
        assert one.call("POST", "/api/v1/namespaces", {"metadata": {"name": "here"}})[0] == 201
        assert two.call("GET", "/api/v1/namespaces/here")[0] == 404


def test_ctrl_c_while_it_starts_ends_it_at_once(tmp_path: Path) -> None:
    """An etcd that accepts and never answers keeps it starting."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(PATIENCE_SECONDS)
        store = f"etcd://127.0.0.1:{silent.getsockname()[1]}"
        process = subprocess.Popen(
            command("up", "--dir", str(tmp_path / "state"), "--port", "0", "--store", store),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            with silent.accept()[0]:
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (130, "", "stopped before it was ready\n")


def test_a_kubeconfig_is_written_where_asked(tmp_path: Path) -> None:
    asked = tmp_path / "not" / "there" / "config"
    with running_cluster(tmp_path / "state", "--store", "memory", "--kubeconfig", str(asked)) as cluster:
        assert cluster.kubeconfig == asked
        assert yaml.safe_load(asked.read_text())["clusters"][0]["cluster"]["server"] == cluster.url
    assert not (tmp_path / "state" / "kubeconfig").exists()


def test_what_cannot_be_made_or_written_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    assert (
        refusal(file / "state", "--port", "0") == f"nodeward: cannot make the directory {file}: File exists\n"
    )
    said = refusal(tmp_path / "state", "--port", "0", "--kubeconfig", str(file / "config"))
    assert said == f"nodeward: cannot make the directory {file}: File exists\n"
    assert refusal(tmp_path / "two", "--port", "0", "--bind-address", "no.such.host.invalid").endswith(
        "; choose another with --bind-address\n"
    )
    assert not (tmp_path / "two").exists()


def humbly(*arguments: str) -> list[str]:
    """A command that may not do more with files than their modes say, even if it is root who runs the tests."""
    if os.geteuid() != 0:
        return command(*arguments)
    if shutil.which("setpriv") is None:
        pytest.skip("root may write everything, and there is no setpriv (util-linux) here to make it humble")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command(*arguments)]


@pytest.mark.parametrize(
    ("what", "mode", "said"),
    [
        ("", 0o500, "state.db: "),
        ("", 0o000, "Permission denied"),
        ("state.db", 0o400, "state.db: attempt to write a readonly database"),
        ("state.db", 0o000, "state.db: Permission denied"),
        ("pki/ca.key", 0o000, "pki/ca.key: "),
    ],
)
def test_what_may_not_be_read_or_written_is_told_at_once(
    stopped: Path, tmp_path: Path, what: str, mode: int, said: str
) -> None:
    home = shutil.copytree(stopped, tmp_path / "state")
    locked = home / what
    usual = locked.stat().st_mode
    locked.chmod(mode)
    try:
        ended = subprocess.run(
            humbly("up", "--dir", str(home), "--port", "0"),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    finally:
        locked.chmod(usual)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("nodeward: ")
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "apiserver.crt", "admin.key", "sa.key"])
def test_a_damaged_certificate_or_key_is_named_and_left_alone(
    stopped: Path, tmp_path: Path, name: str
) -> None:
    home = shutil.copytree(stopped, tmp_path / "state")
    damaged = home / "pki" / name
    damaged.write_text("garbage\n")
    said = refusal(home, "--port", "0", "--store", "memory")
    assert said.startswith(f"nodeward: {damaged} is not a PEM ")
    assert damaged.read_text() == "garbage\n"


def test_help_needs_nothing_that_is_slow_to_import() -> None:
    """`nodeward --help` is there in 80 ms because of what it leaves alone."""
    asking = "import sys; from nodeward.cli.main import build_parser; build_parser(); print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", asking], capture_output=True, text=True, check=True)
    loaded = set(told.stdout.split())
    assert "nodeward.cli.flags" in loaded
    assert not loaded & {"asyncio", "dataclasses", "difflib", "inspect", "logging", "msgspec", "ssl", "yaml"}
