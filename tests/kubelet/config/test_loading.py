"""The kubelet's configuration file: what it means, and what is told when it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeward.api.core_v1.references import Taint
from nodeward.base.duration import MINUTE_NS, SECOND_NS
from nodeward.base.errors import ConfigError
from nodeward.kubelet.config import KubeletSettings, load_file, load_text

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def load(text: str, version: str = "1.37", **gates: bool) -> KubeletSettings:
    return load_text((HEAD + text).encode(), "kubelet.yaml", version, gates)


def faults(text: str, version: str = "1.37", **gates: bool) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(text, version, **gates)
    told = str(caught.value).splitlines()
    return told if len(told) == 1 else [each.strip() for each in told[1:]]


def test_an_empty_file_gives_the_defaults_of_kubernetes() -> None:
    assert load_text(b"", "kubelet.yaml", "1.37") == KubeletSettings()
    made = load("")
    assert (made.port, made.max_pods, made.lease_seconds, made.max_images) == (10250, 110, 40, 50)
    assert (made.status_update_ns, made.status_report_ns) == (10 * SECOND_NS, 5 * MINUTE_NS)
    assert made.lease_renew_ns == 10 * SECOND_NS
    assert (made.sync_ns, made.file_check_ns) == (MINUTE_NS, 20 * SECOND_NS)
    assert made.serialize_image_pulls
    assert made.register_node
    assert made.cpu_policy == "none"
    assert made.max_restart_ns == 300 * SECOND_NS


def test_what_the_file_says_is_taken() -> None:
    made = load(
        "port: 10350\nmaxPods: 250\nregisterNode: false\nnodeLeaseDurationSeconds: 20\n"
        "staticPodPath: /etc/kubernetes/manifests\nsyncFrequency: 90s\nmaxParallelImagePulls: 4\n"
        "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n"
        "crashLoopBackOff: {maxContainerRestartPeriod: 20s}\n"
        "containerRuntimeEndpoint: unix:///run/other.sock\ncpuManagerPolicy: static\n"
        "registerWithTaints: [{key: a, value: b, effect: NoSchedule}]\n"
    )
    assert (made.port, made.max_pods, made.register_node, made.lease_seconds) == (10350, 250, False, 20)
    assert made.lease_renew_ns == 5 * SECOND_NS
    assert made.static_pod_path == "/etc/kubernetes/manifests"
    assert made.sync_ns == 90 * SECOND_NS
    assert (made.serialize_image_pulls, made.max_parallel_image_pulls) == (False, 4)
    assert (made.shutdown_grace_ns, made.shutdown_grace_critical_ns) == (30 * SECOND_NS, 10 * SECOND_NS)
    assert made.max_restart_ns == 20 * SECOND_NS
    assert made.runtime_endpoint == "unix:///run/other.sock"
    assert made.cpu_policy == "static"
    assert made.taints == (Taint(key="a", value="b", effect="NoSchedule"),)


def test_who_checks_at_other_times_reports_at_those_unless_told_otherwise() -> None:
    assert load("nodeStatusUpdateFrequency: 20s").status_report_ns == 20 * SECOND_NS
    both = load("nodeStatusUpdateFrequency: 20s\nnodeStatusReportFrequency: 1m")
    assert (both.status_update_ns, both.status_report_ns) == (20 * SECOND_NS, MINUTE_NS)


def test_fields_that_change_nothing_here_are_accepted_and_kept() -> None:
    made = load(
        "hairpinMode: hairpin-veth\nimageMaximumGCAge: 1h\npodPidsLimit: 100\nclusterDNS: [10.0.0.10]\n"
        "authentication: {webhook: {enabled: true, cacheTTL: 2m0s}}\nlogging: {verbosity: 3, flushFrequency: 5s}\n"
        "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\nmemorySwap: {swapBehavior: NoSwap}\n"
    )
    assert made.given["hairpinMode"] == "hairpin-veth"
    assert made.pod_pids_limit == 100


def test_gates_of_the_command_line_go_before_those_of_the_file() -> None:
    text = "featureGates: {NodeReadinessGates: true}"
    assert load(text).gates.enabled("NodeReadinessGates")
    assert not load(text, NodeReadinessGates=False).gates.enabled("NodeReadinessGates")


def test_every_mistake_is_told_at_once_with_line_field_value_and_remedy() -> None:
    told = faults(
        'maxPod: 10\nmaxPods: "12"\nsyncFrequency: "10"\nfileCheckFrequency: 10\nport: 70000\n'
        "cpuManagerPolicy: statik\nimageGCLowThresholdPercent: 90\nevictionHard: {memory.available: lots}\n"
    )
    assert told == [
        'kubelet.yaml:3: maxPod: unknown field (did you mean "maxPods"?)',
        'kubelet.yaml:4: maxPods: Invalid value: "12": want a whole number of 32 bits, got a text',
        'kubelet.yaml:5: syncFrequency: Invalid value: "10": time: missing unit in duration "10"; '
        "want a span of time with its unit, such as 10s or 1m30s",
        "kubelet.yaml:6: fileCheckFrequency: Invalid value: 10: a number has no unit; "
        'want a span of time with its unit, such as 10s or 1m30s ("10s" for seconds)',
        "kubelet.yaml:7: port: Invalid value: 70000: must be between 1 and 65535, inclusive",
        'kubelet.yaml:8: cpuManagerPolicy: Invalid value: "statik": must be one of: "none", "static" '
        '(did you mean "static"?)',
        "kubelet.yaml:9: imageGCLowThresholdPercent: Invalid value: 90: "
        "must be less than imageGCHighThresholdPercent 85",
        'kubelet.yaml:10: evictionHard.memory.available: Invalid value: "lots": '
        "want a quantity or a percentage, such as 100Mi or 10%",
    ]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("maxPods: -1", "maxPods: Invalid value: -1: must not be a negative number"),
        (
            "nodeLeaseDurationSeconds: -5",
            "nodeLeaseDurationSeconds: Invalid value: -5: must be greater than 0",
        ),
        ("shutdownGracePeriod: 500ms", 'Invalid value: "500ms": must be either zero or otherwise >= 1 sec'),
        (
            "shutdownGracePeriodCriticalPods: 10s",
            'Invalid value: "10s": must be <= shutdownGracePeriod 0s',
        ),
        ("serializeImagePulls: true\nmaxParallelImagePulls: 2", "cannot be larger than 1 unless"),
        ("crashLoopBackOff: {maxContainerRestartPeriod: 10m}", "must be set between 1s and 300s"),
        ("systemReserved: {gpu: '1'}", 'systemReserved.gpu: cannot reserve "gpu" resource'),
        ("kubeReserved: {cpu: '-1'}", 'resource quantity for "cpu" cannot be negative: -1'),
        ("evictionHard: {memory.free: 1Gi}", "unsupported eviction signal memory.free"),
        ("evictionHard: {nodefs.available: 120%}", "must be <= 100%: 120%"),
        ("reservedSystemCPUs: x-y", "want a list such as 0-1,8"),
        ("registerWithTaints: [{key: a}]", "registerWithTaints[0].effect: Required value"),
        ("featureGates: {NodeReadinesGates: true}", 'did you mean "NodeReadinessGates"?'),
        ("featureGates: {NodeReadinessGates: yes please}", "want true or false, got a text"),
        ("runOnce: true", "Runonce mode has been deprecated"),
        ("authentication: {webhok: {}}", 'authentication.webhok: unknown field (did you mean "webhook"?)'),
        ("maxPods: 5\nmaxPods: 6", "kubelet.yaml:4: maxPods: already on line 3"),
        ("clusterDNS: 10.0.0.10", "want a list, got a text"),
        ("topologyManagerPolicyOptions: {max-allowable-numa-nodes: '4'}", "should not be less than 8"),
    ],
)
def test_one_mistake_is_told_in_one_line(text: str, what: str) -> None:
    (told,) = faults(text)
    assert told.startswith("kubelet.yaml:")
    assert what in told


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "k.yaml"
    path.write_text("apiVersion: v1\nkind: Pod\n")
    with pytest.raises(ConfigError, match=r"k.yaml:1: apiVersion: apiVersion is 'v1', want kubelet.config"):
        load_file(str(path), "1.37")
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_file(str(tmp_path / "other"), "1.37")


def test_an_option_of_a_gate_that_is_off_is_told_with_the_gate() -> None:
    gate = (
        "nodeReadinessGates: [{conditionType: a.io/B, timeoutSeconds: 5, failureAction: BypassWithWarning}]"
    )
    (told,) = faults(gate)
    assert told == (
        "kubelet.yaml:3: nodeReadinessGates: NodeReadinessGates feature gate is required for Kubelet configuration "
        "option nodeReadinessGates; set featureGates: {NodeReadinessGates: true} or leave the field out"
    )
    (told,) = faults(gate, "1.36")
    assert told.endswith("a kubelet of version 1.36 does not have it")
    (told,) = faults("crashLoopBackOff: {maxContainerRestartPeriod: 10s}", KubeletCrashLoopBackOffMax=False)
    assert "FeatureGate KubeletCrashLoopBackOffMax not enabled" in told


def test_readiness_gates_with_and_without_probes() -> None:
    made = load(
        "featureGates: {NodeReadinessGates: true}\n"
        "nodeReadinessGates:\n"
        "- conditionType: example.com/Storage\n"
        "  timeoutSeconds: 300\n"
        "  readinessTaint: {key: example.com/no-storage, effect: NoSchedule}\n"
        "- conditionType: example.com/Agent\n"
        "  timeoutSeconds: 60\n"
        "  failureAction: BypassWithWarning\n"
        "  probe: {httpGet: {port: 8080}, periodSeconds: 5, failureThreshold: 2, initialDelaySeconds: 3}\n"
    )
    storage, agent = made.readiness_gates
    assert (storage.gate.condition_type, storage.gate.timeout_seconds) == ("example.com/Storage", 300)
    assert storage.gate.readiness_taint == Taint(key="example.com/no-storage", effect="NoSchedule")
    assert storage.probe is None
    probe = agent.probe
    assert probe is not None
    assert (probe.period_ns, probe.timeout_ns, probe.initial_delay_ns) == (
        5 * SECOND_NS,
        SECOND_NS,
        3 * SECOND_NS,
    )
    assert (probe.success_threshold, probe.failure_threshold) == (1, 2)
    assert probe.action.http_get is not None
    assert (probe.action.http_get.path, probe.action.http_get.scheme) == ("/", "HTTP")


def test_bad_readiness_gates_are_told_as_the_api_server_would() -> None:
    told = faults(
        "featureGates: {NodeReadinessGates: true}\n"
        "nodeReadinessGates:\n"
        "- {conditionType: example.com/A, timeoutSeconds: 10}\n"
        "- {conditionType: example.com/A, timeoutSeconds: 10, failureAction: BypassWithWarning}\n"
        "- {conditionType: Ready, timeoutSeconds: -1, failureAction: Explode, probe: {tcpSocket: {port: web}}}\n"
        "- {conditionType: example.com/B, failureAction: BypassWithWarning, probe: {}}\n"
    )
    assert [each.partition(": ")[2].partition(": ")[0] for each in told] == [
        "nodeReadinessGates[0].readinessTaint",
        "nodeReadinessGates[1].conditionType",
        "nodeReadinessGates[2].conditionType",
        "nodeReadinessGates[2].timeoutSeconds",
        "nodeReadinessGates[2].failureAction",
        "nodeReadinessGates[3].timeoutSeconds",
        "nodeReadinessGates[2].probe.tcpSocket.port",
        "nodeReadinessGates[3].probe",
    ]
    assert told[1].startswith("kubelet.yaml:6: ")
