"""Random requests for every path and verb of our own OpenAPI documents: no 500, no hang, nothing that is no answer.

A seed decides everything a request is; it changes from run to run (`tests/rounds.py`).
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from typing import Any

import pytest

from nodeward.machinery.transport import Response
from tests.apiserver.running import Caller, running
from tests.fuzz.generator import Generator, mutate
from tests.fuzz.surface import GOOD, Operation, operations
from tests.patience import PATIENCE_SECONDS
from tests.rounds import rounds, seed_of, soak

REQUESTS = 1500
OBJECTS = 150

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PATCHES = ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")


class Fuzzer:
    """Makes requests out of one seed."""

    def __init__(self, caller: Caller, chosen: list[Operation], chance: random.Random) -> None:
        self._caller = caller
        self._operations = chosen
        self._chance = chance
        self.statuses: Counter[int] = Counter()

    async def one(self) -> None:
        chance = self._chance
        operation = chance.choice(self._operations)
        name = chance.choice(("a", "a", "a", "b", "default", "no-such"))
        namespace = "default" if chance.random() < 0.9 else "no-such"
        path = operation.path.replace("{namespace}", namespace).replace("{name}", name).replace("{path}", "x")
        query = self._query(operation)
        body, kind = self._body(operation, name)
        if operation.method == "PATCH":
            query += ["fieldManager=fuzz", *(["force=true"] if chance.random() < 0.3 else [])]
        target = f"{path}?{'&'.join(query)}" if query else path
        accept = chance.choice(("application/json",) * 4 + (TABLE, METADATA))
        data = None if body is None else json.dumps(body).encode()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                answer = await self._caller.send(
                    operation.method, target, data, content_type=kind, accept=accept
                )
            self._check(answer, is_watch="watch=true" in query)
        except Exception as error:
            error.add_note(f"{operation.method} {target} {kind}\n{data!r}")
            raise

    def _check(self, answer: Response, *, is_watch: bool) -> None:
        self.statuses[answer.status] += 1
        body = answer.body or b""
        # 504 is what a resourceVersion of the future is answered with.
        assert answer.status < 500 or answer.status == 504, body
        if answer.headers["content-type"] != "application/json":
            assert answer.status == 404, body
            return
        for line in body.splitlines() if is_watch and answer.status == 200 else [body]:
            said = json.loads(line)
            assert said.get("kind") or said.get("type"), said
            if answer.status >= 400:
                assert (said["kind"], said["code"], said["status"]) == ("Status", answer.status, "Failure")
                assert said["message"]

    def _query(self, operation: Operation) -> list[str]:
        chance = self._chance
        choices = {
            "dryRun": ("All", "All", "None"),
            "fieldValidation": ("Strict", "Ignore", "Warn", "Perhaps"),
            "limit": ("1", "2", "-1", "x"),
            "labelSelector": ("a%3Db", "a+in+(b)", "!a", "a!=b,c", "(("),
            "fieldSelector": ("metadata.name%3Da", "spec.nodeName%3Da", "x%3Dy"),
            "resourceVersion": ("0", "1", "5", "99999999"),
            "resourceVersionMatch": ("Exact", "NotOlderThan"),
            "propagationPolicy": ("Orphan", "Foreground", "Background", "Perhaps"),
            "gracePeriodSeconds": ("0", "-1", "30"),
            "continue": ("x", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiJhXHUwMDAwIn0"),
            "pretty": ("true",),
        }
        query = [
            f"{name}={chance.choice(values)}" for name, values in choices.items() if chance.random() < 0.08
        ]
        if operation.is_watch or (operation.method == "GET" and chance.random() < 0.1):
            query += ["watch=true", "timeoutSeconds=-1"]
        return query

    def _body(self, operation: Operation, name: str) -> tuple[Any, str]:
        chance = self._chance
        generator = Generator(operation.schemas, chance, chance.choice((0, 0.02, 0.15)))
        kind = "application/json"
        if operation.method == "GET" or (operation.method == "DELETE" and chance.random() < 0.6):
            return None, kind
        if operation.method == "DELETE":
            return generator.value(operation.body or {}), kind
        if operation.method == "PATCH":
            kind = f"application/{chance.choice(PATCHES)}"
            if kind.endswith("json-patch+json"):
                return [self._step(generator) for _ in range(chance.randrange(4))], kind
        schema = _schema_of(operation)
        if operation.kind in GOOD and chance.random() < 0.75:
            return mutate(good_object(operation, name), chance, generator, schema), kind
        made = generator.value(schema)
        if isinstance(made, dict) and chance.random() < 0.8:
            meta = made.get("metadata")
            made["metadata"] = {**(meta if isinstance(meta, dict) else {}), "name": name}
            made["apiVersion"], made["kind"] = _version(operation), operation.kind
        return made, kind

    def _step(self, generator: Generator) -> dict[str, Any]:
        chance = self._chance
        parts = (
            "metadata",
            "spec",
            "labels",
            "annotations",
            "containers",
            "0",
            "-",
            "a",
            "status",
            "data",
            "",
        )
        path = "".join(f"/{chance.choice(parts)}" for _ in range(chance.randrange(5)))
        operation = chance.choice(("add", "replace", "remove", "test", "copy", "move", "frobnicate"))
        return {
            "op": operation,
            "path": path,
            "from": "/metadata",
            "value": generator.value({"type": "string"}),
        }


def _version(operation: Operation) -> str:
    return f"{operation.group}/v1" if operation.group else "v1"


def _schema_of(operation: Operation) -> Any:
    wanted = f".{operation.kind}"
    return next((schema for name, schema in operation.schemas.items() if name.endswith(wanted)), {})


def good_object(operation: Operation, name: str) -> dict[str, Any]:
    return {
        "apiVersion": _version(operation),
        "kind": operation.kind,
        "metadata": {"name": name, "labels": {"a": "b"}},
        **GOOD[operation.kind],
    }


@soak
@pytest.mark.parametrize("number", range(rounds(2, 12)))
def test_every_request_is_answered(number: int) -> None:
    chance = random.Random(seed_of(f"answered-{number}"))

    async def play() -> Counter[int]:
        async with running() as server:
            caller = Caller.of(server)
            fuzzer = Fuzzer(caller, await operations(caller), chance)
            for _ in range(REQUESTS):
                await fuzzer.one()
            return fuzzer.statuses

    statuses = asyncio.run(play())
    # Not only refusals: the run must get behind the doors it tries.
    assert {200, 201, 400, 404, 422} <= set(statuses), statuses


def test_the_documents_describe_a_whole_api() -> None:
    async def play() -> list[Operation]:
        async with running() as server:
            return await operations(Caller.of(server))

    found = asyncio.run(play())
    assert {operation.method for operation in found} == {"GET", "PUT", "POST", "DELETE", "PATCH"}
    assert len(found) > 400
    assert set(GOOD) <= {operation.kind for operation in found}


@soak
@pytest.mark.parametrize("number", range(rounds(2, 12)))
def test_whatever_is_created_can_be_read_listed_and_deleted(number: int) -> None:
    chance = random.Random(seed_of(f"created-{number}"))

    async def play() -> int:
        async with running() as server:
            caller = Caller.of(server)
            creating = [
                operation
                for operation in await operations(caller)
                if operation.method == "POST"
                and operation.kind in GOOD
                and not operation.path.endswith("}/scale")
                if "{name}" not in operation.path
            ]
            made = 0
            for number in range(OBJECTS):
                operation = chance.choice(creating)
                generator = Generator(operation.schemas, chance, 0.01)
                obj = mutate(good_object(operation, f"o{number}"), chance, generator, _schema_of(operation))
                made += await round_trip(caller, operation.path.replace("{namespace}", "default"), obj)
            return made

    assert asyncio.run(play()) > OBJECTS // 5


async def round_trip(caller: Caller, collection: str, obj: Any) -> bool:
    """Create and, if that was allowed, read, list and delete; gives whether it was."""
    status, made = await caller.json("POST", collection, obj)
    if status != 201:
        assert status in (400, 403, 409, 422), (status, made, obj)
        return False
    meta = made["metadata"]
    path = f"{collection}/{meta['name']}"
    assert await caller.json("GET", path) == (200, made), obj
    _, listed = await caller.json("GET", collection)
    item = next(item for item in listed["items"] if item["metadata"]["uid"] == meta["uid"])
    assert {**item, "kind": made["kind"], "apiVersion": made["apiVersion"]} == made
    # Written back as it was read, it is the same object; nothing is lost or invented on the way.
    assert await caller.json("PUT", path, made) == (200, made), obj
    status, answer = await caller.json(
        "DELETE", path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
    )
    assert status == 200, (answer, obj)
    status, left = await caller.json("GET", path)
    if meta.get("finalizers") or made.get("spec", {}).get("finalizers"):
        assert left["metadata"]["deletionTimestamp"]
    else:
        assert status == 404, (left, obj)
    return True
