"""lightkube: typed objects, all patches, watch and apply."""

from __future__ import annotations

import sys
from typing import Any

from lightkube import ApiError, Client
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Pod
from lightkube.types import PatchType


def refusal(function: Any, *arguments: Any, **options: Any) -> Any:
    try:
        function(*arguments, **options)
    except ApiError as error:
        return error.status
    raise AssertionError("it was not refused")


def works(client: Any) -> None:
    spec = PodSpec(containers=[Container(name="main", image="registry.example/app:1")])
    wanted = Pod(metadata=ObjectMeta(name="one", labels={"app": "one"}), spec=spec)
    made = client.create(wanted)
    assert made.metadata.uid
    assert refusal(client.create, wanted).reason == "AlreadyExists"
    assert client.get(Pod, "one") == made
    assert [found.metadata.name for found in client.list(Pod, labels={"app": "one"})] == ["one"]
    made.metadata.labels["more"] = "x"
    assert client.replace(made).metadata.labels == {"app": "one", "more": "x"}
    assert refusal(client.replace, made).reason == "Conflict"
    for way in (PatchType.STRATEGIC, PatchType.MERGE):
        patched = client.patch(Pod, "one", {"metadata": {"labels": {"way": way.name}}}, patch_type=way)
        assert patched.metadata.labels["way"] == way.name
    changes = [{"op": "remove", "path": "/metadata/labels/way"}]
    assert "way" not in client.patch(Pod, "one", changes, patch_type=PatchType.JSON).metadata.labels


def watches(client: Any) -> None:
    seen = []
    for kind, found in client.watch(Pod, fields={"metadata.name": "one"}):
        seen.append((kind, found.metadata.name))
        if kind == "DELETED":
            break
        client.delete(Pod, "one")
    assert seen == [("ADDED", "one"), ("DELETED", "one")], seen
    assert refusal(client.get, Pod, "one").reason == "NotFound"


def applies(client: Any) -> None:
    def apply(value: str, **options: Any) -> dict[str, str]:
        applied = client.apply(ConfigMap(metadata=ObjectMeta(name="one"), data={"a": value}), **options)
        return dict(applied.data)

    assert apply("1") == {"a": "1"}
    assert apply("2") == {"a": "2"}
    refused = refusal(apply, "3", field_manager="another")
    assert (refused.reason, 'conflict with "lightkube": .data.a' in refused.message) == ("Conflict", True)
    assert apply("3", field_manager="another", force=True) == {"a": "3"}


if __name__ == "__main__":
    connected = Client(namespace=sys.argv[1], field_manager="lightkube")
    works(connected)
    watches(connected)
    applies(connected)
