"""Resizes as conformance tests make them: many containers at once, added limits, amounts that mean the same."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.core_v1.pod import Pod
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.kubelet.hosting import Hosted, hosted, specification
from tests.kubelet.test_resizing import container, resources, run

#: container -> (requests, limits) before and after
Sizes = dict[str, tuple[tuple[str, str], tuple[str, str]]]

THREE_UP: Sizes = {
    "c1": (("cpu=100m,memory=100Mi",) * 2, ("cpu=140m,memory=150Mi",) * 2),
    "c2": (("cpu=200m,memory=200Mi",) * 2, ("cpu=250m,memory=250Mi",) * 2),
    "c3": (("cpu=300m,memory=300Mi",) * 2, ("cpu=250m,memory=250Mi",) * 2),
}
MIXED: Sizes = {
    "c1": (
        ("cpu=100m,memory=100Mi", "cpu=200m,memory=200Mi"),
        ("cpu=150m,memory=100Mi", "cpu=200m,memory=250Mi"),
    ),
    "c2": (("cpu=100m", ""), ("cpu=150m", "cpu=300m")),
    "c3": (("memory=100Mi", ""), ("memory=150Mi", "memory=300Mi")),
    "c4": (("cpu=100m,memory=100Mi", ""), ("cpu=50m,memory=50Mi", "cpu=100m,memory=100Mi")),
    "c5": (("", "cpu=200m"), ("", "cpu=300m")),
    "c6": (("", ""), ("cpu=100m,memory=100Mi", "cpu=200m,memory=200Mi")),
}
EQUIVALENT: Sizes = {
    "c1": (("cpu=2m", "cpu=10m"), ("cpu=1m", "cpu=5m")),
    "c2": (("cpu=1m", "cpu=5m"), ("cpu=2m", "cpu=10m")),
}


def _tree(size: tuple[str, str]) -> dict[str, Any]:
    found = resources(*size)
    amounts = {"requests": found.requests, "limits": found.limits}
    return {key: {name: str(each) for name, each in value.items()} for key, value in amounts.items() if value}


async def _check(each: Hosted, sizes: Sizes) -> None:
    pod = await each.pod("web")
    assert pod.status.observed_generation == pod.metadata.generation == 2
    assert not [one for one in pod.status.conditions if one.type.startswith("PodResize")]
    for status in pod.status.container_statuses:
        spec = next(one.resources for one in pod.spec.containers if one.name == status.name)
        assert status.resources == spec, status.name
        assert status.allocated_resources == spec.requests
        assert status.restart_count == 0
        wanted = resources(*sizes[status.name][1])
        assert wanted.limits.items() <= spec.limits.items()


@pytest.mark.parametrize("verb", ["patch", "replace"])
@pytest.mark.parametrize("sizes", [THREE_UP, MIXED, EQUIVALENT], ids=["guaranteed", "added", "equivalent"])
def test_the_status_of_every_container_is_its_new_size(sizes: Sizes, verb: str) -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            await run(each, "web", *(container(name, *before) for name, (before, _) in sizes.items()))
            if verb == "patch":
                changed = [{"name": name, "resources": _tree(after)} for name, (_, after) in sizes.items()]
                patch = {"spec": {"containers": changed}}
                await each.client.patch(Pod, "web", patch, namespace="default", subresource="resize")
            else:
                pod = await each.pod("web")
                for one in pod.spec.containers:
                    wanted = resources(*sizes[one.name][1])
                    one.resources.requests = one.resources.requests | wanted.requests
                    one.resources.limits = one.resources.limits | wanted.limits
                await each.client.update(pod, subresource="resize")
            await clock.sleep(1)
            await _check(each, sizes)

    run_virtual(main)
