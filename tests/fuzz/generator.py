"""Values from schemas: mostly what the schema describes, now and then something else entirely.

Everything is drawn from one `random.Random`, so a seed is a test case. Values that look like what Kubernetes wants
(names, quantities, addresses, times) are mixed with values nobody wants.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping
from typing import Any, Final

_WORDS: Final = (
    "a", "web", "web-1", "default", "kube-system", "node-1", "example.com/thing", "kubernetes.io/hostname", "A_B", "*",
    "ClusterIP", "Always", "IfNotPresent", "TCP", "UDP", "NoSchedule", "NoExecute", "Exists", "In", "Equal", "Pod",
    "v1", "apps/v1", "Retain", "ReadWriteOnce", "Filesystem", "RollingUpdate", "OnDelete", "Opaque", "True", "cpu",
)  # fmt: skip
_LOOKALIKES: Final = (
    "100m", "1Gi", "1.5", "-1", "1e3", "0", "5000000000000000000000", "10.0.0.1", "10.0.0.0/24", "fd00::1", "::/0",
    "300.1.1.1", "25%", "150%", "80", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123456Z", "2026-13-45T99:99:99Z",
    "1h30m", "P1D", "/var/lib", "../etc", "/", "aGVsbG8=", "not base64!", "* * * * *", "@daily", "TZ=UTC * * * * *",
)  # fmt: skip
_NASTY: Final = (
    "",
    " ",
    "\0",
    "\n",
    "é",
    "\u2028",
    "\U0001f600",
    "a" * 64,
    "a" * 300,
    "a/b/c",
    "..",
    "%",
    '"',
    "\\",
    "$(A)",
    "a,b=c",
)
_NUMBERS: Final = (
    0,
    1,
    2,
    3,
    10,
    80,
    443,
    1000,
    8080,
    30000,
    65535,
    65536,
    -1,
    2**31 - 1,
    2**31,
    -(2**31),
    2**63 - 1,
    -(2**63),
)
_ODD: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    2**64,
    "",
    "x",
    [],
    {},
    [None],
    {"": None},
    [[]],
    {"a": {"b": []}},
)
_MAX_DEPTH: Final = 12


class Generator:
    """Values of the schemas of one document."""

    def __init__(self, schemas: Mapping[str, Any], chance: random.Random, wildness: float) -> None:
        self._schemas = schemas
        self._chance = chance
        #: how often something else than the schema says is made
        self._wildness = wildness

    def value(self, schema: Mapping[str, Any], depth: int = 0) -> Any:
        chance = self._chance
        if chance.random() < self._wildness:
            return copy.deepcopy(chance.choice(_ODD))
        schema = self.resolve(schema)
        if "enum" in schema and chance.random() < 0.9:
            return chance.choice(schema["enum"])
        if "oneOf" in schema or "anyOf" in schema:
            return self.value(chance.choice(schema.get("oneOf") or schema["anyOf"]), depth + 1)
        match schema.get("type"):
            case "object":
                return self._object(schema, depth)
            case "array":
                count = 0 if depth > _MAX_DEPTH else chance.choice((0, 1, 1, 2, 3))
                return [self.value(schema["items"], depth + 1) for _ in range(count)]
            case "string":
                return self._text(schema)
            case "integer":
                return chance.choice(_NUMBERS)
            case "number":
                return chance.choice((*_NUMBERS, 0.5, 1e300))
            case "boolean":
                return chance.random() < 0.5
        return copy.deepcopy(chance.choice((*_ODD, "text", 5)))

    def resolve(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Follow references."""
        while True:
            if "$ref" in schema:
                schema = self._schemas[schema["$ref"].rpartition("/")[2]]
            elif len(schema.get("allOf", ())) == 1:
                schema = schema["allOf"][0]
            else:
                return schema

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        chance, made = self._chance, {}
        fields = schema.get("properties", {})
        # A handful of fields, fewer the deeper: real objects are sparse too, and the rest has its turn another time.
        share = min(1.0, 4 / (len(fields) or 1)) * (0.8 if depth < 4 else 0.4 if depth < _MAX_DEPTH else 0)
        for name, inner in fields.items():
            if name in schema.get("required", ()) or chance.random() < share:
                made[name] = self.value(inner, depth + 1)
        if "additionalProperties" in schema and depth < _MAX_DEPTH:
            for _ in range(chance.choice((0, 1, 2))):
                made[self._text({})] = self.value(schema["additionalProperties"], depth + 1)
        return made

    def _text(self, schema: Mapping[str, Any]) -> str:
        chance = self._chance
        if schema.get("format") == "date-time" and chance.random() < 0.8:
            return "2026-01-01T00:00:00Z"
        pool = chance.choice((_WORDS, _WORDS, _WORDS, _LOOKALIKES, _NASTY))
        return chance.choice(pool)


def mutate(tree: Any, chance: random.Random, generator: Generator, schema: Mapping[str, Any]) -> Any:
    """The tree with something in it replaced, removed or added, as the schema allows or not."""
    tree = copy.deepcopy(tree)
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        where, at = tree, generator.resolve(schema)
        while True:
            if isinstance(where, dict) and (where or at.get("properties")):
                names = list(at.get("properties", ())) if chance.random() < 0.3 else []
                key: Any = chance.choice(names or list(where) or ["a"])
                inner = at.get("properties", {}).get(key) or at.get("additionalProperties") or {}
            elif isinstance(where, list) and where:
                key, inner = chance.randrange(len(where)), at.get("items", {})
            else:
                break
            inner = generator.resolve(inner if isinstance(inner, dict) else {})
            below = where.get(key) if isinstance(where, dict) else where[key]
            if isinstance(below, dict | list) and below and chance.random() < 0.75:
                where, at = below, inner
                continue
            if chance.random() < 0.15:
                where.pop(key, None) if isinstance(where, dict) else where.pop(key)
            else:
                where[key] = generator.value(inner, 4)
            break
    return tree
