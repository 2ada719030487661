"""The fast way to the managed fields of a created object says what the slow way says."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeward.api.apply.create_fields import fields_v1_bytes
from nodeward.api.apply.field_set import Path, encode, from_paths, named, recursive_difference
from nodeward.api.apply.ownership import empty_tree
from nodeward.api.apply.walk import compare
from nodeward.api.apps_v1 import Deployment
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.service import Service
from nodeward.api.resource_v1 import ResourceClaim, ResourceSlice
from nodeward.api.schema import Schema, schema_of
from tests.api.apply.trees import POD, pod_tree, trees

STRIPS: list[tuple[Path, ...]] = [
    (),
    (named("status"), named("metadata", "name")),
    (named("spec"), named("metadata", "labels", "a")),
    (named("spec", "securityContext", "runAsUser"), named("apiVersion")),
]


def slowly(tree: dict[str, Any], schema: Schema, strip: tuple[Path, ...]) -> bytes:
    changed = compare(empty_tree(schema.python_type), tree, schema).changed
    return encode(recursive_difference(changed, from_paths(*strip)))


@pytest.mark.parametrize("kind", [Pod, Deployment, Service, ResourceClaim, ResourceSlice])
def test_both_ways_agree(kind: type[msgspec.Struct]) -> None:
    schema = schema_of(kind)

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(trees(schema), st.sampled_from(STRIPS))
    def agree(tree: dict[str, Any], strip: tuple[Path, ...]) -> None:
        expected = slowly(tree, schema, strip)
        assert fields_v1_bytes(tree, schema, strip) == expected
        assert fields_v1_bytes(tree, schema, strip) == expected, "from memory"

    agree()


def test_a_usual_pod_is_written_alike_both_ways() -> None:
    assert fields_v1_bytes(pod_tree(), POD) == slowly(pod_tree(), POD, ())


def test_a_client_that_invents_names_changes_nothing() -> None:
    for turn in range(3000):
        tree = {
            "metadata": {"labels": {f"x{turn}": "1", "%s": "2"}},
            "spec": {"containers": []},
            "status": {},
        }
        assert fields_v1_bytes(tree, POD) == slowly(tree, POD, ())
