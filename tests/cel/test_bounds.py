"""No expression of bounded length takes unbounded time, memory or stack."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.cel.declarations import CelEnvironment
from nodeward.cel.device import (
    STORED_EXPRESSIONS,
    compile_selector,
    device_variables,
    matches,
)
from nodeward.cel.program import CompileErrors, Program, compile_expression
from nodeward.cel.values import CostLimitExceeded, EvaluationError

DEVICE = device_variables("d", {}, {})


def compiled(text: str, environment: CelEnvironment = STORED_EXPRESSIONS) -> Program | CompileErrors:
    try:
        return compile_expression(text, environment)
    except CompileErrors as error:
        return error


@given(st.text(max_size=60))
def test_every_text_compiles_or_is_refused(text: str) -> None:
    assert isinstance(compiled(text), Program | CompileErrors)


_MARKS = "device . attributes [ ] ( ) { } , : ? ! - + * / % && || == != < > <= >= in .? [?1 ` ' \" @ # & | = \\ // \n"
_NAMES = 'has all exists map x 1 2u 1.5 true null "a" b"c" "gpu" size matches cel.bind optional.of'
_WORDS = st.sampled_from(f"{_MARKS} {_NAMES}".split(" "))


@given(st.lists(_WORDS, max_size=25).map(" ".join))
def test_every_row_of_words_compiles_or_is_refused(text: str) -> None:
    assert isinstance(compiled(text), Program | CompileErrors)


@pytest.mark.parametrize("count", [55, 70, 300, 3000])
@pytest.mark.parametrize(
    ("opening", "inner", "closing"),
    [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("{1: ", "1", "}"),
        ("size(", "[]", ")"),
        ("[1].map(x, ", "1", ")"),
        ("true ? true : ", "true", ""),
        ("[1][", "0", "]"),
        ("(", "", ""),
        ("[", "", ""),
        ("f(", "", ""),
    ],
)
def test_deep_nesting_is_compiled_or_refused(opening: str, inner: str, closing: str, count: int) -> None:
    found = compiled(opening * count + inner + closing * count)
    if count > 60 or not inner:
        assert isinstance(found, CompileErrors)
    if count > 60:
        assert "expression recursion limit exceeded: 60" in str(found)


@pytest.mark.parametrize("count", [100, 400, 3000])
@pytest.mark.parametrize("link", [" + 1", " * 2", ".a", "[0]", ".size()", " == 1", ".map(x, x)", "-1"])
def test_long_chains_are_compiled_or_refused(link: str, count: int) -> None:
    found = compiled("1" + link * count)
    assert isinstance(found, CompileErrors) or count == 100
    if count > 150:
        assert "expression recursion limit exceeded: 150" in str(found)


@pytest.mark.parametrize("operator", ["&&", "||"])
def test_long_chains_of_logic_are_fine(operator: str) -> None:
    program = compile_selector(f" {operator} ".join(["device.driver == 'd'"] * 400))
    assert matches(program, DEVICE) is True


@pytest.mark.parametrize("text", ["!" * 5000 + "true", "-" * 5001 + "1 == -1"])
def test_long_rows_of_signs_are_fine(text: str) -> None:
    assert matches(compile_selector(text), DEVICE) is True


def test_a_chain_of_opt_map_does_not_double_without_end() -> None:
    found = compiled("optional.of(1)" + ".optMap(x, x)" * 100)
    assert isinstance(found, CompileErrors)
    assert "expression has more than 50000 nodes after expanding macros" in str(found)


def doubled(start: str, result: str, times: int = 60) -> str:
    """Bind names to twice what the name before is bound to."""
    names = [f"v{number}" for number in range(times)]
    text = result.replace("LAST", names[-1])
    for before, name in reversed(list(pairwise(names))):
        text = f"cel.bind({name}, {before} + {before}, {text})"
    return f"cel.bind(v0, {start}, {text})"


@pytest.mark.parametrize(
    "text",
    [
        doubled("'aaaaaaaaaa'", "LAST.size() > 0", 30),
        doubled("[1, 2]", "LAST.size() > 0", 40),
        doubled("[1, 2]", "LAST == LAST", 22),
        doubled("[1, 2]", "sets.contains(LAST, LAST)", 18),
        doubled("['a', 'b']", "LAST.distinct().size() > 0", 18),
        doubled("[1, 2]", "'%s'.format([LAST]) == ''", 18),
        "dyn(device).all(a, " * 20 + "true" + ")" * 20,
        "lists.range(100000000).size() > 0",
        "lists.range(1000).all(x, lists.range(1000).all(y, lists.range(1000).all(z, true)))",
        "'a'.replace('', '" + "b" * 5000 + "').replace('b', '" + "c" * 4000 + "').size() > 0",
    ],
)
def test_what_grows_without_end_is_stopped(text: str) -> None:
    program = compile_selector(text)
    with pytest.raises(CostLimitExceeded, match="operation cancelled: actual cost limit exceeded"):
        matches(program, DEVICE, cost_limit=20_000)


def test_joined_lists_are_lists() -> None:
    text = doubled("[1, 2]", "LAST.size() == 16384 && LAST[16383] == 2 && LAST[0] == 1 && 2 in LAST", 14)
    assert matches(compile_selector(text), DEVICE, cost_limit=10_000_000) is True
    text = doubled("[1, 2]", "LAST.map(x, x + 1).sum() == 20480 && LAST.slice(8190, 8192) == [1, 2]", 13)
    assert matches(compile_selector(text), DEVICE, cost_limit=10_000_000) is True


def test_deeply_nested_values_are_compared_or_an_error() -> None:
    text = "[v40] == [v40] || true"
    for number in reversed(range(1, 41)):
        text = f"cel.bind(v{number}, [[[[[v{number - 1}]]]]], {text})"
    program = compile_expression(f"cel.bind(v0, [1], {text})", STORED_EXPRESSIONS)
    try:
        value = program.evaluate(DEVICE, 10**9)
    except EvaluationError as error:
        value = str(error)
    assert value in (True, "values are nested too deeply")


@pytest.mark.parametrize(
    "pattern",
    ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(x+x+)+y", "^(.*)*$z", "(a*)*b", "^(([a-z])+.)+[A-Z]([a-z])+$"],
)
def test_hostile_patterns_take_linear_time(pattern: str) -> None:
    program = compile_selector(f"('{'a' * 3000}' + device.driver + '!').matches(r'{pattern}') || true")
    assert matches(program, DEVICE, cost_limit=10**9) is True


def test_of_a_long_wrong_text_the_first_wrong_token_is_named() -> None:
    found = compiled("1 + " * 100 + "[" + "1, " * 1500 + "@ ) ]")
    assert isinstance(found, CompileErrors)
    assert "token recognition error at: '@'" in str(found)
    assert "Syntax error: mismatched input ')'" in str(found)
