"""What changed between two specs, as the API server of Kubernetes shows it when it refuses the change.

It prints both as JSON under the names its source code has for the fields (`DNSPolicy`, not `dnsPolicy`), every field,
nothing left out, and shows the lines that differ with three around them.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Container
from typing import Final

import msgspec

from nodeward.api.go_form import go_form

#: Unlike upstream: two specs of more lines together are shown with one change. Looking for more costs quadratic time.
_COMPARED_LIMIT: Final = 5000


def spec_diff(old: msgspec.Struct, new: msgspec.Struct, only: Container[str] = ()) -> str:
    """A unified diff without file names; "" if nothing differs. `only`: the Go names of the fields to look at."""
    before, after = _lines(old, only), _lines(new, only)
    if len(before) + len(after) > _COMPARED_LIMIT:
        return _one_hunk(before, after)
    return "".join(list(difflib.unified_diff(before, after, n=3))[2:])


def _one_hunk(before: list[str], after: list[str]) -> str:
    """All that lies between the first and the last difference, as one change."""
    if before == after:
        return ""
    pairs = list(zip(before, after, strict=False))
    first = next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs))
    backwards = zip(reversed(before[first:]), reversed(after[first:]), strict=False)
    same = next((i for i, (a, b) in enumerate(backwards) if a != b), min(len(before), len(after)) - first)
    start, end = max(0, first - 3), min(same, 3)
    sizes = [len(lines) - same + end - start for lines in (before, after)]
    hunk = [
        f"@@ -{start + 1},{sizes[0]} +{start + 1},{sizes[1]} @@\n",
        *(f" {line}" for line in before[start:first]),
    ]
    hunk += [f"-{line}" for line in before[first : len(before) - same]]
    hunk += [f"+{line}" for line in after[first : len(after) - same]]
    return "".join([*hunk, *(f" {line}" for line in before[len(before) - same :][:end])])


def _lines(value: msgspec.Struct, only: Container[str]) -> list[str]:
    tree = go_form(value)
    if only:
        tree = {name: inner for name, inner in tree.items() if name in only}
    text = json.dumps(tree, indent=1, ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return [f"{line}\n" for line in text.split("\n")]
