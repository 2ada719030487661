"""Containers: what runs, with which environment, resources, probes and rights."""

from __future__ import annotations

from typing import Annotated

from nodeward.api.core_v1.references import (
    ConfigMapKeySelector,
    FileKeySelector,
    ObjectFieldSelector,
    ResourceFieldSelector,
    SecretKeySelector,
)
from nodeward.api.fields import (
    REQUIRED,
    SET,
    Int32,
    Int64,
    IntOrString,
    Keyed,
    KubeStruct,
    ListMap,
    Merge,
    OneOf,
    always,
    field,
    nested,
)
from nodeward.base.quantity import Quantity


class AppArmorProfile(KubeStruct):
    type: Annotated[str, OneOf("Localhost", "RuntimeDefault", "Unconfined"), REQUIRED] = always("")
    localhost_profile: str | None = None


class Capabilities(KubeStruct):
    add: list[str] = []
    drop: list[str] = []


class ConfigMapEnvSource(KubeStruct):
    name: str = ""
    optional: bool | None = None


class ContainerPort(KubeStruct):
    name: str = ""
    host_port: Int32 = 0
    container_port: Annotated[Int32, REQUIRED] = always(0)
    protocol: Annotated[str, OneOf("SCTP", "TCP", "UDP")] = ""
    host_ip: str = field(default="", name="hostIP")


class ContainerResizePolicy(KubeStruct):
    resource_name: Annotated[str, REQUIRED] = always("")
    restart_policy: Annotated[str, REQUIRED] = always("")


class ContainerRestartRuleOnExitCodes(KubeStruct):
    operator: Annotated[str, REQUIRED] = ""
    values: Annotated[list[Int32], SET] = []


class ContainerRestartRule(KubeStruct):
    action: Annotated[str, REQUIRED] = ""
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class SecretEnvSource(KubeStruct):
    name: str = ""
    optional: bool | None = None


class EnvFromSource(KubeStruct):
    prefix: str = ""
    config_map_ref: ConfigMapEnvSource | None = None
    secret_ref: SecretEnvSource | None = None


class EnvVarSource(KubeStruct):
    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    config_map_key_ref: ConfigMapKeySelector | None = None
    secret_key_ref: SecretKeySelector | None = None
    file_key_ref: FileKeySelector | None = None


class EnvVar(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    value: str = ""
    value_from: EnvVarSource | None = None


class ExecAction(KubeStruct):
    command: list[str] = []


class HTTPHeader(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    value: Annotated[str, REQUIRED] = always("")


class HTTPGetAction(KubeStruct):
    path: str = ""
    port: Annotated[IntOrString, REQUIRED] = always(0)
    host: str = ""
    scheme: Annotated[str, OneOf("HTTP", "HTTPS")] = ""
    http_headers: list[HTTPHeader] = []
    protocol: Annotated[str | None, OneOf("HTTP1", "HTTP2")] = None


class SleepAction(KubeStruct):
    seconds: Annotated[Int64, REQUIRED] = always(0)


class TCPSocketAction(KubeStruct):
    port: Annotated[IntOrString, REQUIRED] = always(0)
    host: str = ""


class LifecycleHandler(KubeStruct):
    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(KubeStruct):
    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str | None = None


class GRPCAction(KubeStruct):
    port: Annotated[Int32, REQUIRED] = always(0)
    service: str | None = None
    mode: Annotated[str | None, OneOf("Plaintext", "TLS")] = None


class Probe(KubeStruct):
    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    grpc: GRPCAction | None = None
    initial_delay_seconds: Int32 = 0
    timeout_seconds: Int32 = 0
    period_seconds: Int32 = 0
    success_threshold: Int32 = 0
    failure_threshold: Int32 = 0
    termination_grace_period_seconds: Int64 | None = None


class ResourceClaim(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    request: str = ""


class ResourceRequirements(KubeStruct):
    limits: dict[str, Quantity] = {}
    requests: dict[str, Quantity] = {}
    claims: Annotated[list[ResourceClaim], ListMap("name")] = []


class SELinuxOptions(KubeStruct):
    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class SeccompProfile(KubeStruct):
    type: Annotated[str, OneOf("Localhost", "RuntimeDefault", "Unconfined"), REQUIRED] = always("")
    localhost_profile: str | None = None


class WindowsSecurityContextOptions(KubeStruct):
    gmsa_credential_spec_name: str | None = None
    gmsa_credential_spec: str | None = None
    run_as_user_name: str | None = None
    host_process: bool | None = None


class SecurityContext(KubeStruct):
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsSecurityContextOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    read_only_root_filesystem: bool | None = None
    allow_privilege_escalation: bool | None = None
    proc_mount: Annotated[str | None, OneOf("Default", "Unmasked")] = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None


class VolumeDevice(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    device_path: Annotated[str, REQUIRED] = always("")


class VolumeMount(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    read_only: bool = False
    recursive_read_only: str | None = None
    mount_path: Annotated[str, REQUIRED] = always("")
    sub_path: str = ""
    mount_propagation: Annotated[str | None, OneOf("Bidirectional", "HostToContainer", "None")] = None
    sub_path_expr: str = ""
    bind_mount_options: Annotated[list[str], SET] = []


class Container(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    image: str = ""
    command: list[str] = []
    args: list[str] = []
    working_dir: str = ""
    ports: Annotated[list[ContainerPort], ListMap("containerPort", "protocol"), Merge("containerPort")] = []
    env_from: list[EnvFromSource] = []
    env: Annotated[list[EnvVar], Keyed("name")] = []
    resources: ResourceRequirements = nested(ResourceRequirements)
    resize_policy: list[ContainerResizePolicy] = []
    restart_policy: str | None = None
    restart_policy_rules: list[ContainerRestartRule] = []
    volume_mounts: Annotated[list[VolumeMount], Keyed("mountPath")] = []
    volume_devices: Annotated[list[VolumeDevice], Keyed("devicePath")] = []
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    termination_message_path: str = ""
    termination_message_policy: Annotated[str, OneOf("FallbackToLogsOnError", "File")] = ""
    image_pull_policy: Annotated[str, OneOf("Always", "IfNotPresent", "Never")] = ""
    security_context: SecurityContext | None = None
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False


class EphemeralContainer(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    image: str = ""
    command: list[str] = []
    args: list[str] = []
    working_dir: str = ""
    ports: Annotated[list[ContainerPort], ListMap("containerPort", "protocol"), Merge("containerPort")] = []
    env_from: list[EnvFromSource] = []
    env: Annotated[list[EnvVar], Keyed("name")] = []
    resources: ResourceRequirements = nested(ResourceRequirements)
    resize_policy: list[ContainerResizePolicy] = []
    restart_policy: str | None = None
    restart_policy_rules: list[ContainerRestartRule] = []
    volume_mounts: Annotated[list[VolumeMount], Keyed("mountPath")] = []
    volume_devices: Annotated[list[VolumeDevice], Keyed("devicePath")] = []
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    termination_message_path: str = ""
    termination_message_policy: Annotated[str, OneOf("FallbackToLogsOnError", "File")] = ""
    image_pull_policy: Annotated[str, OneOf("Always", "IfNotPresent", "Never")] = ""
    security_context: SecurityContext | None = None
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    target_container_name: str = ""
