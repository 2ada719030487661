"""What a kubelet may list with a node's own rights: what it narrows its request to, and no more."""

from __future__ import annotations

import asyncio

import pytest

from nodeward.apiserver.auth.user import User
from tests.apiserver.running import Caller, running

KUBELET = User("system:node:n1", groups=("system:nodes", "system:authenticated"))


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", 200),
        ("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1,status.phase!%3DFailed", 200),
        ("/api/v1/pods?fieldSelector=spec.nodeName%3Dn2", 403),
        ("/api/v1/pods?fieldSelector=spec.nodeName!%3Dn1", 403),
        ("/api/v1/pods?fieldSelector=nonsense", 403),
        ("/api/v1/pods", 403),
        ("/api/v1/nodes?fieldSelector=metadata.name%3Dn1", 200),
        ("/api/v1/nodes?fieldSelector=metadata.name%3Dn2", 403),
        ("/api/v1/nodes", 403),
        ("/api/v1/services", 200),
    ],
)
def test_a_kubelet_lists_what_is_its_own(target: str, status: int) -> None:
    async def main() -> int:
        async with running() as server:
            answer, _ = await Caller.of(server, KUBELET).json("GET", target)
            return answer

    assert asyncio.run(main()) == status
