"""Every recorded answer of a real kube-apiserver 1.37 is ours too: status, causes, warnings, shape and values.

The recording server ran with TaintTolerationComparisonOperators on, anonymous requests off, and without the admission
plugins ServiceAccount and TaintNodesByCondition; so does ours. What cannot be
equal is compared in its own way: `KNOWN` says how.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.api.recorded import samples
from tests.apiserver.running import Caller, running, settings

SETTINGS = settings(
    gates="TaintTolerationComparisonOperators=true",
    disable_admission=("ServiceAccount", "TaintNodesByCondition"),
    allows_anonymous=False,
)

#: Subresources that are not served.
LATER = {"pods/proxy", "services/proxy"}


def differences(wanted: Any, got: Any, at: str = "") -> list[str]:
    """Where two answers differ, apart from what a recording leaves open (uids, revisions, times)."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        found = [f"{at}.{key} is missing" for key in wanted if key not in got]
        found += [f"{at}.{key} is too much" for key in got if key not in wanted]
        for key in wanted.keys() & got.keys():
            found += differences(wanted[key], got[key], f"{at}.{key}")
        return sorted(found)
    if isinstance(wanted, list) and isinstance(got, list):
        found = [] if len(wanted) == len(got) else [f"{at} has {len(got)} items instead of {len(wanted)}"]
        for position, (one, two) in enumerate(zip(wanted, got, strict=False)):
            found += differences(one, two, f"{at}[{position}]")
        return found
    is_open = isinstance(wanted, str) and (
        wanted.startswith("<") or (wanted[4:5] == "-" and wanted.endswith("Z"))
    )
    return [] if wanted == got or is_open else [f"{at}: {got!r} instead of {wanted!r}"]


def _same_keys(wanted: Any, got: Any) -> list[str]:
    return [] if wanted.keys() == got.keys() else [f"keys {sorted(got)} instead of {sorted(wanted)}"]


def _health_form(wanted: Any, got: Any) -> list[str]:
    lines = got.splitlines()
    is_right = lines[-1] == wanted.splitlines()[-1] and all(line.startswith("[+]") for line in lines[:-1])
    missing = [line for line in lines[:-1] if line not in wanted.splitlines()]
    return [f"unknown checks {missing}"] if missing else [] if is_right else [f"not a health report: {got!r}"]


def _address_apart(wanted: Any, got: Any) -> list[str]:
    got["serverAddressByClientCIDRs"][0]["serverAddress"] = wanted["serverAddressByClientCIDRs"][0][
        "serverAddress"
    ]
    return differences(wanted, got)


#: Elsewhere a custom resource, which the recorded server does not have.
CUSTOM = "readiness.node.x-k8s.io"


def _served_groups(wanted: Any, got: Any) -> list[str]:
    got["groups"] = [group for group in got["groups"] if group["name"] != CUSTOM]
    names = [group["name"] for group in got["groups"]]
    wanted["groups"] = [group for group in wanted["groups"] if group["name"] in names]
    return differences(wanted, got)


def _served_resources(wanted: Any, got: Any) -> list[str]:
    names = [resource["name"] for resource in got["resources"]]
    wanted["resources"] = [resource for resource in wanted["resources"] if resource["name"] not in LATER]
    found = differences(wanted, got)
    # Upstream still stores taint rules in an older version; their hash is of that version.
    return [text for text in found if "storageVersionHash" not in text or "devicetaintrules" not in names[1]]


def _served_discovery(wanted: Any, got: Any) -> list[str]:
    got["items"] = [item for item in got["items"] if item["metadata"].get("name") != CUSTOM]
    names = [item["metadata"].get("name") for item in got["items"]]
    wanted["items"] = [item for item in wanted["items"] if item["metadata"].get("name") in names]
    for item in wanted["items"]:
        for version in item["versions"]:
            for resource in version["resources"]:
                kept = [
                    sub
                    for sub in resource.get("subresources", [])
                    if f"{resource['resource']}/{sub['subresource']}" not in LATER
                ]
                if kept:
                    resource["subresources"] = kept
    return differences(wanted, got)


def _descriptions_apart(wanted: Any, got: Any) -> list[str]:
    for column in got["columnDefinitions"]:
        assert column.pop("description"), "a column explains itself"
    return differences(wanted, got)


def _events_apart(wanted: Any, got: Any) -> list[str]:
    """The recording goes on; what we send must be events of the same kind, in the same order, from the same start."""

    def events(text: str) -> list[tuple[str, str]]:
        found = [
            json.loads(line)
            for line in text.splitlines()
            if line.startswith('{"type"') and line.endswith("}}")
        ]
        return [(event["type"], event["object"]["kind"]) for event in found]

    ours, theirs = events(got), events(wanted)
    return [] if ours and ours[: len(theirs)] == theirs[: len(ours)] else [f"{ours} instead of {theirs}"]


def _token_apart(wanted: Any, got: Any) -> list[str]:
    assert got["metadata"].pop("continue")
    wanted["metadata"].pop("continue")
    return differences(wanted, got)


#: Recordings that are compared in their own way.
KNOWN: dict[str, Callable[[Any, Any], list[str]]] = {
    "version": _same_keys,
    "readyz verbose": _health_form,
    "api versions": _address_apart,
    "apis": _served_groups,
    "aggregated discovery core": _served_discovery,
    "aggregated discovery groups": _served_discovery,
    "legacy resources core": _served_resources,
    "legacy resources resource.k8s.io": _served_resources,
    "list pods as Table": _descriptions_apart,
    "nodes as Table": _descriptions_apart,
    "watch too old": _events_apart,
    "list limit/continue": _token_apart,
}


async def _replay(clock: VirtualClock) -> dict[str, list[str]]:
    """All recordings, in their order, against one server."""
    found: dict[str, list[str]] = {}
    async with running(SETTINGS, clock=clock) as server, running(clock=clock) as plain:
        caller, nobody = Caller.of(server), Caller.anonymous(server)
        await Caller.of(plain).send("POST", "/api/v1/namespaces", {"metadata": {"name": "samples"}})
        for sample in samples():
            request, name = sample["request"], sample["name"]
            body = request.get("body")
            # Unlike upstream, the gate of numeric tolerations counts for devices too: that one is asked without it.
            special = {"unauthorized": nobody, "invalid resourceclaim (CEL, toleration)": Caller.of(plain)}
            response = await special.get(name, caller).send(
                request["method"],
                request["path"],
                body.encode() if isinstance(body, str) else body,
                content_type=request.get("contentType", ""),
                accept=request["accept"],
                agent="Python-urllib/3.11",
            )
            text = (response.body or b"").decode()
            is_json = sample["headers"]["Content-Type"].startswith(
                "application/json"
            ) and not text.startswith('{"type"')
            got: Any = json.loads(text) if is_json else text
            problems = [] if response.status == sample["status"] else [f"status {response.status}"]
            problems += [
                f"{header}: {response.headers.get(header.lower())!r}"
                for header in ("Content-Type", "Warning")
                if sample["headers"].get(header) != response.headers.get(header.lower())
            ]
            found[name] = problems + KNOWN.get(name, differences)(sample["body"], got)
    return found


@pytest.fixture(scope="module")
def replayed() -> dict[str, list[str]]:
    return run_virtual(_replay)  # objects do not age while we look at them


def test_every_recorded_answer_is_ours_too(replayed: dict[str, list[str]]) -> None:
    wrong = {name: problems for name, problems in replayed.items() if problems}
    assert not wrong, json.dumps(wrong, indent=1)


def test_nothing_is_left_out_of_the_comparison(replayed: dict[str, list[str]]) -> None:
    assert len(replayed) == len(samples()) >= 49
    assert not set(KNOWN) - set(replayed), "a special comparison for a recording that is not there"
