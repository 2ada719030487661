"""kr8s, its plain (not async) half."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import kr8s as library
import kr8s.asyncio
import kr8s.objects

from tests.e2e.clients.objects import config_map, deployment, pod

# Its plain half is made at run time out of the async one, so its types say otherwise.
k8s: Any = library


def refusal(function: Any) -> int:
    try:
        function()
    except k8s.ServerError as error:
        return int(error.response.status_code)
    raise AssertionError("it was not refused")


def works(namespace: str) -> None:
    api = k8s.api(namespace=namespace)
    assert api.version()["gitVersion"] == "v1.37.0"
    assert api.whoami() == "kubernetes-admin"
    one = k8s.objects.Pod(pod("one"), namespace=namespace, api=api)
    one.create()
    assert one.exists()
    assert one.status.phase == "Pending"
    one.label({"more": "x"})
    one.patch({"metadata": {"annotations": {"note": "y"}}})
    assert (one.labels, one.annotations) == ({"app": "one", "more": "x"}, {"note": "y"})
    assert [found.name for found in api.get("pods", label_selector={"app": "one"})] == ["one"]
    assert refusal(k8s.objects.Pod(pod("one"), namespace=namespace, api=api).create) == 409
    web = k8s.objects.Deployment(deployment("web"), namespace=namespace, api=api)
    web.create()
    web.scale(replicas=2)
    web.patch({"spec": {"replicas": 3}})
    assert web.replicas == 3

    seen = []
    for kind, found in api.watch("pods", namespace=namespace):
        seen.append((kind, found.name))
        if kind == "DELETED":
            break
        one.delete()
    assert seen == [("ADDED", "one"), ("DELETED", "one")], seen
    assert not one.exists()


def applies(namespace: str) -> None:
    """It has no apply of its own; a plain call goes the same way, and only its async half has one."""

    async def apply(value: str) -> int:
        api = await library.asyncio.api(namespace=namespace)
        async with api.call_api(
            "PATCH",
            version="v1",
            url="configmaps/one",
            namespace=namespace,
            params={"fieldManager": "kr8s"},
            headers={"Content-Type": "application/apply-patch+yaml"},
            content=json.dumps(config_map("one", {"a": value})),
        ) as response:
            return int(response.status_code)

    assert asyncio.run(apply("1")) == 201
    assert asyncio.run(apply("2")) == 200
    api = k8s.api(namespace=namespace)
    assert k8s.objects.ConfigMap.get("one", namespace=namespace, api=api).data == {"a": "2"}


if __name__ == "__main__":
    works(sys.argv[1])
    applies(sys.argv[1])
