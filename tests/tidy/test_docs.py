"""The documentation tells the truth: numbers, names, paths, links and make targets are those of the code.

A code span of the form `nodeward.some.module.NAME = value` (or `...SomeDataclass.field = default`) anywhere in a page
is compared with the code; a code span that is a path or a dotted name must exist.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
from collections.abc import Iterator

import pytest

from tests.tidy.repository import ROOT, documents, read, settle

_CONSTANT = re.compile(r"`(nodeward(?:\.\w+)+) = ([^`]+)`")
_DOTTED = re.compile(r"`(nodeward(?:\.\w+)+)`")
_PATH = re.compile(r"`((?:nodeward|tests|docs|\.ci)/[\w./-]*)`")
_LINK = re.compile(r"\]\((?!\w+://)([^)#\s]+)[^)]*\)")
_TARGET = re.compile(r"`make ([a-z-]+)|^make ([a-z-]+)", re.MULTILINE)


def stale_constants(path: str, text: str) -> Iterator[str]:
    for name, value in _CONSTANT.findall(text):
        try:
            real = real_value(name)
        except (ImportError, AttributeError):
            yield f"{path}: {name} is gone"
            continue
        if real != ast.literal_eval(value):
            yield f"{path}: {name} is {real!r}, not {value}"


def real_value(name: str) -> object:
    """What a dotted name stands for: a module's constant, an attribute, or the default of a dataclass's field."""
    if _is_module(name):
        return importlib.import_module(name)
    where, _, last = name.rpartition(".")
    holder = real_value(where)
    if isinstance(holder, type) and dataclasses.is_dataclass(holder):
        defaults = {field.name: field.default for field in dataclasses.fields(holder)}
        if last in defaults:
            return defaults[last]
    found: object = getattr(holder, last)
    return found


def _is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def stale_names(path: str, text: str) -> Iterator[str]:
    folder = (ROOT / path).parent
    for name in _PATH.findall(text):
        if not (ROOT / name).exists():
            yield f"{path}: there is no {name}"
    for name in _DOTTED.findall(text):
        if not _resolves(name):
            yield f"{path}: there is no {name}"
    for target in _LINK.findall(text):
        if not (folder / target).exists():
            yield f"{path}: the link to {target} leads nowhere"


def _resolves(name: str) -> bool:
    try:
        real_value(name)
    except (ImportError, AttributeError):
        return False
    return True


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))


def test_constants_in_the_docs_are_those_of_the_code() -> None:
    settle(text for path in documents() for text in stale_constants(path, read(path)))


def test_the_page_of_limits_holds_them() -> None:
    limits, _, _ = read("docs/limits.md").partition("\n## One request against all others")
    rows = [line for line in limits.splitlines() if line.startswith("|")][2:]
    settle(f"docs/limits.md: no constant in the row {row}" for row in rows if not _CONSTANT.search(row))
    assert len(rows) >= 12


def test_paths_names_and_links_in_the_docs_exist() -> None:
    settle(text for path in documents() for text in stale_names(path, read(path)))


def test_make_targets_in_the_docs_exist() -> None:
    known = make_targets()
    settle(
        f"{path}: make {target} is not a target"
        for path in documents()
        for pair in _TARGET.findall(read(path))
        for target in pair
        if target and target not in known
    )


def test_make_help_lists_every_target() -> None:
    listed = set(re.findall(r"^([a-z-]+):.*## ", read("Makefile"), re.MULTILINE))
    assert listed == make_targets()


def test_readme_opens_with_what_it_is_for_and_the_two_commands() -> None:
    prose, _, rest = read("README.md").partition("```")
    commands = [line.split("#")[0].strip() for line in rest.partition("```")[0].splitlines()[1:]]
    assert [line for line in commands if line] == ["make up", "make test"]
    assert len(prose) > 200


def test_changelog_has_a_place_for_what_is_not_released() -> None:
    assert "\n## [Unreleased]\n" in read("CHANGELOG.md")


def test_contributing_ends_with_six_things_to_do_before_finishing() -> None:
    last = read("CONTRIBUTING.md").rpartition("## Before you finish")[2]
    assert [line[:2] for line in last.split("\n") if line] == ["1.", "2.", "3.", "4.", "5.", "6."]


def test_every_decision_is_listed_numbered_and_complete() -> None:
    pages = sorted(path.name for path in (ROOT / "docs/decisions").glob("[0-9]*.md"))
    listed = re.findall(
        r"^\| \[(\d+)\]\(([^)]+)\) \| (.+?) \| (\w+)", read("docs/decisions/README.md"), re.MULTILINE
    )
    assert [name for _, name, _, _ in listed] == pages
    assert [number for number, _, _, _ in listed] == [f"{count:04}" for count in range(1, len(pages) + 1)]
    for number, name, title, status in listed:
        text = read(f"docs/decisions/{name}")
        assert text.startswith(f"# {number}: {title}\n\nStatus: {status}"), name
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"], name


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("`nodeward.api.fields.NO_SUCH = 1`", "is gone"),
        ("`nodeward.__version__ = 'never'`", "not 'never'"),
        ("`nodeward.apiserver.server.Settings.kubernetes_version = '1.0'`", "not '1.0'"),
    ],
)
def test_the_rule_sees_a_stale_constant(text: str, complaint: str) -> None:
    (found,) = stale_constants("README.md", text)
    assert complaint in found


@pytest.mark.parametrize(
    "text",
    ["`nodeward/no/such.py`", "`nodeward.api.no_such`", "`nodeward.no.Such`", "[x](docs/no-such.md#y)"],
)
def test_the_rule_sees_a_stale_name(text: str) -> None:
    assert len(list(stale_names("README.md", text))) == 1


def test_the_rule_lets_true_names_be() -> None:
    text = "`nodeward/api/fields.py` `nodeward.api.fields.KubeTop` [x](docs/limits.md) [y](https://example.com/z)"
    assert not list(stale_names("README.md", text))
