"""PodSecurity over HTTP: levels of namespaces, refusals in upstream's words, warnings, labels that make no sense.

The messages were recorded from Kubernetes 1.37.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.apiserver.running import Caller, running

PREFIX = "pod-security.kubernetes.io/"
WELL: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def pod(name: str = "p", context: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", **({"securityContext": context} if context is not None else {})}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def with_space(labels: dict[str, str], act: Callable[[Caller], Awaitable[None]]) -> None:
    async def main() -> None:
        async with running() as server:
            caller = Caller.of(server)
            marks = {PREFIX + key: value for key, value in labels.items()}
            made = await caller.json(
                "POST", "/api/v1/namespaces", {"metadata": {"name": "s", "labels": marks}}
            )
            assert made[0] == 201, made
            await act(caller)

    asyncio.run(main())


PODS = "/api/v1/namespaces/s/pods"


@pytest.mark.parametrize(
    ("level", "body", "why"),
    [
        (
            "restricted",
            pod(),
            'allowPrivilegeEscalation != false (container "c" must set '
            "securityContext.allowPrivilegeEscalation=false), "
            'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), '
            'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), '
            'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
            '"Localhost")',
        ),
        (
            "restricted",
            pod(context={**WELL, "runAsUser": 0}, securityContext={"runAsNonRoot": False}),
            "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false), "
            'runAsUser=0 (container "c" must not set runAsUser=0)',
        ),
        (
            "restricted",
            pod(
                context=WELL,
                volumes=[
                    {"name": "n", "nfs": {"server": "s", "path": "/p"}},
                    {"name": "h", "hostPath": {"path": "/x"}},
                    {"name": "e", "emptyDir": {}},
                ],
            ),
            'restricted volume types (volumes "n", "h" use restricted volume types "hostPath", "nfs")',
        ),
        (
            "baseline",
            pod(context={"privileged": True}, hostNetwork=True, hostPID=True),
            "host namespaces (hostNetwork=true, hostPID=true), "
            'privileged (container "c" must not set securityContext.privileged=true)',
        ),
        (
            "baseline",
            pod(
                context={"capabilities": {"add": ["NET_ADMIN", "CHOWN"]}},
                volumes=[{"name": "h", "hostPath": {"path": "/"}}],
            ),
            'non-default capabilities (container "c" must not include "NET_ADMIN" in '
            "securityContext.capabilities.add), "
            'hostPath volumes (volume "h")',
        ),
        (
            "baseline",
            pod(
                context={
                    "seLinuxOptions": {"type": "foo_t", "user": "u"},
                    "seccompProfile": {"type": "Unconfined"},
                },
                securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]},
            ),
            'seLinuxOptions (container "c" set forbidden securityContext.seLinuxOptions: type "foo_t"; user may not be '
            'set), seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined"), '
            "forbidden sysctls (kernel.msgmax)",
        ),
    ],
)
def test_a_pod_beyond_the_level_is_refused_with_all_that_is_wrong(
    level: str, body: dict[str, Any], why: str
) -> None:
    async def act(caller: Caller) -> None:
        code, status = await caller.json("POST", PODS, body)
        assert (code, status["message"]) == (
            403,
            f'pods "p" is forbidden: violates PodSecurity "{level}:latest": {why}',
        )

    with_space({"enforce": level}, act)


@pytest.mark.parametrize(
    ("level", "body"),
    [
        ("restricted", pod(context=WELL)),
        ("restricted", pod(context={**WELL, "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}})),
        ("baseline", pod()),
        ("privileged", pod(context={"privileged": True}, hostNetwork=True)),
    ],
)
def test_a_pod_within_the_level_is_taken(level: str, body: dict[str, Any]) -> None:
    async def act(caller: Caller) -> None:
        assert (await caller.json("POST", PODS, body))[0] == 201

    with_space({"enforce": level}, act)


def test_without_labels_nothing_is_enforced_and_a_pod_that_runs_is_not_judged_again() -> None:
    async def act(caller: Caller) -> None:
        assert (await caller.json("POST", PODS, pod(context={"privileged": True})))[0] == 201
        label = {"metadata": {"labels": {f"{PREFIX}enforce": "restricted"}}}
        merge = "application/merge-patch+json"
        assert (await caller.send("PATCH", "/api/v1/namespaces/s", label, content_type=merge)).status == 200
        assert (await caller.json("POST", PODS, pod("q")))[0] == 403
        mark = {"metadata": {"labels": {"a": "b"}}}
        assert (await caller.send("PATCH", f"{PODS}/p", mark, content_type=merge)).status == 200

    with_space({}, act)


def test_whoever_creates_a_pod_or_a_workload_beyond_the_level_is_warned() -> None:
    async def act(caller: Caller) -> None:
        answer = await caller.send("POST", PODS, pod(context={"privileged": True}))
        assert answer.status == 201
        why = 'privileged (container \\"c\\" must not set securityContext.privileged=true)'
        assert f'would violate PodSecurity \\"baseline:v1.30\\": {why}' in answer.headers["warning"]
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod(hostNetwork=True)["spec"]}
        body = {
            "metadata": {"name": "d"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
        }
        answer = await caller.send("POST", "/apis/apps/v1/namespaces/s/deployments", body)
        assert answer.status == 201
        assert "host namespaces (hostNetwork=true)" in answer.headers["warning"]

    with_space({"warn": "baseline", "warn-version": "v1.30"}, act)


@pytest.mark.parametrize(
    ("key", "value", "detail"),
    [
        ("enforce", "strict", "must be one of privileged, baseline, restricted"),
        ("warn-version", "1.30", 'must be "latest" or "v1.x"'),
    ],
)
def test_a_label_that_makes_no_sense_is_refused(key: str, value: str, detail: str) -> None:
    async def act(caller: Caller) -> None:
        body = {"metadata": {"name": "t", "labels": {PREFIX + key: value}}}
        code, status = await caller.json("POST", "/api/v1/namespaces", body)
        assert code == 422
        assert status["message"].endswith(
            f'metadata.labels[{PREFIX}{key}]: Invalid value: "{value}": {detail}'
        )

    with_space({}, act)
