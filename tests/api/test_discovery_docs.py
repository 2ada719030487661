"""Discovery documents, against those of a real server."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from nodeward.api.discovery_docs import (
    AggregatedVersion,
    DiscoveryDocument,
    aggregated_core,
    aggregated_groups,
    api_group,
    api_group_list,
    api_resource_list,
    api_versions,
    group_versions,
    version_info,
)
from nodeward.api.scheme import SCHEME, Kind, Scheme
from tests.api.recorded import recorded_answer, recorded_body

#: Elsewhere a custom resource, which the recorded server does not have.
_CUSTOM = "readiness.node.x-k8s.io"
_SERVED_GROUPS = set(SCHEME.groups())


def _content(document: DiscoveryDocument | None) -> dict[str, Any]:
    assert document is not None
    content: dict[str, Any] = json.loads(document.body)
    return content


def _served_paths() -> set[tuple[str, str]]:
    paths = {(kind.group, kind.resource) for kind in SCHEME.kinds}
    return paths | {
        (kind.group, f"{kind.resource}/{sub.name}") for kind in SCHEME.kinds for sub in kind.subresources
    }


def _only_served_resources(answer: dict[str, Any]) -> dict[str, Any]:
    served = _served_paths()
    group = answer["groupVersion"].rpartition("/")[0]
    resources = [r for r in answer["resources"] if (group, r["name"]) in served]
    return answer | {"resources": resources}


def _only_served_groups(answer: dict[str, Any]) -> dict[str, Any]:
    """What remains of a real server's aggregated answer when only our resources are looked at."""
    served = _served_paths()
    items = []
    for group in answer["items"]:
        name = group["metadata"].get("name", "")
        for version in group["versions"]:
            version["resources"] = [r for r in version["resources"] if (name, r["resource"]) in served]
            for resource in version["resources"]:
                kept = [
                    sub
                    for sub in resource.pop("subresources", [])
                    if (name, f"{resource['resource']}/{sub['subresource']}") in served
                ]
                if kept:
                    resource["subresources"] = kept
        group["versions"] = [v for v in group["versions"] if v["resources"]]
        if group["versions"]:
            items.append(group)
    return answer | {"items": items}


def test_api_names_the_core_version_and_the_address() -> None:
    expected = recorded_body("api versions")
    address = expected["serverAddressByClientCIDRs"][0]["serverAddress"]
    assert _content(api_versions(address)) == expected


def test_apis_lists_our_groups_in_the_order_of_a_real_server() -> None:
    expected = recorded_body("apis")
    expected["groups"] = [g for g in expected["groups"] if g["name"] in _SERVED_GROUPS]
    answer = _content(api_group_list(SCHEME))
    assert answer["groups"].pop()["name"] == _CUSTOM
    assert answer == expected


def test_one_group_says_what_the_list_says_of_it() -> None:
    listed = next(g for g in _content(api_group_list(SCHEME))["groups"] if g["name"] == "apps")
    assert _content(api_group(SCHEME, "apps")) == {"kind": "APIGroup", "apiVersion": "v1", **listed}


@pytest.mark.parametrize("group", ["", "nope.example.com"])
def test_a_group_that_is_not_served_has_no_document(group: str) -> None:
    assert api_group(SCHEME, group) is None


def test_legacy_core_resources_are_those_of_a_real_server() -> None:
    expected = recorded_body("legacy resources core")
    assert _content(api_resource_list(SCHEME, "", "v1")) == _only_served_resources(expected)


def test_legacy_group_resources_are_those_of_a_real_server() -> None:
    expected = _only_served_resources(recorded_body("legacy resources resource.k8s.io"))
    answer = _content(api_resource_list(SCHEME, "resource.k8s.io", "v1"))
    # Kubernetes still stores this one kind in an older version; here it is stored as v1.
    for document in (expected, answer):
        rule = next(r for r in document["resources"] if r["name"] == "devicetaintrules")
        assert rule.pop("storageVersionHash") in ("i+85+TcIKpA=", "qvhYPLi0ox4=")
    assert answer == expected


def test_readiness_rules_are_listed_as_their_own_project_defines_them() -> None:
    rules, status = _content(api_resource_list(SCHEME, _CUSTOM, "v1alpha1"))["resources"]
    assert (rules["name"], rules["kind"], rules["namespaced"]) == (
        "nodereadinessrules",
        "NodeReadinessRule",
        False,
    )
    assert (rules["singularName"], rules["shortNames"]) == ("nodereadinessrule", ["nrr"])
    assert (status["name"], status["verbs"]) == ("nodereadinessrules/status", ["get", "patch", "update"])


def test_both_forms_of_events_are_stored_in_the_same_version() -> None:
    hashes = {
        group: next(
            r["storageVersionHash"]
            for r in _content(api_resource_list(SCHEME, group, "v1"))["resources"]
            if r["name"] == "events"
        )
        for group in ("", "events.k8s.io")
    }
    assert hashes == {"": "r2yiGXH7wu8=", "events.k8s.io": "r2yiGXH7wu8="}


def test_a_version_that_is_not_served_has_no_document() -> None:
    assert api_resource_list(SCHEME, "apps", "v2") is None


@pytest.mark.parametrize(
    ("sample", "build"),
    [
        ("aggregated discovery core", aggregated_core),
        ("aggregated discovery groups", aggregated_groups),
    ],
    ids=["core", "groups"],
)
def test_aggregated_discovery_is_that_of_a_real_server(sample: str, build: Any) -> None:
    recorded = recorded_answer(sample)
    document = build(SCHEME)
    answer = _content(document)
    answer["items"] = [each for each in answer["items"] if each["metadata"].get("name") != _CUSTOM]
    assert answer == _only_served_groups(recorded["body"])
    assert document.content_type == recorded["headers"]["Content-Type"]


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
def test_aggregated_discovery_comes_in_two_versions(version: AggregatedVersion) -> None:
    document = aggregated_core(SCHEME, version)
    assert _content(document)["apiVersion"] == f"apidiscovery.k8s.io/{version}"
    assert f";v={version};" in document.content_type


def test_the_tag_of_aggregated_discovery_follows_its_content() -> None:
    document = aggregated_groups(SCHEME)
    assert document.etag == f'"{hashlib.sha512(document.body).hexdigest().upper()}"'
    smaller = aggregated_groups(Scheme.of(kind for kind in SCHEME.kinds if kind.group != "apps"))
    assert smaller.etag != document.etag


def test_a_smaller_scheme_says_less() -> None:
    scheme = Scheme.of(kind for kind in SCHEME.kinds if kind.name in ("Pod", "Deployment"))
    assert [g["name"] for g in _content(api_group_list(scheme))["groups"]] == ["apps"]
    names = [r["name"] for r in _content(api_resource_list(scheme, "apps", "v1"))["resources"]]
    assert names == ["deployments", "deployments/scale", "deployments/status"]


def test_the_most_stable_and_newest_version_is_preferred() -> None:
    pod = SCHEME.by_name("v1", "Pod")
    assert pod is not None
    versions = ["v1beta2", "v2alpha1", "v1", "v10", "v2", "v1beta1", "odd"]
    scheme = Scheme.of(Kind("g", version, "Pod", pod.type, "pods") for version in versions)
    assert group_versions(scheme, "g") == ["v10", "v2", "v1", "v1beta2", "v1beta1", "v2alpha1", "odd"]


def test_version_has_the_keys_of_a_real_server() -> None:
    expected = recorded_body("version")
    info = version_info("1.37")
    assert list(info) == list(expected)
    build = {"gitCommit", "gitTreeState", "goVersion", "compiler", "platform"}
    assert {k: v for k, v in info.items() if k not in build} == {
        k: v for k, v in expected.items() if k not in build
    }


def test_version_does_not_pretend_to_be_built_with_go() -> None:
    info = version_info("1.37.3")
    assert (info["goVersion"], info["compiler"], info["gitVersion"]) == ("none", "cpython", "v1.37.3")


def test_old_servers_do_not_speak_of_emulation() -> None:
    assert "emulationMinor" not in version_info("1.32")
    assert version_info("1.33")["minCompatibilityMinor"] == "32"
