"""One module, one idea: a docstring that says which, a size that fits in the head, somebody who needs it."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Sequence

from tests.tidy.repository import ROOT, Module, imported, module, modules, read, settle

#: Past this a module is two ideas.
HARD_LINES = 500
#: Past this it is worth a look; the summary of a test run names them.
SOFT_LINES = 300

#: Names that say nothing about what is inside.
JUNK_DRAWERS = frozenset({"utils", "util", "helpers", "helper", "common", "misc", "shared", "stuff"})

#: Rooms nobody enters yet, each with who will. An entry that is no longer needed fails the test.
WAITING = {
    "nodeward/autoscaler/templates.py": "the autoscaler itself",
    "nodeward/autoscaler/upcoming.py": "the autoscaler itself",
    "nodeward/rules/skew.py": "the rehearsal",
    "nodeward/machinery/virtual_loop.py": "the rehearsal; the tests live on it already",
}
#: Called so before the rule, and still to be renamed.
MISNAMED: tuple[str, ...] = ()
#: Docstrings whose first sentence runs over two lines, still to be shortened.
LONG_WINDED: tuple[str, ...] = ()


def oversized(inside: Sequence[Module], limit: int) -> list[str]:
    return [f"{each.path}: {each.lines} lines (more than {limit})" for each in inside if each.lines > limit]


def undocumented(where: Module) -> Iterator[str]:
    text = ast.get_docstring(where.tree, clean=True)
    if not text:
        yield f"{where.path}: no docstring: say what this room is for, what comes in and goes out"
        return
    if not text.splitlines()[0].rstrip().endswith((".", ":", "?", "!")):
        yield f"{where.path}: the first line of the docstring must be a sentence that stands alone"


def unused(inside: Sequence[Module], entries: frozenset[str]) -> list[str]:
    """Modules that no other module imports. A package lives by what is in it."""
    known = frozenset(each.name for each in inside)
    needed = {name for each in inside for name, _ in imported(each, known)} | entries
    return [each.path for each in inside if not each.is_package and each.name not in needed]


def _entries() -> frozenset[str]:
    scripts = tomllib.loads(read("pyproject.toml"))["project"]["scripts"]
    return frozenset({"nodeward.__main__", *(target.partition(":")[0] for target in scripts.values())})


def test_no_module_is_longer_than_one_idea() -> None:
    settle(oversized(modules(), HARD_LINES))


def test_every_module_says_what_it_is_for() -> None:
    settle((text for each in modules() for text in undocumented(each)), LONG_WINDED)


def test_no_module_is_a_junk_drawer() -> None:
    settle(
        (
            f"{each.path}: a name that says nothing: call it after what is inside"
            for each in modules()
            if set(each.name.split(".")) & JUNK_DRAWERS
        ),
        MISNAMED,
    )


def test_every_module_is_needed_by_another() -> None:
    settle(unused(modules(), _entries()), tuple(WAITING))


def test_every_package_can_be_imported_by_name() -> None:
    folders = {(ROOT / each.path).parent for each in modules()}
    settle(
        f"{folder.relative_to(ROOT)}: no __init__.py"
        for folder in folders
        if not (folder / "__init__.py").exists()
    )


def test_the_rule_sees_a_module_nobody_imports() -> None:
    inside = [
        module("nodeward/a/__init__.py", ""),
        module("nodeward/a/used.py", ""),
        module("nodeward/a/dead.py", "import nodeward.a.dead"),
        module("nodeward/a/entry.py", "def f():\n    from nodeward.a import used"),
    ]
    assert unused(inside, frozenset({"nodeward.a.entry"})) == ["nodeward/a/dead.py"]


def test_the_rule_sees_length_and_silence() -> None:
    long = module("nodeward/a.py", "x = 1\n" * 501)
    assert oversized([long], HARD_LINES) == ["nodeward/a.py: 501 lines (more than 500)"]
    assert len(list(undocumented(long))) == 1
    assert len(list(undocumented(module("nodeward/a.py", '"""A title without an end"""')))) == 1
    assert not list(undocumented(module("nodeward/a.py", '"""What this is for.\n\nMore."""')))
