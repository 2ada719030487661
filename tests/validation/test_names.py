"""Which texts may be names, and what is said about those that may not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.rules import names

_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_KEY = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        pytest.param("a-1", [], id="letters digits and inner dashes are fine"),
        pytest.param("a.b", ["must not contain dots"], id="a dot is named as such"),
        pytest.param("-a", [_LABEL], id="a dash in front is refused"),
        pytest.param("A", [_LABEL], id="capitals are refused"),
        pytest.param("", [_LABEL], id="nothing is refused"),
        pytest.param("a\n", [_LABEL], id="a line break at the end is not overlooked"),
        pytest.param("a" * 63, [], id="63 characters are fine"),
        pytest.param("a" * 64, ["must be no more than 63 characters"], id="64 characters are too many"),
    ],
)
def test_dns_labels(text: str, faults: list[str]) -> None:
    assert names.dns_label(text) == faults


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        pytest.param("example.com/MyName", [], id="a domain and a name are fine"),
        pytest.param("name", [], id="a name alone is fine"),
        pytest.param("/name", ["prefix part must be non-empty"], id="an empty domain is refused"),
        pytest.param(
            "a.b/", ["name part must be non-empty", f"name part {_KEY}"], id="an empty name is refused"
        ),
        pytest.param(
            "a/b/c",
            [
                f"a valid label key {_KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ],
            id="two slashes are refused",
        ),
        pytest.param("n" * 64, ["name part must be no more than 63 bytes"], id="names are counted in bytes"),
        pytest.param("a b", [f"name part {_KEY}"], id="blanks are refused"),
    ],
)
def test_qualified_names(text: str, faults: list[str]) -> None:
    assert names.qualified_name(text) == faults


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        pytest.param("", [], id="a label may be empty"),
        pytest.param("a_b.C-1", [], id="dots dashes and underscores are fine inside"),
        pytest.param("-a", [_VALUE], id="a dash in front is refused"),
        pytest.param("ä" * 32, ["must be no more than 63 bytes", _VALUE], id="umlauts count twice"),
    ],
)
def test_label_values(text: str, faults: list[str]) -> None:
    assert names.label_value(text) == faults


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        pytest.param("http", [], id="a service name is fine"),
        pytest.param("1", ["must contain at least one letter (a-z)"], id="a letter is needed"),
        pytest.param("a--b", ["must not contain consecutive hyphens"], id="two dashes are refused"),
        pytest.param("a" * 16, ["must be no more than 15 characters"], id="16 characters are too many"),
        pytest.param(
            "-A",
            [
                "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                "must contain at least one letter (a-z)",
                "must not begin or end with a hyphen",
            ],
            id="everything that is wrong is said",
        ),
    ],
)
def test_port_names(text: str, faults: list[str]) -> None:
    assert names.port_name(text) == faults


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        pytest.param("0", True, id="zero is canonical"),
        pytest.param("-5", True, id="a minus is canonical"),
        pytest.param("950", True, id="a number is canonical"),
        pytest.param("0950", False, id="zeros in front are not"),
        pytest.param("-0", False, id="minus zero is not"),
        pytest.param("+5", False, id="a plus is not"),
        pytest.param("", False, id="nothing is not"),
        pytest.param("5.0", False, id="a fraction is not"),
    ],
)
def test_decimal_integers(text: str, is_valid: bool) -> None:
    assert (not names.decimal_integer(text)) == is_valid


def test_environment_names_have_a_strict_and_a_relaxed_rule() -> None:
    assert names.env_name("1 A") != []
    assert names.relaxed_env_name("1 A") == []
    assert names.relaxed_env_name("A=B") != []
    assert names.env_name("..") == [
        "must not be '..'",
    ]


def test_path_segments_refuse_what_would_change_the_path() -> None:
    assert names.path_segment_name("system:node") == []
    assert names.path_segment_name("..") == ["may not be '..'"]
    assert names.path_segment_name("a/b%") == ["may not contain '/'", "may not contain '%'"]


@given(st.text(alphabet="ab.-/_A0 ", max_size=70))
def test_a_subdomain_without_dots_and_short_enough_is_a_label(text: str) -> None:
    if not names.dns_subdomain(text) and "." not in text and len(text) <= 63:
        assert names.dns_label(text) == []


@given(st.from_regex(re.compile("[a-z]([-a-z0-9]{0,20}[a-z0-9])?"), fullmatch=True))
def test_every_1035_label_is_a_1123_label_and_a_label_value(text: str) -> None:
    assert names.dns_1035_label(text) == names.dns_label(text) == names.label_value(text) == []
