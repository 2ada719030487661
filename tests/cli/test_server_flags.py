"""The flags of `nodeward up` and `nodeward apiserver`: what they mean, and what is said when they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeward.base.errors import ConfigError
from nodeward.cli.main import build_parser, main
from nodeward.cli.server_flags import ServerOptions, read_flags


def read(*arguments: str) -> ServerOptions:
    return read_flags(build_parser().parse_args(arguments))


def test_without_flags_everything_is_in_the_usual_place() -> None:
    wanted = read("up")
    assert wanted.home == Path(".nodeward")
    assert wanted.kubeconfig == Path(".nodeward/kubeconfig")
    assert wanted.store_text == "sqlite:.nodeward/state.db"
    assert (wanted.service_cidr, wanted.service_address) == ("10.96.0.0/16", "10.96.0.1")
    assert "NodeRestriction" in wanted.admission
    assert (wanted.static_tokens, wanted.warnings) == ({}, ())


def test_the_stores_of_both_commands_are_named_alike() -> None:
    assert read("up", "--store", "memory").store_text == "memory"
    assert read("up", "--store", "sqlite", "--dir", "/d").store_text == "sqlite:/d/state.db"
    assert read("up", "--store", "etcd://a:1,b:2").store_text == "etcd://a:1,b:2"
    assert read("apiserver", "--dir", "/d").store_text == "sqlite:/d/state.db"
    servers = read("apiserver", "--etcd-servers", "https://a:1/, https://b:2", "--etcd-cafile", "/ca of etcd")
    assert servers.store_text == "etcds://a:1,b:2?ca=%2Fca+of+etcd"


def test_node_restriction_is_on_unless_it_is_switched_off() -> None:
    assert read("up", "--enable-admission-plugins", "NodeRestriction").enable_admission == (
        "NodeRestriction",
    )
    assert "NodeRestriction" not in read("up", "--disable-admission-plugins", "NodeRestriction").admission


def test_an_operator_hears_of_gates_that_will_go() -> None:
    (warning,) = read("up", "--feature-gates", "NodeDeclaredFeatures=true").warnings
    assert warning.startswith("setting GA feature gate NodeDeclaredFeatures=true")


def test_users_are_read_from_the_token_file(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('t0,alice,1,"dev,ops"\nt0,bob,2\n')
    wanted = read("up", "--token-auth-file", str(tokens))
    assert wanted.static_tokens["t0"].name == "bob"
    assert wanted.warnings == (f"duplicate token has been found in token file '{tokens}', record number '2'",)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "up --kubernetes-version 1.50",
            "--kubernetes-version: emulation version 1.50 is not between [1.34, 1.38]",
        ),
        ("up --kubernetes-version x", '--kubernetes-version: emulation version "x" is not of the form'),
        (
            "up --feature-gates NodeDeclaredFeaturs=true",
            '--feature-gates: unrecognized feature gate: NodeDeclaredFeaturs (did you mean "NodeDeclaredFeatures"?)',
        ),
        (
            "up --feature-gates NodeDeclaredFeatures",
            "--feature-gates: missing bool value for NodeDeclaredFeatures",
        ),
        (
            "up --feature-gates NodeDeclaredFeatures=no",
            "--feature-gates: invalid value of NodeDeclaredFeatures=no",
        ),
        ("up --store nonsense", "store 'nonsense' is none that is known"),
        ("up --store sqlit", "did you mean sqlite?"),
        ("up --store etcd://", "'' is no HOST:PORT"),
        ("up --service-cluster-ip-range banana", "--service-cluster-ip-range: 'banana' is no range"),
        (
            "up --service-cluster-ip-range 10.0.0.1/16",
            "--service-cluster-ip-range: '10.0.0.1/16' is no range",
        ),
        ("up --service-cluster-ip-range 10.0.0.0/30", "10.0.0.0/30 must have at least 8 addresses"),
        ("up --enable-admission-plugins Foo", 'enable-admission-plugins plugin "Foo" is unknown'),
        (
            "up --token-auth-file /nowhere/at/all",
            "--token-auth-file: cannot read /nowhere/at/all: No such file",
        ),
        ("apiserver --etcd-servers a:1", "--etcd-servers: 'a:1' is no URL"),
        (
            "apiserver --etcd-servers http://a:1,https://b:1",
            "--etcd-servers: write either http:// or https://",
        ),
        (
            "apiserver --etcd-servers http://a:1 --etcd-cafile f",
            "--etcd-cafile: for TLS only; write https://",
        ),
        ("apiserver --etcd-cafile f", "--etcd-cafile: there is no --etcd-servers to use it for"),
    ],
)
def test_a_wrong_flag_is_named_and_leaves_no_trace(
    line: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("nodeward: ")
    assert said in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_token_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"--token-auth-file: .*/tokens is not a text file"):
        read("up", "--token-auth-file", str(tokens))


@pytest.mark.parametrize(
    "content",
    [
        "clusters: [{name: production}]\nusers: []\n",
        "clusters: [{name: nodeward}, {name: production}]\n",
        "clusters: [nodeward]\n",
        "dear diary\n",
        "{",
        "\x00\x01",
    ],
)
def test_what_somebody_else_keeps_is_not_written_over(content: str, tmp_path: Path) -> None:
    theirs = tmp_path / "config"
    theirs.write_text(content)
    with pytest.raises(ConfigError, match="has something else in it and is not written over"):
        read("up", "--kubeconfig", str(theirs))


def test_a_kubeconfig_of_ours_or_an_empty_file_is_written_anew(tmp_path: Path) -> None:
    ours = tmp_path / "config"
    for content in ("", "\n", "clusters: [{name: nodeward, cluster: {server: https://h:1}}]\n"):
        ours.write_text(content)
        assert read("up", "--kubeconfig", str(ours)).kubeconfig == ours
    assert read("up", "--kubeconfig", str(tmp_path / "no" / "such")).kubeconfig == tmp_path / "no" / "such"


def test_a_kubeconfig_cannot_be_a_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a directory; name a file in it"):
        read("up", "--kubeconfig", str(tmp_path))
