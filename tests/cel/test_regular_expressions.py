"""Regular expressions: RE2's syntax and Go's answers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeward.cel.library.regular_expressions import CompiledRegex, compile_regex
from nodeward.cel.values import EvaluationError

_ATOMS = st.sampled_from(["a", "b", "ab", "[ab]", "[^a]", ".", r"\w", "(?:a|b)", "(a)"])
_PATTERNS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{1,2}", "*?", "+?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=5,
)
_TEXTS = st.text("abc\n", max_size=8)


@settings(max_examples=300, deadline=None)
@given(_PATTERNS, _TEXTS, st.sampled_from(["", "^"]), st.sampled_from(["", "$"]))
def test_answers_are_those_of_a_backtracking_matcher(
    pattern: str, text: str, before: str, after: str
) -> None:
    whole = f"{before}(?:{pattern}){after}"
    found = re.search(whole.replace("$", r"\Z"), text, re.ASCII)
    regex = CompiledRegex(whole)
    assert regex.is_match(text) is (found is not None)
    assert regex.find(text) == ("" if found is None else found[0])


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("*a", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("[a", "missing closing ]: `[a`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(?:a{100}){100}", "invalid repeat count: `{100}`"),
        (r"\8", r"invalid escape sequence: `\8`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?P<>a)", "invalid named capture: `(?P<>`"),
        (r"\pX", r"invalid character class range: `\pX`"),
    ],
)
def test_what_is_not_re2_is_refused_in_the_words_of_go(pattern: str, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        compile_regex(pattern)
    assert str(caught.value) == f"error parsing regexp: {message}"


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("[0-9]+", "a1b22", ["1", "22"]),
        ("", "ab", ["", "", ""]),
        ("x*", "axb", ["", "x", ""]),
        ("(?i)AB", "abAb", ["ab", "Ab"]),
        ("(?m)^.", "a\nb", ["a", "b"]),
        (r"\bx\b", "x xx x", ["x", "x"]),
        (r"\Qa.b\E+", "a.bbb", ["a.bbb"]),
        ("[[:digit:]]", "a1", ["1"]),
        (r"\p{Greek}", "aαβ", ["α", "β"]),
        (r"\x{1F600}|\x41", "A😀", ["A", "😀"]),
        ("(?U)a+", "aa", ["a", "a"]),
        ("a{2}", "aaaa", ["aa", "aa"]),
        ("a{,2}", "a{,2}", ["a{,2}"]),
        ("(?s).+", "a\nb", ["a\nb"]),
    ],
)
def test_all_matches_are_found_from_left_to_right(pattern: str, text: str, found: list[str]) -> None:
    assert CompiledRegex(pattern).find_all(text, -1) == found
    assert CompiledRegex(pattern).find_all(text, 1) == found[:1]
