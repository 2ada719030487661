"""The CPUs of simulated nodes as a Fleet file describes them, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import ConfigError
from nodeward.cluster.description import Pool
from nodeward.cluster.fleet_file import load_fleet
from nodeward.cluster.pools import models
from nodeward.kubelet.cpu.topology import CPUInfo
from nodeward.kubelet.node.specification import NodeModel
from nodeward.kubelet.runtime.sim import SimRuntime
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.keps.clusters import world

STATIC = """
  featureGates: {CPUManagerPolicyAlphaOptions: true, InPlacePodVerticalScalingExclusiveCPUs: true}
  kubelet:
    cpuManagerPolicy: static
    cpuManagerPolicyOptions: {full-pcpus-only: "true", scale-delay-time: 5s}
    cpuManagerReconcilePeriod: 2s
    topologyManagerPolicy: single-numa-node
"""


def pool(text: str) -> Pool:
    """The pool of a file; `text` are its fields, indented by two."""
    file = f"apiVersion: nodeward.dev/v1alpha1\nkind: Fleet\npools:\n- name: blue\n{text.strip(chr(10))}\n"
    (found,) = load_fleet(file.encode(), "fleet.yaml", "1.37").pools
    return found


def model(text: str) -> NodeModel:
    (made,) = models(pool(text), SimRuntime(VirtualClock()))
    return made


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        pool(text)
    return str(caught.value)


def test_a_described_machine_gives_the_topology_and_the_capacity() -> None:
    described = "{sockets: 2, numaPerSocket: 4, coresPerNuma: 16, threads: 2, uncore: 8}"
    made = model(f"  capacity: {{memory: 1Ti}}\n  cpu: {described}")
    assert made.cpus is not None
    assert made.capacity["cpu"].value == made.cpus.cpu_count == 256
    assert made.capacity["memory"].value == 1 << 40
    # First one thread of every core, then the second threads.
    assert made.cpus.details[0] == made.cpus.details[128] == CPUInfo(0, 0, 0, 0)
    assert made.cpus.details[127] == CPUInfo(socket=1, numa_node=7, uncore_cache=15, core=127)


def test_a_machine_nobody_describes_is_single_cores_as_its_capacity_says() -> None:
    made = model("  capacity: {cpu: 3500m}")
    assert made.cpus is not None
    assert (made.cpus.cpu_count, made.cpus.core_count, made.cpus.socket_count) == (3, 3, 1)
    assert made.capacity["cpu"].milli_value == 3500


def test_reserved_cpus_are_the_kubelets_reserved_system_cpus() -> None:
    made = model('  cpu: {coresPerNuma: 8, reserved: "0-1,4"}')
    assert made.settings.given["reservedSystemCPUs"] == "0-1,4"


def test_the_kubelet_of_a_pool_has_the_static_policy_its_file_asks_for() -> None:
    settings = model(
        f'  cpu: {{coresPerNuma: 8, threads: 2, reserved: "0,8"}}\n{STATIC.strip(chr(10))}'
    ).settings
    assert (settings.cpu_policy, settings.topology_policy) == ("static", "single-numa-node")
    assert settings.cpu_options.full_pcpus_only
    assert settings.cpu_options.scale_delay_ns == 5 * SECOND_NS
    assert settings.cpu_reconcile_ns == 2 * SECOND_NS
    assert settings.gates.enabled("InPlacePodVerticalScalingExclusiveCPUs")


def test_another_machine_is_another_kind_of_node() -> None:
    small, large = pool("  cpu: {coresPerNuma: 8}"), pool("  cpu: {coresPerNuma: 16}")
    assert small.has_same_kubelets(pool("  cpu: {coresPerNuma: 8}"))
    assert not small.has_same_kubelets(large)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  cpu: {sockets: 0}", "pools[0].cpu.sockets: 0 is not a number of 1 or more"),
        ("  cpu: {socket: 2}", 'pools[0].cpu.socket: unknown field (did you mean "sockets"?)'),
        (
            "  cpu: {threads: two}",
            'pools[0].cpu.threads: Invalid value: "two": want a whole number of 32 bits',
        ),
        ("  cpu: 8", "pools[0].cpu: Invalid value: 8: want a map"),
        ("  cpu: {coresPerNuma: 1025}", "pools[0].cpu: 1025 CPUs are described; at most 1024 are possible"),
        ("  cpu: {sockets: 65}", "pools[0].cpu: 65 NUMA nodes are described; at most 64 are possible"),
        (
            "  cpu: {coresPerNuma: 6, uncore: 4}",
            "pools[0].cpu.uncore: 4 is not a number of cores that divides coresPerNuma (6) evenly",
        ),
        (
            '  cpu: {coresPerNuma: 4, reserved: "3-5"}',
            "pools[0].cpu.reserved: the machine has CPUs 0-3, not 4-5",
        ),
        ("  cpu: {reserved: 0}", "pools[0].cpu.reserved: Invalid value: 0: want a text"),
        (
            "  capacity: {cpu: 8}\n  cpu: {coresPerNuma: 4}",
            "pools[0].capacity.cpu: Invalid value: 8: pools[0].cpu describes 4; leave it out",
        ),
        (
            '  cpu: {coresPerNuma: 4, reserved: "0"}\n  kubelet: {reservedSystemCPUs: "1"}',
            'pools[0].kubelet.reservedSystemCPUs: Invalid value: "1": pools[0].cpu.reserved is 0; leave one',
        ),
        (
            "  runtime: process\n  cpu: {coresPerNuma: 4}",
            "pools[0].cpu: only simulated nodes are described; runtime process has the CPUs of its machine",
        ),
        (
            "  kubelet: {cpuManagerPolicy: static}",
            "pools[0].kubelet.cpuManagerPolicy: no kubelet could start: [cpumanager] unable to determine reserved CPU"
            " resources for static policy",
        ),
        (
            '  cpu: {coresPerNuma: 4}\n  kubelet: {cpuManagerPolicy: static, reservedSystemCPUs: "7"}',
            "pools[0].kubelet.cpuManagerPolicy: no kubelet could start: new static policy error:",
        ),
        ("  kubelet: {maxPod: 8}", 'maxPod: unknown field (did you mean "maxPods"?)'),
        (
            "  kubelet: {featureGates: {CPUManagerPolicyAlphaOptions: true}}",
            "pools[0].kubelet.featureGates: want pools[0].featureGates, which kubelets go by",
        ),
        (
            "  kubelet: {cpuManagerPolicy: static, cpuManagerPolicyOptions: {scale-delay-time: 5s}}",
            "fleet.yaml:5: pools[0].kubelet: fleet.yaml:5: cpuManagerPolicyOptions.scale-delay-time: CPU Manager Policy"
            ' Alpha-level Options not enabled, but option "scale-delay-time" provided',
        ),
    ],
)
def test_what_is_wrong_is_told_with_file_line_field_and_remedy(text: str, said: str) -> None:
    told = refusal(text)
    assert said in told
    assert told.startswith("fleet.yaml:")


def test_a_kubelet_that_does_not_start_is_told_and_leaves_the_other_nodes_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    static = pool(
        '  nodes: 2\n  cpu: {coresPerNuma: 4, reserved: "0"}\n  kubelet: {cpuManagerPolicy: static}'
    )
    other = replace(pool("  nodes: 1"), name="green")

    async def main(clock: VirtualClock) -> None:
        async with world(clock, static, other, has_scheduler=False, has_controllers=False) as each:
            assert each.fleet.host.agent("blue-1") is not None
            # As on a machine: the state file of the static policy must be deleted first.
            await each.cluster.change_pool(replace(static, kubelet={}))
            await each.pass_time(5)
            assert each.fleet.host.agent("blue-0") is None
            assert each.fleet.host.agent("green-0") is not None
            assert "node blue-1: its kubelet does not start: could not restore state" in caplog.text
            await each.cluster.change_pool(static)
            await each.pass_time(5)
            assert each.fleet.host.agent("blue-1") is not None

    run_virtual(main)
