"""Regular expressions as RE2 writes them: text into a tree.

Called by `regular_expressions.py`. What RE2 does not know (back references, look-around) is refused with the message
Go's `regexp` gives. What must stay true: repetitions multiply to at most 1000, so a pattern's tree has a bounded size.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final, TypeAlias

_MOST_REPEATS: Final = 1000
_DEEPEST: Final = 100
_LAST: Final = 0x10FFFF

Ranges: TypeAlias = tuple[tuple[int, int], ...]


class RegexError(ValueError):
    """The pattern is not RE2. The message is Go's."""

    def __init__(self, code: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {code}: `{part}`")


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of these ranges and Unicode classes (each with whether it is negated), or none of them."""

    ranges: Ranges
    is_folded: bool = False
    categories: tuple[tuple[str, bool], ...] = ()
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Assertion:
    """A place: `text-start`, `text-end`, `line-start`, `line-end`, `word`, `not-word`."""

    name: str


@dataclass(frozen=True, slots=True)
class Repeat:
    item: RegexNode
    least: int
    most: int | None
    is_lazy: bool


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[RegexNode, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    items: tuple[RegexNode, ...]


RegexNode: TypeAlias = Chars | Assertion | Repeat | Sequence | Alternatives

DIGITS: Final[Ranges] = ((48, 57),)
WORDS: Final[Ranges] = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACES: Final[Ranges] = ((9, 10), (12, 13), (32, 32))
_PERL: Final = {"d": DIGITS, "w": WORDS, "s": _SPACES}
_POSIX: Final[dict[str, Ranges]] = {
    "alnum": ((48, 57), (65, 90), (97, 122)), "alpha": ((65, 90), (97, 122)), "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)), "cntrl": ((0, 31), (127, 127)), "digit": DIGITS, "graph": ((33, 126),),
    "lower": ((97, 122),), "print": ((32, 126),), "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)), "upper": ((65, 90),), "word": WORDS, "xdigit": ((48, 57), (65, 70), (97, 102)),
}  # fmt: skip
_CONTROLS: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}


def complement(ranges: Ranges) -> Ranges:
    """Return all characters outside the ranges."""
    result: list[tuple[int, int]] = []
    start = 0
    for low, high in sorted(ranges):
        if low > start:
            result.append((start, low - 1))
        start = max(start, high + 1)
    return (*result, (start, _LAST)) if start <= _LAST else tuple(result)


def parse_regex(pattern: str) -> RegexNode:
    """Return the tree of a pattern; raises RegexError."""
    return _RegexParser(pattern).parse()


@dataclass(slots=True)
class _Flags:
    fold: bool = False
    multi_line: bool = False
    dot_newline: bool = False
    swap_greed: bool = False


class _RegexParser:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._depth = 0
        self._flags = _Flags()

    def parse(self) -> RegexNode:
        tree = self._alternatives()
        if self._at < len(self._text):
            raise RegexError("unexpected )", self._text)
        return tree

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _alternatives(self) -> RegexNode:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise RegexError("expression nests too deeply", self._text)
        branches = [self._sequence()]
        while self._peek("|"):
            self._at += 1
            branches.append(self._sequence())
        self._depth -= 1
        return branches[0] if len(branches) == 1 else Alternatives(tuple(branches))

    def _sequence(self) -> RegexNode:
        items: list[RegexNode] = []
        last_operator = ""
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            start = self._at
            if self._text[self._at] in "*+?" or (self._peek("{") and self._counts() is not None):
                last_operator = self._repeat(items, last_operator)
                continue
            last_operator = ""
            item = self._item()
            if item is not None:
                items.extend(item) if isinstance(item, list) else items.append(item)
            elif self._at == start:
                break
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def _counts(self) -> tuple[int, int | None, int] | None:
        """Read `{n}`, `{n,}` or `{n,m}`; None when the brace is an ordinary character."""
        end = self._text.find("}", self._at)
        body = self._text[self._at + 1 : end] if end > 0 else ""
        low, comma, high = body.partition(",")
        if not low.isascii() or not low.isdigit() or (high and not (high.isascii() and high.isdigit())):
            return None
        least = int(low) if len(low) < 9 else _MOST_REPEATS + 1
        most = (int(high) if len(high) < 9 else _MOST_REPEATS + 1) if high else (None if comma else least)
        if least > _MOST_REPEATS or (most is not None and (most > _MOST_REPEATS or least > most)):
            raise RegexError("invalid repeat count", self._text[self._at : end + 1])
        return least, most, end + 1

    def _repeat(self, items: list[RegexNode], last_operator: str) -> str:
        start = self._at
        character = self._text[start]
        if character == "{":
            counts = self._counts()
            assert counts is not None
            least, most, self._at = counts
        else:
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[character]
            self._at += 1
        is_lazy = self._peek("?")
        self._at += is_lazy
        operator = self._text[start : self._at]
        if last_operator:
            raise RegexError("invalid nested repetition operator", last_operator + operator)
        if not items:
            raise RegexError("missing argument to repetition operator", operator)
        repeat = Repeat(items.pop(), least, most, is_lazy is not self._flags.swap_greed)
        if _repetitions(repeat) > _MOST_REPEATS:
            raise RegexError("invalid repeat count", operator)
        items.append(repeat)
        return operator

    def _item(self) -> RegexNode | list[RegexNode] | None:
        character = self._text[self._at]
        if character == "(":
            return self._group()
        if character == "[":
            return self._class()
        if character == "\\":
            return self._escape()
        self._at += 1
        if character == ".":
            return Chars(((0, _LAST),) if self._flags.dot_newline else ((0, 9), (11, _LAST)))
        if character == "^":
            return Assertion("line-start" if self._flags.multi_line else "text-start")
        if character == "$":
            return Assertion("line-end" if self._flags.multi_line else "text-end")
        return self._character(ord(character))

    def _character(self, code: int) -> Chars:
        return Chars(((code, code),), self._flags.fold)

    def _group(self) -> RegexNode | None:
        outer = _Flags(
            self._flags.fold, self._flags.multi_line, self._flags.dot_newline, self._flags.swap_greed
        )
        start = self._at
        self._at += 1
        if self._peek("?") and not self._open_group(start):
            return None
        inner = self._alternatives()
        if not self._peek(")"):
            raise RegexError("missing closing )", self._text)
        self._at += 1
        self._flags = outer
        return Sequence((inner,))

    def _open_group(self, start: int) -> bool:
        """Read what follows `(?`; false when it only sets flags."""
        for opening in ("?P<", "?<"):
            if self._peek(opening):
                end = self._text.find(">", self._at)
                name = self._text[self._at + len(opening) : end] if end > 0 else ""
                if end < 0 or not name or not (name.replace("_", "a").isalnum() and name.isascii()):
                    raise RegexError(
                        "invalid named capture", self._text[start : end + 1 if end > 0 else None]
                    )
                self._at = end + 1
                return True
        at, value, found = self._at + 1, True, False
        while at < len(self._text):
            character = self._text[at]
            at += 1
            if character in "imsU":
                found = True
                self._set_flag(character, value)
            elif character == "-" and value:
                value, found = False, False
            elif character in ":)" and (found or value):
                self._at = at
                return character == ":"
            else:
                break
        raise RegexError("invalid or unsupported Perl syntax", self._text[start:at])

    def _set_flag(self, character: str, value: bool) -> None:
        if character == "i":
            self._flags.fold = value
        elif character == "m":
            self._flags.multi_line = value
        elif character == "s":
            self._flags.dot_newline = value
        else:
            self._flags.swap_greed = value

    def _escape(self) -> RegexNode | list[RegexNode]:
        following = self._text[self._at + 1 : self._at + 2]
        simple = {"A": "text-start", "z": "text-end", "b": "word", "B": "not-word"}.get(following)
        if simple:
            self._at += 2
            return Assertion(simple)
        if following == "Q":
            end = self._text.find("\\E", self._at)
            quoted = self._text[self._at + 2 : end if end >= 0 else None]
            self._at = end + 2 if end >= 0 else len(self._text)
            return [self._character(ord(character)) for character in quoted]
        if (found := self._class_escape()) is not None:
            return found
        return self._character(self._escaped_code())

    def _class_escape(self) -> Chars | None:
        """Read `\\d`, `\\pL` and their like."""
        following = self._text[self._at + 1 : self._at + 2]
        if following.lower() in _PERL and following:
            self._at += 2
            ranges = _PERL[following.lower()]
            return Chars(ranges if following.islower() else complement(ranges))
        if following in ("p", "P"):
            return self._unicode_class(following == "P")
        return None

    def _unicode_class(self, is_negated: bool) -> Chars:
        start, at = self._at, self._at + 2
        if self._text[at : at + 1] == "{":
            end = self._text.find("}", at)
            if end < 0:
                raise RegexError("invalid character class range", self._text[start:])
            name, self._at = self._text[at + 1 : end], end + 1
        else:
            name, self._at = self._text[at : at + 1], at + 1
        if name.startswith("^"):
            is_negated, name = not is_negated, name[1:]
        if name == "Any":
            return Chars(((0, _LAST),) if not is_negated else ())
        known = len(name) in (1, 2) and name[:1] in "LMNPSZC" and name
        if not known and name not in _SCRIPTS:
            raise RegexError("invalid character class range", self._text[start : self._at])
        return Chars((), categories=((name, is_negated),))

    def _escaped_code(self) -> int:
        start = self._at
        self._at += 2
        character = self._text[start + 1 : start + 2]
        if not character:
            raise RegexError("trailing backslash at end of expression", "").with_traceback(None)
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character in "01234567":
            digits = character
            while len(digits) < 3 and self._text[self._at : self._at + 1] in tuple("01234567"):
                digits += self._text[self._at]
                self._at += 1
            if character == "0" or len(digits) > 1:
                return int(digits, 8)
        elif character == "x":
            return self._hexadecimal(start)
        elif not character.isalnum() and ord(character) < 128:
            return ord(character)
        raise RegexError("invalid escape sequence", self._text[start : self._at])

    def _hexadecimal(self, start: int) -> int:
        if self._peek("{"):
            end = self._text.find("}", self._at)
            digits, after = self._text[self._at + 1 : end if end > 0 else self._at + 1], end + 1
        else:
            digits, after = self._text[self._at : self._at + 2], self._at + 2
            digits = digits if len(digits) == 2 else ""
        if (
            not digits
            or any(digit not in "0123456789abcdefABCDEF" for digit in digits)
            or int(digits, 16) > _LAST
        ):
            raise RegexError("invalid escape sequence", self._text[start : start + 3])
        self._at = after
        return int(digits, 16)

    def _class(self) -> RegexNode:
        start = self._at
        self._at += 1
        is_negated = self._peek("^")
        self._at += is_negated
        ranges: list[tuple[int, int]] = []
        others: list[Chars] = []
        is_first = True
        while is_first or not self._peek("]"):
            if self._at >= len(self._text):
                raise RegexError("missing closing ]", self._text[start:])
            is_first = False
            if (named := self._posix()) is not None:
                ranges.extend(named)
                continue
            if self._peek("\\") and (found := self._class_escape()) is not None:
                others.append(found) if found.categories else ranges.extend(found.ranges)
                continue
            ranges.append(self._range(start))
        self._at += 1
        return self._make_class(tuple(ranges), others, is_negated)

    def _make_class(self, ranges: Ranges, others: list[Chars], is_negated: bool) -> RegexNode:
        if others:
            categories = tuple(each for other in others for each in other.categories)
            return Chars(ranges, self._flags.fold, categories, is_negated)
        if self._flags.fold:
            ranges = fold_ranges(ranges)
        return Chars(complement(ranges) if is_negated else ranges)

    def _posix(self) -> Ranges | None:
        if not self._peek("[:"):
            return None
        end = self._text.find(":]", self._at + 2)
        if end < 0:
            return None
        name = self._text[self._at + 2 : end]
        ranges = _POSIX.get(name.removeprefix("^"))
        if ranges is None:
            raise RegexError("invalid character class range", self._text[self._at : end + 2])
        self._at = end + 2
        return complement(ranges) if name.startswith("^") else ranges

    def _range(self, start: int) -> tuple[int, int]:
        first = self._at
        low = high = self._class_character(start)
        if self._peek("-") and not self._text.startswith("-]", self._at) and self._at + 1 < len(self._text):
            self._at += 1
            high = self._class_character(start)
            if high < low:
                raise RegexError("invalid character class range", self._text[first : self._at])
        return low, high

    def _class_character(self, start: int) -> int:
        if self._at >= len(self._text):
            raise RegexError("missing closing ]", self._text[start:])
        if self._peek("\\"):
            return self._escaped_code()
        self._at += 1
        return ord(self._text[self._at - 1])


_SCRIPTS: Final = frozenset({"Greek", "Latin", "Cyrillic", "Han", "Hiragana", "Katakana", "Arabic", "Hebrew"})


def in_category(character: str, category: tuple[str, bool]) -> bool:
    """Tell whether a character is of a Unicode class (a category, or a script by its name)."""
    name, is_negated = category
    if name in _SCRIPTS:
        word = "CJK" if name == "Han" else name.upper()
        found = unicodedata.name(character, "").startswith(word)
    else:
        found = unicodedata.category(character).startswith(name)
    return found is not is_negated


def fold_ranges(ranges: Ranges) -> Ranges:
    """Add the other case of every ASCII letter in the ranges."""
    extra = [
        (ord(letter.swapcase()),) * 2
        for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        if any(low <= ord(letter) <= high for low, high in ranges)
    ]
    return (*ranges, *extra)


def _repetitions(node: RegexNode) -> int:
    """Return how often the innermost item is repeated at most by counts."""
    match node:
        case Repeat():
            return max(node.least, node.most or 0, 1) * _repetitions(node.item)
        case Sequence() | Alternatives():
            return max((_repetitions(each) for each in node.items), default=1)
        case _:
            return 1
