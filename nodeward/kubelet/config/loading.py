"""A configuration file, and the gates given on the command line, become the settings of a kubelet.

Whatever is wrong is told at once, each with file, line, field, the value and what would be right; nothing is half
taken. Gates of the command line go before those of the file, as upstream. With the gates themselves wrong, nothing
that needs one is judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec

from nodeward.api.core_v1.references import Taint
from nodeward.base.errors import ConfigError
from nodeward.base.fieldpath import FieldPath
from nodeward.base.problems import Problems
from nodeward.base.yaml_text import YamlDocument, documents
from nodeward.features.gates import Gates
from nodeward.kubelet.config import settings
from nodeward.kubelet.config.cpu_options import check_topology_options, read_cpu_options
from nodeward.kubelet.config.readiness_gates import read_readiness_gates
from nodeward.kubelet.config.reading import cleaned
from nodeward.kubelet.config.reserved import read_reservation
from nodeward.kubelet.config.rules import check
from nodeward.kubelet.config.settings import KubeletSettings
from nodeward.kubelet.config.shape import API_VERSION, CONFIGURATION, KIND
from nodeward.validation.pod.tolerations import validate_taints

_NO_GATES: Final[Mapping[str, bool]] = MappingProxyType({})
_DEFAULTS: Final = KubeletSettings()


def load_file(path: str, version: str, gates: Mapping[str, bool] = _NO_GATES) -> KubeletSettings:
    """The settings in a file, for a kubelet of a version ("1.37"); `gates` is what the command line says."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    return load_text(text, path, version, gates)


def load_text(
    text: bytes, shown: str, version: str, gates: Mapping[str, bool] = _NO_GATES
) -> KubeletSettings:
    """The same from bytes; an empty text means the defaults."""
    found = list(documents(text, shown))
    if len(found) > 1:
        line = found[1].line("")
        raise ConfigError(f"{shown}:{line}: a second document; a kubelet takes one {KIND}")
    if not found:
        return load_tree({}, shown, version, gates)
    document = found[0]
    if not isinstance(document.tree, dict):
        raise document.fault("", f"want a {KIND}, a map with apiVersion: {API_VERSION}")
    for name, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        given = document.tree.get(name)
        if given != wanted:
            what = "is missing" if given is None else f"is {given!r}"
            raise document.fault(name if given is not None else "", f"{name} {what}, want {wanted}")
    return load_tree(document.tree, document, version, gates)


def load_tree(
    tree: Mapping[str, Any], source: YamlDocument | str, version: str, gates: Mapping[str, bool] = _NO_GATES
) -> KubeletSettings:
    """The same from plain values, such as the part of a fleet's description."""
    problems = Problems(source)
    fine = cleaned(dict(tree), CONFIGURATION, problems)
    known = _gates(version, {**fine.get("featureGates", {}), **gates}, problems)
    check(fine, known, problems)
    made = _settings(fine, known, version, problems)
    problems.settle()
    return made


def _gates(version: str, values: Mapping[str, bool], problems: Problems) -> Gates | None:
    try:
        return Gates.of_mapping(version, values)
    except ConfigError as error:
        problems.say("featureGates", str(error))
        return None


def _settings(
    tree: Mapping[str, Any], gates: Gates | None, version: str, problems: Problems
) -> KubeletSettings:
    get = tree.get
    authentication = get("authentication", {})
    pulls = get("maxParallelImagePulls")
    update, report = get("nodeStatusUpdateFrequency", 0), get("nodeStatusReportFrequency", 0)
    policy = get("cpuManagerPolicy") or "none"
    topology_options = get("topologyManagerPolicyOptions", {})
    check_topology_options(topology_options, problems)
    pids = get("podPidsLimit", -1)
    return KubeletSettings(
        gates=gates or Gates.of(version),
        enable_server=get("enableServer", True),
        address=get("address") or "0.0.0.0",
        port=get("port") or settings.DEFAULT_PORT,
        healthz_address=get("healthzBindAddress") or "127.0.0.1",
        healthz_port=get("healthzPort", settings.DEFAULT_HEALTHZ_PORT),
        enable_debugging_handlers=get("enableDebuggingHandlers", True),
        anonymous_auth=authentication.get("anonymous", {}).get("enabled", False),
        client_ca_file=authentication.get("x509", {}).get("clientCAFile", ""),
        tls_cert_file=get("tlsCertFile", ""),
        tls_private_key_file=get("tlsPrivateKeyFile", ""),
        streaming_idle_ns=get("streamingConnectionIdleTimeout") or _DEFAULTS.streaming_idle_ns,
        register_node=get("registerNode", True),
        taints=_taints(get("registerWithTaints", []), problems),
        readiness_gates=read_readiness_gates(get("nodeReadinessGates", []), gates, problems),
        provider_id=get("providerID", ""),
        attach_detach_by_controller=get("enableControllerAttachDetach", True),
        status_update_ns=update or settings.DEFAULT_UPDATE_NS,
        # As upstream: who reports more often than usual does so at every check, unless told otherwise.
        status_report_ns=report or update or settings.DEFAULT_REPORT_NS,
        lease_seconds=get("nodeLeaseDurationSeconds") or settings.DEFAULT_LEASE_SECONDS,
        max_images=get("nodeStatusMaxImages", settings.DEFAULT_MAX_IMAGES),
        max_pods=get("maxPods") or settings.DEFAULT_MAX_PODS,
        pods_per_core=get("podsPerCore", 0),
        pod_pids_limit=pids if pids >= 0 else -1,
        reservation=read_reservation(tree, problems),
        cpu_policy=policy,
        cpu_options=read_cpu_options(policy, get("cpuManagerPolicyOptions", {}), gates, problems),
        cpu_reconcile_ns=get("cpuManagerReconcilePeriod") or _DEFAULTS.cpu_reconcile_ns,
        memory_policy=get("memoryManagerPolicy") or "None",
        topology_policy=get("topologyManagerPolicy") or "none",
        topology_scope=get("topologyManagerScope") or "container",
        topology_options=MappingProxyType(topology_options),
        static_pod_path=get("staticPodPath", ""),
        sync_ns=get("syncFrequency") or _DEFAULTS.sync_ns,
        file_check_ns=get("fileCheckFrequency") or _DEFAULTS.file_check_ns,
        serialize_image_pulls=get("serializeImagePulls", pulls is None or pulls < 2),
        max_parallel_image_pulls=pulls,
        max_restart_ns=get("crashLoopBackOff", {}).get(
            "maxContainerRestartPeriod", settings.DEFAULT_MAX_RESTART_NS
        ),
        shutdown_grace_ns=get("shutdownGracePeriod", 0),
        shutdown_grace_critical_ns=get("shutdownGracePeriodCriticalPods", 0),
        cluster_dns=tuple(get("clusterDNS", ())),
        cluster_domain=get("clusterDomain", ""),
        resolv_conf=get("resolvConf", "/etc/resolv.conf"),
        allowed_unsafe_sysctls=tuple(get("allowedUnsafeSysctls", ())),
        runtime_endpoint=get("containerRuntimeEndpoint") or _DEFAULTS.runtime_endpoint,
        image_endpoint=get("imageServiceEndpoint", ""),
        runtime_timeout_ns=get("runtimeRequestTimeout") or _DEFAULTS.runtime_timeout_ns,
        pod_logs_dir=get("podLogsDir") or "/var/log/pods",
        container_log_max_size=get("containerLogMaxSize") or "10Mi",
        container_log_max_files=get("containerLogMaxFiles", 5),
        given=MappingProxyType(dict(tree)),
    )


def _taints(items: list[Any], problems: Problems) -> tuple[Taint, ...]:
    taints = [msgspec.convert(item, Taint) for item in items]
    for error in validate_taints(taints, FieldPath("registerWithTaints")):
        problems.add(error)
    for number, taint in enumerate(taints):
        if taint.time_added is not None:
            problems.say(
                f"registerWithTaints[{number}].timeAdded", "taint.TimeAdded is not nil; leave it out"
            )
    return tuple(taints)
