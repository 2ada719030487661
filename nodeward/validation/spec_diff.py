"""What changed between two specs, as the API server of Kubernetes shows it when it refuses the change.

It prints both as JSON under the names its source code has for the fields (`DNSPolicy`, not `dnsPolicy`), every field,
nothing left out, and shows the lines that differ with three around them.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Container

import msgspec

from nodeward.api.go_form import go_form


def spec_diff(old: msgspec.Struct, new: msgspec.Struct, only: Container[str] = ()) -> str:
    """A unified diff without file names; "" if nothing differs. `only`: the Go names of the fields to look at."""
    lines = difflib.unified_diff(_lines(old, only), _lines(new, only), n=3)
    return "".join(list(lines)[2:])


def _lines(value: msgspec.Struct, only: Container[str]) -> list[str]:
    tree = go_form(value)
    if only:
        tree = {name: inner for name, inner in tree.items() if name in only}
    text = json.dumps(tree, indent=1, ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return [f"{line}\n" for line in text.split("\n")]
