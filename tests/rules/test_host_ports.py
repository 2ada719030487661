"""Host ports are counted once for scheduler and kubelet."""

from __future__ import annotations

from nodeward.api.core_v1.container import Container, ContainerPort
from nodeward.api.core_v1.pod import PodSpec
from nodeward.rules.host_ports import Ports, add_ports, has_conflict, host_ports, remove_ports


def wants(port: int, address: str = "", protocol: str = "") -> PodSpec:
    wanted = ContainerPort(container_port=80, host_port=port, host_ip=address, protocol=protocol)
    return PodSpec(containers=[Container(name="c", image="i", ports=[wanted])])


def test_a_port_on_any_address_takes_it_on_all() -> None:
    ports: Ports = {}
    add_ports(ports, host_ports(wants(80)))
    assert has_conflict(ports, host_ports(wants(80, "10.0.0.1")))
    assert not has_conflict(ports, host_ports(wants(80, protocol="UDP")))
    assert not has_conflict(ports, host_ports(wants(81)))


def test_ports_of_a_pod_that_goes_are_free() -> None:
    ports: Ports = {}
    for spec in (wants(80, "10.0.0.1"), wants(80, "10.0.0.2")):
        add_ports(ports, host_ports(spec))
    remove_ports(ports, host_ports(wants(80, "10.0.0.1")))
    assert not has_conflict(ports, host_ports(wants(80, "10.0.0.1")))
    assert has_conflict(ports, host_ports(wants(80)))
    remove_ports(ports, host_ports(wants(80, "10.0.0.2")))
    assert not ports


def test_ports_of_init_containers_that_end_do_not_count() -> None:
    spec = wants(80)
    init = Container(name="i", image="i", ports=[ContainerPort(container_port=1, host_port=81)])
    sidecar = Container(
        name="s", image="i", restart_policy="Always", ports=[ContainerPort(container_port=1, host_port=82)]
    )
    spec.init_containers = [init, sidecar]
    assert [port for _, _, port in host_ports(spec)] == [80, 82]
