"""What a pod's sandbox is to be like: its names, network, DNS and group."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodeward.api import codec
from nodeward.api.core_v1.pod import Pod
from nodeward.kubelet.config.settings import KubeletSettings
from nodeward.kubelet.runtime.cri.cgroup_driver import driver_in
from nodeward.kubelet.runtime.cri.cgroups import CGROUPFS, SYSTEMD, pod_group, remove_group
from nodeward.kubelet.runtime.cri.dns import NodeDns, dns_config
from nodeward.kubelet.runtime.cri.messages import NODE
from nodeward.kubelet.runtime.cri.sandbox_config import NodeSettings, SandboxRefused, sandbox_config

NODE_DNS = NodeDns.read(
    "# the node\nnameserver 192.0.2.1\nsearch old.example\nsearch example.com corp # two\noptions timeout:1 ndots:2\n",
    ("10.96.0.10",),
    "cluster.local",
)


def pod(**spec: Any) -> Pod:
    tree = {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u-1", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "image"}], **spec},
    }
    return codec.from_tree(tree, Pod)


def config(of: Pod, is_on_host: bool = False) -> Any:
    settings = NodeSettings(dns=NODE_DNS)
    return sandbox_config(of, settings, attempt=3, log_directory="/logs", is_on_host_network=is_on_host)


def test_a_sandbox_is_marked_as_its_pod() -> None:
    made = config(pod())
    meta = made.metadata
    assert (meta.name, meta.namespace, meta.uid, meta.attempt) == ("p", "ns", "u-1", 3)
    assert made.labels["app"] == "web"
    assert made.labels["io.kubernetes.pod.uid"] == "u-1"
    assert made.log_directory == "/logs"


def test_names_end_at_63_characters_and_are_the_nodes_in_its_network() -> None:
    of = pod()
    of.metadata.name = "a" * 62 + "-b"
    assert config(of).hostname == "a" * 62
    assert config(pod(hostname="mine")).hostname == "mine"
    made = config(pod(hostname="mine"), is_on_host=True)
    assert made.hostname == ""
    assert made.linux.security_context.namespace_options.network == NODE


def test_ports_of_the_node_are_mapped_only_into_a_network_of_the_pods_own() -> None:
    ports = [
        {"containerPort": 80, "hostPort": 8080, "protocol": "UDP", "hostIP": "192.0.2.9"},
        {"containerPort": 81},
    ]
    of = pod(containers=[{"name": "c", "image": "image", "ports": ports}])
    mapped = [
        (each.protocol, each.container_port, each.host_port, each.host_ip)
        for each in config(of).port_mappings
    ]
    assert mapped == [(1, 80, 8080, "192.0.2.9")]
    assert not config(of, is_on_host=True).port_mappings


def test_one_privileged_container_makes_the_sandbox_privileged() -> None:
    privileged = {"name": "i", "image": "image", "securityContext": {"privileged": True}}
    assert config(pod(initContainers=[privileged])).linux.security_context.privileged
    assert not config(pod()).linux.security_context.privileged


def test_kernel_settings_are_passed_on() -> None:
    made = config(pod(securityContext={"sysctls": [{"name": "net.core.somaxconn", "value": "9"}]}))
    assert dict(made.linux.sysctls) == {"net.core.somaxconn": "9"}


@pytest.mark.parametrize(("field", "value"), [("hostUsers", False), ("runtimeClassName", "gvisor")])
def test_what_cannot_be_given_is_refused(field: str, value: Any) -> None:
    with pytest.raises(SandboxRefused):
        config(pod(**{field: value}))


# -- DNS


def asked(**spec: Any) -> tuple[list[str], list[str], list[str]] | None:
    made = dns_config(pod(**spec), NODE_DNS)
    return None if made is None else (list(made.servers), list(made.searches), list(made.options))


def test_the_clusters_dns_comes_first_and_the_node_helps_to_search() -> None:
    assert asked() == (
        ["10.96.0.10"],
        ["ns.svc.cluster.local", "svc.cluster.local", "cluster.local", "example.com", "corp"],
        ["ndots:5"],
    )


def test_a_pod_in_the_nodes_network_asks_as_the_node_unless_it_says_so() -> None:
    assert asked(hostNetwork=True) is None
    assert asked(hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet") == asked()
    assert asked(dnsPolicy="Default") is None


def test_a_pods_own_dns_is_added_or_stands_alone() -> None:
    own = {
        "nameservers": ["9.9.9.9"],
        "searches": ["mine"],
        "options": [{"name": "ndots", "value": "1"}, {"name": "rotate"}],
    }
    assert asked(dnsPolicy="None", dnsConfig=own) == (["9.9.9.9"], ["mine"], ["ndots:1", "rotate"])
    assert asked(dnsPolicy="Default", dnsConfig=own) == (
        ["192.0.2.1", "9.9.9.9"],
        ["example.com", "corp", "mine"],
        ["timeout:1", "ndots:1", "rotate"],
    )
    assert dns_config(pod(), NodeDns()) is None


# -- groups


def test_a_pods_group_is_named_after_its_class() -> None:
    same = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    guaranteed = pod(containers=[{"name": "c", "image": "image", "resources": same}])
    assert pod_group(pod(), "kubepods", CGROUPFS) == "/kubepods/besteffort/podu-1"
    assert pod_group(guaranteed, "kubepods", CGROUPFS) == "/kubepods/podu-1"
    assert pod_group(pod(), "kubepods", SYSTEMD) == "kubepods-besteffort-podu_1.slice"
    assert pod_group(pod(), "", CGROUPFS) == ""


def test_who_manages_groups_is_read_from_the_runtimes_configuration() -> None:
    def config(options: Any) -> str:
        runtimes = {"own": {"options": options}, "runc": {"options": {"SystemdCgroup": False}}}
        return json.dumps({"containerd": {"defaultRuntimeName": "own", "runtimes": runtimes}})

    assert driver_in(config({"SystemdCgroup": True})) == SYSTEMD
    for other in (
        config({"SystemdCgroup": False}),
        config(None),
        config({}),
        "",
        "[]",
        '{"containerd":1}',
        "no",
    ):
        assert driver_in(other) == CGROUPFS


def test_a_kubelets_configuration_says_whom_to_ask_for_addresses(tmp_path: Path) -> None:
    file = tmp_path / "resolv.conf"
    file.write_text("nameserver 192.0.2.7\n")
    asked_for = KubeletSettings(cluster_dns=("10.0.0.10",), cluster_domain="c", resolv_conf=str(file))
    made = NodeSettings.of(asked_for, 1 << 30)
    assert made.dns == NodeDns(("192.0.2.7",), cluster_servers=("10.0.0.10",), cluster_domain="c")
    assert made.memory_capacity == 1 << 30
    assert NodeSettings.of(KubeletSettings(resolv_conf=str(tmp_path / "none")), 0).dns == NodeDns()


def test_a_pods_group_goes_from_every_layout_and_nobody_elses(tmp_path: Path) -> None:
    gone = ("memory/kubepods/podu-1/c", "cpu/kubepods/burstable/podu-1", "kubepods/besteffort/podu-1")
    stays = ("memory/kubepods/podu-2", "memory/other/podu-1", "cpu/kubepods/burstable/podu-11")
    for each in (*gone, *stays):
        (tmp_path / each).mkdir(parents=True)
    remove_group("kubepods", "u-1", tmp_path)
    remove_group("", "u-2", tmp_path)
    assert not [each for each in gone if (tmp_path / each).exists()]
    assert all((tmp_path / each).exists() for each in stays)
