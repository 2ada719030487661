"""Requests that are cheap to send and were dear to answer: none of them may hold the event loop.

Everything in `nodeward up` shares one event loop, so what is measured is the time its thread computes without a pause
(CPU time: how busy the machine is does not matter). Small requests take milliseconds; the bound is that of a node's
lease and of a health check, with room.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.hostile.wire import Server

SPACE = "/api/v1/namespaces/default"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
#: What the loop may be held for: far below the seconds these requests take as a whole.
HELD_SECONDS = 0.35
JSON, YAML = "application/json", "application/yaml"
APPLY, STRATEGIC = "application/apply-patch+yaml", "application/strategic-merge-patch+json"


def pod(**spec: Any) -> bytes:
    spec = {"containers": [{"name": "c", "image": "i"}], **spec}
    whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bomb"}, "spec": spec}
    return json.dumps(whole).encode()


def container(**fields: Any) -> bytes:
    return pod(containers=[{"name": "c", "image": "i", **fields}])


def wide_role(size: int = 40) -> bytes:
    groups, resources, verbs, names = ([f"{letter}{i}" for i in range(size)] for letter in "grvn")
    rule = {"apiGroups": groups, "resources": resources, "verbs": verbs, "resourceNames": names}
    return json.dumps({"metadata": {"name": "bomb"}, "rules": [rule]}).encode()


SPREAD = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
SEXAGESIMAL = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\ndata: {a: 1" + b":1" * 900_000 + b"}"
MANY_INTS = (
    b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\ndata: {a: ["
    + b",".join([b"1"] * 900_000)
    + b"]}"
)

BOMBS: dict[str, tuple[str, str, str, bytes]] = {
    "yaml of one number in base 60": ("POST", f"{SPACE}/configmaps", YAML, SEXAGESIMAL),
    "yaml of 900,000 numbers": ("POST", f"{SPACE}/configmaps", YAML, MANY_INTS),
    "yaml of many short base 60 numbers": (
        "POST",
        f"{SPACE}/configmaps",
        YAML,
        b"data: [" + b",".join([b"1:1:1:1:1:1:1"] * 60_000) + b"]",
    ),
    "a role of 40 x 40 x 40 x 40": ("POST", ROLES, JSON, wide_role()),
    "a review of a role nobody holds": ("POST", ROLES, YAML, wide_role(80)),
    "19,000 spread constraints": (
        "POST",
        f"{SPACE}/pods",
        JSON,
        pod(topologySpreadConstraints=[{**SPREAD, "topologyKey": f"k{i}"} for i in range(19_000)]),
    ),
    "49,000 host aliases": (
        "POST",
        f"{SPACE}/pods",
        JSON,
        pod(hostAliases=[{"ip": f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}"} for i in range(49_000)]),
    ),
    "30,000 containers": (
        "POST",
        f"{SPACE}/pods",
        JSON,
        pod(containers=[{"name": f"c{i}", "image": "i"} for i in range(30_000)]),
    ),
    "30,000 variables": (
        "POST",
        f"{SPACE}/pods",
        JSON,
        container(env=[{"name": f"n{i}", "value": "v"} for i in range(30_000)]),
    ),
    "30,000 variables, applied": (
        "PATCH",
        f"{SPACE}/pods/bomb?fieldManager=m&force=true",
        APPLY,
        container(env=[{"name": f"n{i}", "value": "v"} for i in range(30_000)]),
    ),
    "90,000 resources that do not exist": (
        "POST",
        f"{SPACE}/pods",
        JSON,
        container(resources={"limits": {f"no{i}": "1" for i in range(90_000)}}),
    ),
    "90,000 labels that are wrong": (
        "POST",
        f"{SPACE}/configmaps",
        JSON,
        json.dumps({"metadata": {"name": "bomb", "labels": {f"-{i}": "-" for i in range(90_000)}}}).encode(),
    ),
    "a million values": ("POST", f"{SPACE}/configmaps", JSON, b'{"data":[' + b"1," * 1_000_000 + b"1]}"),
    "lists in lists": ("POST", f"{SPACE}/configmaps", JSON, b'{"data":' + b"[" * 400 + b"]" * 400 + b"}"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_no_body_holds_the_loop(server: Server, name: str) -> None:
    method, target, media, body = BOMBS[name]
    server.held_seconds()
    answer = server.ask(method, target, body, content_type=media)
    assert answer.status in (200, 201, 400, 403, 413, 422), answer.body[:300]
    assert len(answer.body) < 4 << 20, "a refusal names some faults, not all of a hundred thousand"
    assert server.held_seconds() < HELD_SECONDS
    server.ask("DELETE", target.partition("?")[0].removesuffix("/bomb") + "/bomb?gracePeriodSeconds=0")


def test_a_small_patch_of_a_large_object_does_not_hold_the_loop(server: Server) -> None:
    target = f"{SPACE}/pods/bomb"
    volumes = [{"name": f"v{i}", "emptyDir": {}} for i in range(10_000)]
    assert server.ask("POST", f"{SPACE}/pods", pod(volumes=volumes)).status == 201
    server.held_seconds()
    for media, body in (
        (STRATEGIC, pod(volumes=volumes[::-1])),
        (STRATEGIC, b'{"metadata":{"labels":{"a":"b"}}}'),
        (APPLY, b'{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"c":"d"}}}'),
    ):
        query = "?fieldManager=m&force=true" if media == APPLY else ""
        assert server.ask("PATCH", target + query, body, content_type=media).status in (200, 422)
        assert server.held_seconds() < HELD_SECONDS, media
    assert server.ask("DELETE", f"{target}?gracePeriodSeconds=0").status == 200


@pytest.mark.parametrize("parameter", ["labelSelector", "fieldSelector"])
@pytest.mark.parametrize(
    "selector",
    [
        ",".join(["a!=b"] * 10_000),
        "a in (" + ",".join(f"v{i}" for i in range(8_000)) + ")",
        "=" * 60_000,
        "a=" + "\\" * 60_000,
        "(" * 60_000,
    ],
    ids=["many terms", "many values", "equals", "escapes", "parentheses"],
)
@pytest.mark.parametrize("is_known", [True, False], ids=["admin", "anonymous"])
def test_no_selector_holds_the_loop(server: Server, parameter: str, selector: str, is_known: bool) -> None:
    target = f"{SPACE}/pods?{parameter}={quote(selector, safe='=,()!')}"[:62_000]
    context = None if is_known else server.client_context(None)
    server.held_seconds()
    with server.connect(context) as conversation:
        for watch in ("", "&watch=true"):
            answer = conversation.request("GET", target + watch)
            assert answer.status in ((400,) if is_known else (403,)), answer.body[:300]
    assert server.held_seconds() < HELD_SECONDS
