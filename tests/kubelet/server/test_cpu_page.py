"""/debug/cpus of a kubelet, asked straight and through the API server's nodes/proxy; and what that passes on."""

from __future__ import annotations

import json

import pytest

from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.errors import ApiError
from nodeward.api.meta import ObjectMeta
from nodeward.apiserver.auth.user import User
from nodeward.base.errors import ConfigError
from nodeward.base.quantity import Quantity
from nodeward.cli.cpus import shown
from nodeward.kubelet.config.loading import load_tree
from nodeward.kubelet.cpu.topology import CPUDescription
from nodeward.kubelet.node.specification import NodeModel
from nodeward.kubelet.server.cpu_page import cpu_page
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.transport import Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.kubelet.hosting import hosted, specification
from tests.kubelet.server.serving import HERE, THEN, Serving
from tests.kubelet.server.test_pages import ask


def proxied(served: Serving, node: str, path: str, query: str = "") -> Response:
    return served.do(served.client.raw("GET", f"/api/v1/nodes/{node}/proxy/{path}", query))


@pytest.mark.parametrize("node", [HERE, THEN])
def test_policy_none_is_told_of_real_and_simulated_nodes(served: Serving, node: str) -> None:
    wanted = {"node": node, "policy": "none"}
    assert json.loads(ask(served, f"/debug/cpus?node={node}").body or b"") == wanted
    assert json.loads(proxied(served, node, "debug/cpus", f"node={node}").body or b"") == wanted


def test_a_server_of_several_nodes_wants_to_know_which_is_meant(served: Serving) -> None:
    answer = ask(served, "/debug/cpus")
    assert (answer.status, answer.body) == (
        400,
        b"this server stands for 2 nodes: say ?node=NAME; there are here, then",
    )
    answer = ask(served, "/debug/cpus?node=nowhere")
    assert (answer.status, answer.body) == (404, b"no kubelet of node 'nowhere' runs here")


def test_the_page_cannot_be_written(served: Serving) -> None:
    assert ask(served, f"/debug/cpus?node={HERE}", method="POST").status == 404


def test_only_who_may_read_nodes_proxy_gets_through(served: Serving) -> None:
    someone = served.api.client("test", User("someone", groups=("system:authenticated",)))
    with pytest.raises(ApiError) as caught:
        served.do(someone.raw("GET", f"/api/v1/nodes/{HERE}/proxy/debug/cpus"))
    assert caught.value.code == 403
    assert "nodes/proxy" in str(caught.value)


def test_the_proxy_shows_other_pages_and_passes_refusals_on(served: Serving) -> None:
    assert proxied(served, HERE, "healthz").body == b"ok"
    assert json.loads(proxied(served, HERE, "pods").body or b"")["kind"] == "PodList"
    with pytest.raises(ApiError) as caught:
        proxied(served, HERE, "no/such/page")
    assert caught.value.code == 404
    with pytest.raises(ApiError) as caught:
        proxied(served, "nowhere", "healthz")
    assert str(caught.value) == 'nodes "nowhere" not found'


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_the_proxy_only_reads(served: Serving, method: str) -> None:
    with pytest.raises(ApiError) as caught:
        served.do(served.client.raw(method, f"/api/v1/nodes/{HERE}/proxy/exec/default/p/c0"))
    assert caught.value.code == 405


def test_no_command_can_be_run_through_the_proxy(served: Serving) -> None:
    served.run_pod("safe", "sleep", "1000")
    headers = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    headers["sec-websocket-key"] = "dGhlIHNhbXBsZSBub25jZQ=="
    path = f"/api/v1/nodes/{HERE}/proxy/exec/default/safe/c0"
    with pytest.raises(ApiError) as caught:
        served.do(served.client.raw("GET", path, "command=true&output=1", headers=headers))
    assert caught.value.code == 400


def test_the_command_prints_maps_lists_and_what_went_wrong(served: Serving) -> None:
    text = served.do(shown(served.client, THEN, "text"))
    assert text.startswith("node then: CPU manager policy none")
    assert json.loads(served.do(shown(served.client, THEN, "json")))["policy"] == "none"
    assert served.do(shown(served.client, "", "text")).splitlines()[:3] == [
        "NODE   POLICY   CPUS   RESERVED   SHARED   EXCLUSIVE   HELD",
        "here   none     -      -          -        -           -",
        "then   none     -      -          -        -           -",
    ]
    with pytest.raises(ConfigError, match=r"^there is no node 'nowhere'$"):
        served.do(shown(served.client, "nowhere", "text"))


def test_the_map_of_a_static_policy_names_owners_and_their_cpus() -> None:
    async def main(clock: VirtualClock) -> None:
        config = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}
        settings = load_tree(config, "test", "1.37")
        topology = CPUDescription(sockets=2, cores_per_numa=2).topology()
        node = specification("n1", NodeModel(settings=settings, cpus=topology))
        async with hosted(clock, node) as each:
            limits = {"cpu": Quantity.parse("2"), "memory": Quantity.parse("64Mi")}
            container = Container(name="c", image="image", resources=ResourceRequirements(limits=limits))
            metadata = ObjectMeta(name="p", namespace="default")
            await each.client.create(
                Pod(metadata=metadata, spec=PodSpec(node_name="n1", containers=[container]))
            )
            await clock.sleep(2)
            body = cpu_page(lambda: [each.host], clock, "").body
            assert isinstance(body, bytes)
            page = json.loads(body)
            uid = (await each.pod("p")).metadata.uid
            owner = {"namespace": "default", "pod": "p", "uid": uid, "container": "c"}
            assert page.pop("cpus")[3] == {"cpu": 3, "socket": 1, "numaNode": 1, "uncoreCache": 1, "core": 3}
            assert page == {
                "node": "n1",
                "policy": "static",
                "options": {},
                "scaleDelay": "0s",
                "reserved": "0",
                "shared": "0-1",
                "containers": [{**owner, "assigned": "2-3", "applied": "2-3"}],
            }

    run_virtual(main)
