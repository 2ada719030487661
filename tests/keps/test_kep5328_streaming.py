"""KEP-5328, a component that reads the list: the API server streams to a kubelet in the way the kubelet declares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodeward.api.core_v1.node import Node
from tests.keps.ledger import statement
from tests.kubelet.server.serving import HERE, THEN, Serving, serving
from tests.kubelet.server.test_streams import connect, gathered

GATE = "ExtendWebSocketsToKubelet"
SUCCESS = {"metadata": {}, "status": "Success"}


@pytest.fixture(params=["", f"{GATE}=false"], ids=["as usual", "with the API server's gate off"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Serving]:
    with serving(tmp_path, request.param) as running:
        yield running


def spoken(served: Serving, pod: str) -> tuple[str, tuple[bytes, bytes, Any]]:
    """What the kubelet was asked to switch to, and what came of a command whose input the caller closes."""

    async def run() -> tuple[bytes, bytes, Any]:
        far = await connect(served, pod, ("cat",))
        try:
            await far.send(b"\0text")
            await far.send(b"\xff\0")
            return gathered(await far.rest())
        finally:
            far.wire.close()

    answer = served.do(run())
    path, switch = served.asked[-1]
    assert path == f"/exec/default/{pod}/c0"
    return switch, answer


@statement("5328-D61")
def test_websockets_reach_kubelets_that_declare_them_and_are_translated_for_others(
    served: Serving, request: pytest.FixtureRequest
) -> None:
    served.run_pod("new", "sleep", "1000", node=HERE)
    served.run_pod("old", node=THEN)
    declared = {
        name: served.do(served.client.get(Node, name)).status.declared_features for name in (HERE, THEN)
    }
    assert (GATE in declared[HERE], GATE in declared[THEN]) == (True, False)
    is_gate_on = "gate off" not in request.node.name
    assert spoken(served, "new") == (
        "websocket" if is_gate_on else "spdy/3.1",
        (b"text", b"", SUCCESS),
    )
    assert spoken(served, "old") == ("spdy/3.1", (b"text", b"", SUCCESS))
    page = served.api.metrics.text().decode()
    counted = 'apiserver_websocket_streaming_requests_total{proxy_type="%s",subresource="exec"} %s'
    assert counted % ("translated_at_apiserver", "1.0" if is_gate_on else "2.0") in page
    assert (counted % ("proxied_to_kubelet", "1.0") in page) is is_gate_on
