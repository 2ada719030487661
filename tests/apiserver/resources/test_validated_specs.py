"""Specs kept as validated never let an invalid pod in."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.core_v1.volume import Volume
from nodeward.apiserver.resources.validated_specs import spec_key
from tests.apiserver.running import Caller, running

PODS = "/api/v1/namespaces/default/pods"


def pod(name: str, volumes: list[str], mounted: str) -> dict[str, Any]:
    mounts = [{"name": mounted, "mountPath": "/x"}]
    return {
        "metadata": {"name": name},
        "spec": {
            "containers": [{"name": "c", "image": "i", "volumeMounts": mounts}],
            "volumes": [{"name": each, "emptyDir": {}} for each in volumes],
        },
    }


@pytest.mark.parametrize(
    ("volumes", "mounted"),
    [
        (["kube-api-access-BAD_!"], "kube-api-access-BAD_!"),
        (["kube-api-access-aaaaa"], "kube-api-access-"),
        (["kube-api-access-aaaaa", "kube-api-access-aaaaa"], "kube-api-access-aaaaa"),
    ],
)
def test_a_volume_named_like_a_token_is_looked_at_all_the_same(volumes: list[str], mounted: str) -> None:
    async def story() -> int:
        async with running() as server:
            caller = Caller.of(server)
            sound = [f"kube-api-access-abc{n}x" for n in range(len(volumes))]
            for name in ("a", "b"):
                assert (await caller.send("POST", PODS, pod(name, sound, sound[0]))).status == 201
            return (await caller.send("POST", PODS, pod("c", volumes, mounted))).status

    assert asyncio.run(story()) == 422


def test_pods_that_differ_in_the_name_of_their_token_volume_are_the_same() -> None:
    def made(name: str) -> Pod:
        return Pod(spec=PodSpec(volumes=[Volume(name=name)]))

    assert spec_key(made("kube-api-access-abcde")) == spec_key(made("kube-api-access-fgh12"))
    assert spec_key(made("kube-api-access-abcde")) != spec_key(made("kube-api-access-FGH12"))
