"""Our sentences about kinds and fields: each is about something that exists, and hardly anything goes without one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodeward.api.openapi import OpenApi, descriptions
from nodeward.api.openapi.descriptions import ANY_KIND, ANY_LIST, META, entries, words_for
from nodeward.api.openapi.names import definition_name, package
from nodeward.api.scheme import SCHEME, Kind

_OPEN_API = OpenApi(SCHEME, "1.37")
_DEFINITIONS: dict[str, dict[str, Any]] = json.loads(_OPEN_API.v2.body)["definitions"]
_ROOMS = sorted(path.stem for path in Path(descriptions.__file__).parent.glob("*.txt"))
#: Part of all fields that must have a sentence of their own.
_COVERAGE = 0.95


def _said(room: str) -> Iterator[tuple[str, str, str]]:
    """Type, field and place of every sentence."""
    for line, types, field, _ in entries(room):
        for type_ in types:
            yield type_, field, f"{room}.txt:{line}: {type_}.{field}"


def _meant(room: str, type_: str) -> dict[str, Any] | None:
    """The definition a sentence is about; for those about many, one that has all they can say."""
    if room == META and type_ in (ANY_KIND, ANY_LIST):
        return _DEFINITIONS["io.k8s.api.core.v1.PodList"]
    return _DEFINITIONS.get(f"{package(room)}.{type_}")


@pytest.mark.parametrize("room", _ROOMS)
def test_every_sentence_is_about_something_that_exists(room: str) -> None:
    strangers = []
    for type_, field, place in _said(room):
        definition = _meant(room, type_)
        if definition is None or (field and field not in definition.get("properties", {})):
            strangers.append(place)
    assert strangers == []


@pytest.mark.parametrize("room", _ROOMS)
def test_nothing_is_said_twice(room: str) -> None:
    said = Counter((type_, field) for type_, field, _ in _said(room))
    assert said
    assert [name for name, times in said.items() if times > 1] == []


@pytest.mark.parametrize("room", _ROOMS)
def test_sentences_are_short_and_whole(room: str) -> None:
    odd = [
        f"{room}.txt:{line}"
        for line, _, _, text in entries(room)
        if not text.endswith(".") or not 4 <= len(text) <= 200 or text != " ".join(text.split())
    ]
    assert odd == []


def test_every_type_is_described() -> None:
    assert [name for name, schema in _DEFINITIONS.items() if not schema.get("description")] == []


def test_hardly_a_field_goes_without_a_sentence() -> None:
    fields = {
        f"{name}.{field}": bool(schema.get("description"))
        for name, definition in _DEFINITIONS.items()
        for field, schema in definition.get("properties", {}).items()
    }
    bare = sorted(name for name, is_described in fields.items() if not is_described)
    assert len(fields) > 1500
    assert len(bare) <= len(fields) * (1 - _COVERAGE), bare


@pytest.mark.parametrize("kind", SCHEME.kinds, ids=lambda kind: kind.qualified_resource)
def test_every_kind_is_described_down_to_its_spec_and_status(kind: Kind) -> None:
    top = _DEFINITIONS[definition_name(kind.type)]
    mentions = [top["properties"].get(part, {}).get("$ref") for part in ("spec", "status")]
    below = [_DEFINITIONS[mention.removeprefix("#/definitions/")] for mention in mentions if mention]
    fields = [(name, schema) for part in (top, *below) for name, schema in part["properties"].items()]
    assert fields
    assert [name for name, schema in fields if not schema.get("description")] == []


def test_what_is_said_of_every_kind_is_not_said_of_references() -> None:
    assert (
        words_for("core_v1", "Pod", is_kind=True)["kind"] == words_for(META, ANY_KIND, is_kind=False)["kind"]
    )
    assert "apiVersion" not in words_for("core_v1", "PodSpec", is_kind=False)
    reference = _DEFINITIONS["io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference"]["properties"]
    assert "owner" in reference["kind"]["description"]


def test_a_room_without_a_file_has_nothing_to_say() -> None:
    assert list(entries("nowhere_v1")) == []
    assert words_for("nowhere_v1", "Nothing", is_kind=False) == {}


def test_both_versions_say_the_same() -> None:
    document = _OPEN_API.v3("api/v1")
    assert document is not None
    new = json.loads(document.body)["components"]["schemas"]["io.k8s.api.core.v1.Toleration"]
    old = _DEFINITIONS["io.k8s.api.core.v1.Toleration"]
    assert new["description"] == old["description"]
    assert {name: schema["description"] for name, schema in new["properties"].items()} == {
        name: schema["description"] for name, schema in old["properties"].items()
    }


def test_no_file_is_read_before_a_document_is_asked_for() -> None:
    """Starting must not pay for what nobody reads; told by what an interpreter of its own has opened."""
    program = (
        "import sys; opened = []\n"
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None)\n"
        "from nodeward.api.openapi import OpenApi\n"
        "from nodeward.api.scheme import SCHEME\n"
        "api = OpenApi(SCHEME, '1.37')\n"
        "def read(): return sum('descriptions' in path and path.endswith('.txt') for path in opened)\n"
        "before = read(); api.index_v3\n"
        "print(before, read())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", str(len(_ROOMS))]
