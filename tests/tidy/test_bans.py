"""What must not stand in the code, each with what to write instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.tidy.repository import Module, module, modules, read, settle, text_files

_CLOCK = "ask the Clock handed to the constructor"
_CHANCE = "ask the Chance handed to the constructor"

#: A dotted name, or the beginning of one (`random.`), and what to use instead.
BANNED = {
    "time.time": _CLOCK,
    "time.monotonic": _CLOCK,
    "time.perf_counter": _CLOCK,
    "time.process_time": _CLOCK,
    "time.sleep": "await clock.sleep(seconds)",
    "datetime.datetime.now": _CLOCK,
    "datetime.datetime.utcnow": _CLOCK,
    "datetime.datetime.today": _CLOCK,
    "datetime.date.today": _CLOCK,
    "uuid.uuid1": _CHANCE,
    "uuid.uuid4": _CHANCE,
    "random.": _CHANCE,
    "secrets.": _CHANCE,
    "os.urandom": _CHANCE,
    "asyncio.sleep": "await clock.sleep(seconds); for a zero sleep await clock.yield_now()",
    "threading.Timer": "clock.call_later(seconds, callback)",
    "os.environ": "take a flag in cli and pass the value in",
    "os.getenv": "take a flag in cli and pass the value in",
}
#: The one room that provides the real world.
REAL_WORLD = "nodeward/machinery/clock.py"
#: The command line may read the environment, and so may the benchmarks, which start it.
READS_ENVIRONMENT = ("nodeward/cli/", "nodeward/bench/")

#: Where anything at all may be caught, because one failure must not take the others with it.
CATCHES_EVERYTHING = (
    "nodeward/cluster/component.py",  # whatever ends a component, it is started again
    "nodeward/machinery/serving/connection.py",
    "nodeward/controllers/runner.py",
    "nodeward/machinery/eager.py",
    "nodeward/scheduler/plugin_guard.py",
)

#: Where a billion stands for something: the definition itself, and billions that are not nanoseconds.
BILLIONS = (
    "nodeward/apiserver/metrics.py",  # bytes
    "nodeward/base/duration.py",
    "nodeward/base/quantity.py",  # billionths of a unit
    "nodeward/kubelet/downward.py",  # billionths of a unit
    "nodeward/validation/scheduling.py",  # the highest priority of a user's class
)


def banned_names(where: Module) -> Iterator[str]:
    """Every use of a banned name, called or not, whatever it was imported as."""
    if where.path == REAL_WORLD:
        return
    names = _aliases(where)
    for node in where.nodes:
        if not isinstance(node, ast.Attribute | ast.Name):
            continue
        full = _dotted(node, names)
        if not full:
            continue
        for banned, instead in BANNED.items():
            if full in (banned, f"{banned}_ns") or (banned.endswith(".") and full.startswith(banned)):
                if banned in ("os.environ", "os.getenv") and where.path.startswith(READS_ENVIRONMENT):
                    continue
                yield f"{where.path}:{node.lineno}: {full}: {instead}"


def _aliases(where: Module) -> dict[str, str]:
    names: dict[str, str] = {}
    for node in where.nodes:
        if isinstance(node, ast.Import):
            names.update({alias.asname or alias.name: alias.name for alias in node.names})
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return names


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    """`dt.now` as `datetime.datetime.now`; nothing if it does not begin with an imported name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return ""
    return ".".join((names[node.id], *reversed(parts)))


def caught_everything(where: Module) -> Iterator[str]:
    """Every handler that would also catch our own mistakes."""
    for node in where.nodes:
        if not isinstance(node, ast.ExceptHandler):
            continue
        types = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        for each in types:
            if each is None or (isinstance(each, ast.Name) and each.id in ("Exception", "BaseException")):
                yield f"{where.path}:{node.lineno}: catches everything: name the errors you can handle"


def set_orders(where: Module) -> Iterator[str]:
    """Every place where the order of a set would show: it differs from run to run."""
    for node in where.nodes:
        looped: list[ast.expr] = []
        if isinstance(node, ast.For | ast.AsyncFor):
            looped = [node.iter]
        elif isinstance(node, ast.ListComp | ast.DictComp):
            looped = [part.iter for part in node.generators]
        elif isinstance(node, ast.Call) and _is_ordering(node.func):
            looped = node.args[:1]
        for each in looped:
            if _is_set(each):
                yield f"{where.path}:{each.lineno}: the order of a set shows: sorted(...), or dict.fromkeys(...)"


def _is_ordering(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id in ("list", "tuple", "enumerate", "iter")
    return isinstance(function, ast.Attribute) and function.attr == "join"


def _is_set(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("set", "frozenset")
    return isinstance(node, ast.Set | ast.SetComp)


def billions(where: Module) -> Iterator[str]:
    """Every literal billion: nanoseconds per second have a name."""
    for node in where.nodes:
        is_power = isinstance(node, ast.BinOp) and ast.unparse(node) == "10 ** 9"
        if is_power or (isinstance(node, ast.Constant) and node.value in (10**9, 1e9)):
            assert isinstance(node, ast.expr)
            yield f"{where.path}:{node.lineno}: a billion: SECOND_NS of nodeward/base/duration.py"


def mocks(source: str) -> bool:
    return re.search(r"unittest\.mock|from unittest import mock|MagicMock", source) is not None


# Put together so that this page does not find itself.
LEFT_OPEN = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:wo" + r"rk|ro" + r"ot|ho" + r"me|fa" + r"rm|Us" + r"ers)/[\w.]")
PACKAGE_INDEX = re.compile(r"py" + r"pi\.org|python" + r"hosted|index" + r"-url|/sim" + r"ple/")
BARE_IGNORE = re.compile(r"# type: ig" + r"nore(?!\[)|# no" + r"qa(?!: [A-Z])")


def text_faults(path: str, text: str) -> Iterator[str]:
    """What no text file may say."""
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, why in (
            (LEFT_OPEN, "left open: do it, or write an issue"),
            (MACHINE_PATH, "a path of one machine: derive it, or use a temporary directory"),
            (PACKAGE_INDEX, "a package index by name: plain pip knows its own"),
            (BARE_IGNORE, "silences everything: name the rule, type: ignore[code] or no" + "qa: CODE"),
        ):
            if match := pattern.search(line):
                yield f"{path}:{number}: {match[0]!r}: {why}"


def test_time_chance_and_environment_are_handed_in() -> None:
    settle(text for each in modules() for text in banned_names(each))


def test_only_the_edges_catch_everything() -> None:
    settle((text for each in modules() for text in caught_everything(each)), CATCHES_EVERYTHING)


def test_no_order_depends_on_a_set() -> None:
    settle(text for each in modules() for text in set_orders(each))


def test_nanoseconds_per_second_stand_in_one_place() -> None:
    settle((text for each in modules() for text in billions(each)), BILLIONS)


def test_tests_use_fakes_that_ship_rather_than_mocks() -> None:
    tests = [path for path in text_files() if path.startswith("tests/") and path.endswith(".py")]
    settle(f"{path}: a mock" for path in tests if path != "tests/tidy/test_bans.py" and mocks(read(path)))


def test_nothing_is_left_open_and_nothing_names_this_machine() -> None:
    settle(text for path in text_files() for text in text_faults(path, read(path)))


@pytest.mark.parametrize(
    "source",
    [
        "import time\nstarted = time.time()",
        "import time\nstarted = time.monotonic_ns()",
        "from time import sleep as nap\nnap(1)",
        "import datetime as dt\nx = dt.datetime.now(dt.UTC)",
        "from datetime import datetime\nx = datetime.utcnow()",
        "import uuid\nfactory = uuid.uuid4",
        "from random import choice\nx = choice([1])",
        "import random\nx = random.Random(1)",
        "import asyncio\nasync def f():\n    await asyncio.sleep(0)",
        "import os\nx = os.environ['HOME']",
    ],
)
def test_the_ban_sees_a_name_however_it_was_imported(source: str) -> None:
    (found,) = banned_names(module("nodeward/rules/x.py", source))
    assert found.startswith("nodeward/rules/x.py:")


def test_the_ban_leaves_the_real_world_and_the_command_line_alone() -> None:
    assert list(banned_names(module(REAL_WORLD, "import time\nx = time.time()"))) == []
    assert list(banned_names(module("nodeward/cli/up.py", "import os\nx = os.environ"))) == []
    assert list(banned_names(module("nodeward/cli/up.py", "import time\nx = time.time()"))) != []
    assert (
        list(banned_names(module("nodeward/api/x.py", "def f(time, random):\n    time.time()\n    random.x")))
        == []
    )


@pytest.mark.parametrize(
    "clause", ["except:", "except Exception:", "except (OSError, BaseException) as error:"]
)
def test_the_ban_sees_a_handler_of_everything(clause: str) -> None:
    assert len(list(caught_everything(module("nodeward/x.py", f"try:\n    f()\n{clause}\n    pass")))) == 1


def test_the_ban_lets_named_errors_be_caught() -> None:
    assert not list(caught_everything(module("nodeward/x.py", "try:\n    f()\nexcept OSError:\n    pass")))


@pytest.mark.parametrize(
    "source",
    [
        "for x in {1, 2}: f(x)",
        "y = [x for x in set(z)]",
        "y = list(frozenset(z))",
        "','.join({f(x) for x in z})",
    ],
)
def test_the_ban_sees_the_order_of_a_set(source: str) -> None:
    assert len(list(set_orders(module("nodeward/x.py", source)))) == 1


def test_the_ban_lets_sets_be_sorted_and_counted() -> None:
    source = "for x in sorted({1, 2}): f(x)\ny = len(set(z))\nw = any(x for x in set(z))"
    assert not list(set_orders(module("nodeward/x.py", source)))


@pytest.mark.parametrize("literal", ["10**9", "1_000_000_000", "1e9"])
def test_the_ban_sees_a_billion(literal: str) -> None:
    assert len(list(billions(module("nodeward/x.py", f"wait = x / {literal}")))) == 1
    assert not list(billions(module("nodeward/x.py", "wait = x / 10**6 + 10 ** y")))


@pytest.mark.parametrize(
    "line",
    [
        "# TO" + "DO: later",
        "path = '/wo" + "rk/main'",
        "see /ro" + "ot/.kube",
        "pip install --index" + "-url=x",
        "x = f()  # no" + "qa",
        "x = f()  # type: " + "ignore",
    ],
)
def test_the_ban_reads_every_line(line: str) -> None:
    assert len(list(text_faults("some.md", f"first\n{line}\n"))) == 1


def test_the_ban_lets_urls_and_named_rules_be() -> None:
    for line in (
        "GET /apis/apps/v1/x",
        "https://host/work/y",
        "x  # type: ignore[misc]",
        "y  # no" + "qa: E501",
    ):
        assert not list(text_faults("some.md", line))


def test_an_allowance_that_is_not_needed_fails() -> None:
    settle(["a.py:3: bad"], ["a.py"])
    with pytest.raises(AssertionError, match=r"b\.py: allowed, but no longer found"):
        settle(["a.py:3: bad"], ["a.py", "b.py"])
    with pytest.raises(AssertionError, match=r"a\.py:3: bad"):
        settle(["a.py:3: bad"], [])
