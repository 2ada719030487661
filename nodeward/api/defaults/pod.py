"""Defaults of pods and pod templates.

`default_pod_spec` and `default_pod_template` serve everything that carries a pod template; `default_pod` adds what only
pods get: requests from limits, host ports, service links. All change the struct in place and twice is the same as once.
"""

from __future__ import annotations

from nodeward.api.core_v1.container import (
    Container,
    EphemeralContainer,
    HTTPGetAction,
    LifecycleHandler,
    Probe,
    ResourceRequirements,
)
from nodeward.api.core_v1.pod import Pod, PodSecurityContext, PodSpec, PodTemplateSpec
from nodeward.api.core_v1.pod_status import PodIP, PodStatus
from nodeward.api.defaults.image import pull_policy_for
from nodeward.api.defaults.rounding import round_up
from nodeward.api.defaults.volume import default_volumes


def default_pod(pod: Pod) -> None:
    """Set all defaults of a pod."""
    spec = pod.spec
    default_pod_spec(spec)
    grace = spec.termination_grace_period_seconds
    if grace is not None and grace < 0:
        spec.termination_grace_period_seconds = 1
    for container in spec.containers:
        _requests_from_limits(container.resources)
    for container in spec.init_containers:
        _requests_from_limits(container.resources)
    if spec.enable_service_links is None:
        spec.enable_service_links = True
    if spec.host_network:
        _host_ports(spec.containers)
        _host_ports(spec.init_containers)
    _status(pod.status)


def default_pod_template(template: PodTemplateSpec) -> None:
    """Set the defaults of a template: everything that does not depend on there being a pod."""
    default_pod_spec(template.spec)


def default_pod_spec(spec: PodSpec) -> None:
    if spec.service_account_name != spec.service_account:
        if not spec.service_account_name:
            spec.service_account_name = spec.service_account
        spec.service_account = spec.service_account_name
    if not spec.dns_policy:
        spec.dns_policy = "ClusterFirst"
    if not spec.restart_policy:
        spec.restart_policy = "Always"
    if spec.security_context is None:
        spec.security_context = PodSecurityContext()
    if spec.termination_grace_period_seconds is None:
        spec.termination_grace_period_seconds = 30
    if not spec.scheduler_name:
        spec.scheduler_name = "default-scheduler"
    if spec.volumes:
        default_volumes(spec.volumes)
    for container in spec.containers:
        _container(container)
    for container in spec.init_containers:
        _container(container)
    for ephemeral in spec.ephemeral_containers:
        _container(ephemeral)
    if spec.overhead:
        round_up(spec.overhead)
    if spec.resources is not None:
        _round_requirements(spec.resources)


def _container(container: Container | EphemeralContainer) -> None:
    if not container.image_pull_policy:
        container.image_pull_policy = pull_policy_for(container.image)
    if not container.termination_message_path:
        container.termination_message_path = "/dev/termination-log"
    if not container.termination_message_policy:
        container.termination_message_policy = "File"
    for port in container.ports:
        if not port.protocol:
            port.protocol = "TCP"
    for variable in container.env:
        source = variable.value_from
        if source is None:
            continue
        if source.field_ref is not None and not source.field_ref.api_version:
            source.field_ref.api_version = "v1"
        if source.file_key_ref is not None and source.file_key_ref.optional is None:
            source.file_key_ref.optional = False
    _round_requirements(container.resources)
    if container.liveness_probe is not None:
        _probe(container.liveness_probe)
    if container.readiness_probe is not None:
        _probe(container.readiness_probe)
    if container.startup_probe is not None:
        _probe(container.startup_probe)
    if container.lifecycle is not None:
        _handler(container.lifecycle.post_start)
        _handler(container.lifecycle.pre_stop)


def _round_requirements(resources: ResourceRequirements) -> None:
    if resources.limits:
        round_up(resources.limits)
    if resources.requests:
        round_up(resources.requests)


def _requests_from_limits(resources: ResourceRequirements) -> None:
    if resources.limits:
        for name, quantity in resources.limits.items():
            resources.requests.setdefault(name, quantity)


def _probe(probe: Probe) -> None:
    if not probe.timeout_seconds:
        probe.timeout_seconds = 1
    if not probe.period_seconds:
        probe.period_seconds = 10
    if not probe.success_threshold:
        probe.success_threshold = 1
    if not probe.failure_threshold:
        probe.failure_threshold = 3
    if probe.http_get is not None:
        _http_get(probe.http_get)
    if probe.grpc is not None and probe.grpc.service is None:
        probe.grpc.service = ""


def _handler(handler: LifecycleHandler | None) -> None:
    if handler is not None and handler.http_get is not None:
        _http_get(handler.http_get)


def _http_get(action: HTTPGetAction) -> None:
    if not action.path:
        action.path = "/"
    if not action.scheme:
        action.scheme = "HTTP"


def _host_ports(containers: list[Container]) -> None:
    for container in containers:
        for port in container.ports:
            if not port.host_port:
                port.host_port = port.container_port


def _status(status: PodStatus) -> None:
    if status.pod_ip:
        if not status.pod_ips or status.pod_ips[0].ip != status.pod_ip:
            status.pod_ips = [PodIP(ip=status.pod_ip)]
    elif status.pod_ips:
        status.pod_ip = status.pod_ips[0].ip
