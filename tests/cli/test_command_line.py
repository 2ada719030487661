"""The command line itself: help, completion, wrong usage. Nothing is started here."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from nodeward import __version__
from nodeward.bench.parts import PARTS
from nodeward.cli.flags import BENCHMARKS, COMMANDS
from nodeward.cli.main import main

QUESTIONS = ("discover", "infer", "match", "requirements")
PAGES = [[command.name] for command in COMMANDS] + [["features", question] for question in QUESTIONS]


def ended(arguments: Sequence[str], capture: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """How a command that ends by itself ends: its exit code and what it said."""
    try:
        code = main(arguments)
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    out, err = capture.readouterr()
    return code, out, err


@pytest.fixture(autouse=True)
def narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("page", [[], *PAGES], ids=" ".join)
def test_every_command_explains_itself_in_eighty_columns(
    page: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ended([*page, "--help"], capsys)
    assert (code, err) == (0, "")
    assert out.startswith(" ".join(["usage: nodeward", *page]))
    described = out.partition("\n\n")[2].split("\n")[0]
    assert described[0].isupper(), "a page says first what the command does"
    # The epilogue of the first page is a table; a table may be wide.
    assert [line for line in out.partition("first steps:")[0].splitlines() if len(line) > 84] == []


@pytest.mark.parametrize("page", PAGES, ids=" ".join)
def test_every_flag_is_explained(page: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = ended([*page, "--help"], capsys)
    options = out.partition("\noptions:\n")[2]
    for entry in re.split(r"\n(?=  -)", options.strip("\n")):
        words = re.split(r"\s{2,}|\n", entry.strip(), maxsplit=1)
        assert len(words) == 2, f"{entry!r} has no explanation"


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["--version"], capsys) == (0, f"nodeward {__version__}\n", "")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("frobnicate", "nodeward: error: argument COMMAND: invalid choice: 'frobnicate'"),
        ("up --prot 5", "nodeward up: error: unrecognized arguments: --prot 5 (did you mean --port?)"),
        ("up --por 5", "nodeward up: error: unrecognized arguments: --por 5 (did you mean --port?)"),
        ("up more", "nodeward up: error: unrecognized arguments: more"),
        ("up --port 99999", "nodeward up: error: argument --port: '99999' is no port"),
        ("up --port -1", "nodeward up: error: argument --port: '-1' is no port"),
        ("up --port x", "nodeward up: error: argument --port: 'x' is no port"),
        ("up --dir=", "nodeward up: error: argument --dir: want a directory, not nothing"),
        ("up --anonymous-auth maybe", "argument --anonymous-auth: invalid choice: 'maybe'"),
        ("apiserver --store memory", "nodeward apiserver: error: unrecognized arguments: --store memory"),
        ("features", "nodeward features: error: the following arguments are required: QUESTION"),
        (
            "features discover --feature-gate A=true",
            "nodeward features discover: error: unrecognized arguments: --feature-gate A=true"
            " (did you mean --feature-gates?)",
        ),
        ("features match pod.yaml", "the following arguments are required: NODE.yaml"),
        ("bench --pods 0", "nodeward bench: error: argument --pods: '0' is no count"),
        ("completion tcsh", "argument shell: invalid choice: 'tcsh' (choose from 'bash', 'zsh', 'fish')"),
    ],
)
def test_wrong_usage_ends_with_two_and_says_what_is_wrong(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ended(line.split(), capsys)
    assert (code, out) == (2, "")
    assert said in err.splitlines()[-1]


def test_whoever_types_nothing_more_sees_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    _, help_, _ = ended(["--help"], capsys)
    assert ended([], capsys) == (2, "", help_)


def test_an_unknown_benchmark_is_told_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ended(["bench", "nope"], capsys)
    assert (code, out) == (1, "")
    assert err == f"nodeward: there is no benchmark 'nope'; there are: {', '.join(BENCHMARKS)}\n"


def test_the_help_knows_every_benchmark() -> None:
    assert tuple(PARTS) == BENCHMARKS


# -- completion


def completions(script: str, directory: Path, *words: str) -> list[str]:
    """What bash offers after these words, of which the last is being typed."""
    typed = " ".join(f"'{word}'" for word in ("nodeward", *words))
    asking = (
        f"{script}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words)}\n_nodeward\n"
        'for each in "${COMPREPLY[@]}"; do echo "$each"; done'
    )
    answer = subprocess.run(["bash", "-c", asking], capture_output=True, text=True, cwd=directory, check=True)
    assert answer.stderr == ""
    return answer.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["u"], ["up"]),
        ([""], [command.name for command in COMMANDS]),
        (["--v"], ["--version"]),
        (["features", ""], list(QUESTIONS)),
        (["features", "discover", "--k"], ["--kubernetes-version"]),
        (["features", "infer", "p"], ["pod of mine.yaml"]),
        (["features", "infer", "--old", "p"], ["pod of mine.yaml"]),
        (["features", "match", "-o", ""], ["text", "json"]),
        (["up", "--ku"], ["--kubernetes-version", "--kubeconfig"]),
        (["up", "--dir", ""], ["state"]),
        (["up", "--store", ""], ["memory", "sqlite", "etcd://"]),
        (["up", "--anonymous-auth", "=", "t"], ["true"]),
        (["up", "--port", ""], []),
        (["up", ""], []),
        (["apiserver", "--etcd-s"], ["--etcd-servers"]),
        (["bench", ""], list(BENCHMARKS)),
        (["completion", ""], ["bash", "zsh", "fish"]),
    ],
    ids=" ".join,
)
def test_bash_completes_what_can_stand_there(
    words: list[str], offered: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pod of mine.yaml").touch()
    (tmp_path / "state").mkdir()
    _, script, _ = ended(["completion", "bash"], capsys)
    assert completions(script, tmp_path, *words) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_scripts_are_good_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, script, err = ended(["completion", shell], capsys)
    assert (code, err) == (0, "")
    checked = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_fish_is_told_every_command_and_flag(capsys: pytest.CaptureFixture[str]) -> None:
    _, script, _ = ended(["completion", "fish"], capsys)
    assert all(line.startswith("complete -c nodeward ") for line in script.splitlines())
    for word in (*(command.name for command in COMMANDS), *QUESTIONS):
        assert f" -a {word} -d " in script
    for flag in ("feature-gates", "etcd-servers", "config", "pods", "old"):
        assert f" -l {flag} " in script
