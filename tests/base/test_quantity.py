"""Quantities parse, print, compare and add as Kubernetes' do, exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.base.quantity import ZERO, Format, Quantity, QuantityError

WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
WRONG_NUMBER = "unable to parse numeric part of quantity"
WRONG_SUFFIX = "unable to parse quantity's suffix"

SUFFIXES = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1), "k": Fraction(10**3),
    "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12), "P": Fraction(10**15), "E": Fraction(10**18),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40),
    "Pi": Fraction(2**50), "Ei": Fraction(2**60),
    "e3": Fraction(10**3), "E3": Fraction(10**3), "e+4": Fraction(10**4), "E-2": Fraction(1, 100),
    "e20": Fraction(10**20), "e-9": Fraction(1, 10**9),
}  # fmt: skip


@st.composite
def texts(draw: st.DrawFn) -> str:
    sign = draw(st.sampled_from(["", "-", "+"]))
    number = draw(st.from_regex(r"[0-9]{1,12}(\.[0-9]{0,12})?", fullmatch=True))
    return sign + number + draw(st.sampled_from(sorted(SUFFIXES)))


def fraction_of(text: str) -> Fraction:
    """What the text says, rounded away from zero to a nano and capped as upstream caps binary amounts."""
    suffix = max((known for known in SUFFIXES if text.endswith(known)), key=len)
    number = text[: len(text) - len(suffix)]
    exact = Fraction(number if number[-1] != "." else number + "0") * SUFFIXES[suffix]
    nanos = math.ceil(abs(exact) * 10**9)
    if "i" in suffix:
        nanos = min(nanos, (2**63 - 1) * 10**9)
    return Fraction(-nanos if exact < 0 else nanos, 10**9)


@pytest.mark.parametrize(
    ("text", "nanos", "form"),
    [
        ("0", 0, Format.DECIMAL_SI),
        ("0n", 0, Format.DECIMAL_SI),
        ("0Ki", 0, Format.BINARY_SI),
        ("0e3", 0, Format.DECIMAL_EXPONENT),
        ("1", 10**9, Format.DECIMAL_SI),
        ("1Ki", 1024 * 10**9, Format.BINARY_SI),
        ("7Mi", 7 * 2**20 * 10**9, Format.BINARY_SI),
        ("3Ei", 3 * 2**60 * 10**9, Format.BINARY_SI),
        ("100Ti", 100 * 2**40 * 10**9, Format.BINARY_SI),
        ("5n", 5, Format.DECIMAL_SI),
        ("4u", 4000, Format.DECIMAL_SI),
        ("3m", 3 * 10**6, Format.DECIMAL_SI),
        ("8k", 8 * 10**12, Format.DECIMAL_SI),
        ("1E", 10**27, Format.DECIMAL_SI),
        ("1E-3", 10**6, Format.DECIMAL_EXPONENT),
        ("1.3E+6", 13 * 10**14, Format.DECIMAL_EXPONENT),
        ("0.5e-2", 5 * 10**6, Format.DECIMAL_EXPONENT),
        ("100.035k", 100035 * 10**9, Format.DECIMAL_SI),
        # what is smaller than a nano becomes one
        ("3.001n", 4, Format.DECIMAL_SI),
        ("1.1E-9", 2, Format.DECIMAL_EXPONENT),
        ("0.0000000001", 1, Format.DECIMAL_SI),
        ("0.00000012345", 124, Format.DECIMAL_SI),
        ("1e-1000", 1, Format.DECIMAL_EXPONENT),
        # binary amounts stop at the largest 64-bit integer, decimal ones do not
        ("9Ei", (2**63 - 1) * 10**9, Format.BINARY_SI),
        ("9223372036854775807Ki", (2**63 - 1) * 10**9, Format.BINARY_SI),
        ("-9Ei", -(2**63 - 1) * 10**9, Format.BINARY_SI),
        ("12E", 12 * 10**27, Format.DECIMAL_SI),
        # broken binary amounts
        ("100.035Ki", 10243584 * 10**7, Format.BINARY_SI),
        ("0.5Mi", 2**19 * 10**9, Format.BINARY_SI),
        ("0.025Ti", 274877906944 * 10**8, Format.BINARY_SI),
        ("0.000000000001Ki", 2, Format.DECIMAL_SI),
        # sloppy, but accepted
        (".001", 10**6, Format.DECIMAL_SI),
        ("1.", 10**9, Format.DECIMAL_SI),
        ("1.G", 10**18, Format.DECIMAL_SI),
        ("+1", 10**9, Format.DECIMAL_SI),
        ("-1.025Ti", -1126999418470400000000, Format.BINARY_SI),
        (".", 0, Format.DECIMAL_SI),
        ("-", 0, Format.DECIMAL_SI),
        ("m", 0, Format.DECIMAL_SI),
        ("Ki", 0, Format.BINARY_SI),
    ],
)
def test_every_accepted_shape_means_what_upstream_says(text: str, nanos: int, form: Format) -> None:
    quantity = Quantity.parse(text)
    assert quantity.nanos == nanos
    assert quantity.format is form


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", WRONG_FORMAT),
        ("1.1.M", WRONG_FORMAT),
        ("1+1.0M", WRONG_FORMAT),
        ("0.1am", WRONG_FORMAT),
        ("aoeu", WRONG_FORMAT),
        (" 1", WRONG_FORMAT),
        ("1 ", WRONG_FORMAT),
        ("1\n", WRONG_FORMAT),
        ("١", WRONG_FORMAT),
        ("0.1mi", WRONG_SUFFIX),
        (".5i", WRONG_SUFFIX),
        ("1i", WRONG_SUFFIX),
        ("1K", WRONG_SUFFIX),
        ("1e", WRONG_SUFFIX),
        ("-3.01e-", WRONG_SUFFIX),
        ("+-5", WRONG_SUFFIX),
        ("1e99999999999999999999", WRONG_SUFFIX),
        ("Ei", WRONG_NUMBER),
        ("e-20", WRONG_NUMBER),
        ("1" * 5000, WRONG_NUMBER),
    ],
)
def test_what_is_not_a_quantity_is_refused_in_upstreams_words(text: str, message: str) -> None:
    with pytest.raises(QuantityError) as caught:
        Quantity.parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("0Gi", "0"),
        ("-0", "0"),
        ("0.0", "0"),
        ("1024", "1024"),
        ("1024Ki", "1Mi"),
        ("1025Ki", "1025Ki"),
        ("8Ki", "8Ki"),
        ("0.5Gi", "512Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("100.035Ki", "102435840m"),
        ("9Ei", "9223372036854775807"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.5", "500m"),
        ("0.1", "100m"),
        ("1.5", "1500m"),
        ("2000", "2k"),
        ("1000000", "1M"),
        ("10000", "10k"),
        ("0.0005k", "500m"),
        ("1e3", "1e3"),
        ("1E3", "1E3"),
        ("1000e3", "1e6"),
        ("1e4", "10e3"),
        ("0.1e0", "100e-3"),
        ("1.5e0", "1500e-3"),
        ("1000E", "1000E"),
        ("0.9n", "1n"),
        # text that counts as canonical is answered as it came
        ("1.500", "1.500"),
        ("+5", "+5"),
        ("007", "007"),
        ("1.", "1."),
    ],
)
def test_printing_gives_what_the_api_server_would_answer(text: str, printed: str) -> None:
    assert str(Quantity.parse(text)) == printed


@pytest.mark.parametrize(
    ("quantity", "printed"),
    [
        (Quantity.of_int(2**30, Format.BINARY_SI), "1Gi"),
        (Quantity.of_int(1023, Format.BINARY_SI), "1023"),
        (Quantity.of_int(-1024, Format.BINARY_SI), "-1Ki"),
        (Quantity.of_int(2**70, Format.BINARY_SI), "1024Ei"),
        (Quantity.of_int(0, Format.BINARY_SI), "0"),
        (Quantity.of_milli(250), "250m"),
        (Quantity.of_milli(2_048_500, Format.BINARY_SI), "2048500m"),
        (Quantity.of_milli(-1000), "-1"),
        (Quantity.of_nanos(1, Format.DECIMAL_EXPONENT), "1e-9"),
        (Quantity.of_int(10**18), "1E"),
    ],
)
def test_made_quantities_print_canonically(quantity: Quantity, printed: str) -> None:
    assert str(quantity) == printed


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        ("1.1", 2, 1100),
        ("-1.1", -2, -1100),
        ("1n", 1, 1),
        ("-1n", -1, -1),
        ("1Gi", 2**30, 2**30 * 1000),
        ("0", 0, 0),
    ],
)
def test_whole_and_milli_values_round_away_from_zero(text: str, value: int, milli: int) -> None:
    assert Quantity.parse(text).value == value
    assert Quantity.parse(text).milli_value == milli


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ("100m", "100m"),
        (" 1Gi ", "1Gi"),
        (5, "5"),
        (-2000, "-2k"),
        (0.5, "500m"),
        (1.0, "1"),
        (b"1e3", "1e3"),
        (b'"1e3"', "1e3"),
        (b"null", "0"),
        (None, "0"),
        (1e22, "10e21"),
    ],
)
def test_json_strings_and_numbers_are_both_accepted(
    value: str | int | float | bytes | None, printed: str
) -> None:
    assert str(Quantity.from_json(value)) == printed


@pytest.mark.parametrize("value", [True, float("nan"), float("inf"), b"true", b"\xff", "", b""])
def test_json_that_is_no_quantity_is_refused(value: str | float | bytes) -> None:
    with pytest.raises(QuantityError):
        Quantity.from_json(value)


def test_zero_takes_the_format_of_the_other_side() -> None:
    gibi = Quantity.parse("1Gi")
    assert str(ZERO + gibi) == "1Gi"
    assert str(gibi + ZERO) == "1Gi"
    assert str(ZERO - gibi) == "-1Gi"
    assert str(gibi - Quantity.parse("1k")) == str(Quantity.of_int(2**30 - 1000, Format.BINARY_SI))


def test_equal_amounts_hash_alike_whatever_their_format() -> None:
    assert len({Quantity.parse(text) for text in ("1", "1000m", "1e0", "1.000", "1000000u")}) == 1
    assert Quantity.parse("1") != 1


def test_the_same_text_is_parsed_once() -> None:
    assert Quantity.parse("123456789m") is Quantity.parse("123456789m")


@given(texts())
def test_the_amount_is_exactly_what_the_text_says(text: str) -> None:
    assert Fraction(Quantity.parse(text).nanos, 10**9) == fraction_of(text)


@given(texts())
def test_printing_and_parsing_again_changes_nothing(text: str) -> None:
    quantity = Quantity.parse(text)
    again = Quantity.parse(str(quantity))
    assert again == quantity
    assert str(again) == str(quantity)


@given(st.integers(), st.sampled_from(Format))
def test_canonical_text_is_stable(nanos: int, form: Format) -> None:
    quantity = Quantity.of_nanos(nanos, form)
    again = Quantity.parse(str(quantity))
    # Past the largest 64-bit integer binary texts are capped when parsed, as upstream does.
    if form is not Format.BINARY_SI or abs(nanos) < 2**63:
        assert again == quantity
        assert str(again) == str(quantity)


@given(texts(), texts())
def test_order_and_sums_agree_with_exact_fractions(left: str, right: str) -> None:
    a, b = Quantity.parse(left), Quantity.parse(right)
    x, y = fraction_of(left), fraction_of(right)
    assert ((a < b), (a <= b), (a > b), (a >= b), (a == b)) == (
        (x < y),
        (x <= y),
        (x > y),
        (x >= y),
        (x == y),
    )
    assert Fraction((a + b).nanos, 10**9) == x + y
    assert Fraction((a - b).nanos, 10**9) == x - y
    assert (-a).nanos == -(a.nanos)
    assert (a * 3).nanos == a.nanos * 3
    assert a.sign == (x > 0) - (x < 0)
    assert a.is_zero == (x == 0) == (not a)


@given(st.text(max_size=12))
def test_any_text_gives_a_quantity_or_a_quantity_error(text: str) -> None:
    try:
        quantity = Quantity.parse(text)
    except QuantityError as error:
        outcome = str(error)
    else:
        outcome = str(Quantity.parse(str(quantity)))
        assert outcome == str(quantity)
    assert outcome
