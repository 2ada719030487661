"""The messages of CRI v1 that the node agent uses, and no others (called by every module of this package).

The table was written down from the published protocol; `base/protobuf.py` says how it is read and makes the classes.
"""

from __future__ import annotations

from typing import Any, Final

from nodeward.base.protobuf import message_classes

_MESSAGES: Final[dict[str, tuple[str, ...]]] = {
    # what both sides say about themselves
    "VersionRequest": ("version=1 string",),
    "VersionResponse": ("runtime_name=2 string", "runtime_version=3 string", "runtime_api_version=4 string"),
    "StatusRequest": ("verbose=1 bool",),
    "RuntimeCondition": ("type=1 string", "status=2 bool", "reason=3 string", "message=4 string"),
    "RuntimeStatus": ("conditions=1 *RuntimeCondition",),
    "RuntimeFeatures": ("user_namespaces_host_network=2 bool", "mount_options=3 bool"),
    "StatusResponse": ("status=1 RuntimeStatus", "info=2 strings", "features=4 RuntimeFeatures"),
    "LinuxRuntimeConfiguration": ("cgroup_driver=1 int32",),
    "RuntimeConfigRequest": (),
    "RuntimeConfigResponse": ("linux=1 LinuxRuntimeConfiguration",),
    # sandboxes
    "DNSConfig": ("servers=1 *string", "searches=2 *string", "options=3 *string"),
    "PortMapping": ("protocol=1 int32", "container_port=2 int32", "host_port=3 int32", "host_ip=4 string"),
    "Int64Value": ("value=1 int64",),
    "NamespaceOption": ("network=1 int32", "pid=2 int32", "ipc=3 int32", "target_id=4 string"),
    "SecurityProfile": ("profile_type=1 int32", "localhost_ref=2 string"),
    "SELinuxOption": ("user=1 string", "role=2 string", "type=3 string", "level=4 string"),
    "LinuxSandboxSecurityContext": (
        "namespace_options=1 NamespaceOption",
        "selinux_options=2 SELinuxOption",
        "run_as_user=3 Int64Value",
        "supplemental_groups=5 *int64",
        "privileged=6 bool",
        "run_as_group=8 Int64Value",
        "seccomp=9 SecurityProfile",
    ),
    "LinuxPodSandboxConfig": (
        "cgroup_parent=1 string",
        "security_context=2 LinuxSandboxSecurityContext",
        "sysctls=3 strings",
    ),
    "PodSandboxMetadata": ("name=1 string", "uid=2 string", "namespace=3 string", "attempt=4 uint32"),
    "PodSandboxConfig": (
        "metadata=1 PodSandboxMetadata",
        "hostname=2 string",
        "log_directory=3 string",
        "dns_config=4 DNSConfig",
        "port_mappings=5 *PortMapping",
        "labels=6 strings",
        "annotations=7 strings",
        "linux=8 LinuxPodSandboxConfig",
    ),
    "RunPodSandboxRequest": ("config=1 PodSandboxConfig", "runtime_handler=2 string"),
    "RunPodSandboxResponse": ("pod_sandbox_id=1 string",),
    "StopPodSandboxRequest": ("pod_sandbox_id=1 string",),
    "StopPodSandboxResponse": (),
    "RemovePodSandboxRequest": ("pod_sandbox_id=1 string",),
    "RemovePodSandboxResponse": (),
    "PodSandboxStatusRequest": ("pod_sandbox_id=1 string",),
    "PodIP": ("ip=1 string",),
    "PodSandboxNetworkStatus": ("ip=1 string", "additional_ips=2 *PodIP"),
    "PodSandboxStatus": ("id=1 string", "state=3 int32", "network=5 PodSandboxNetworkStatus"),
    "PodSandboxStatusResponse": ("status=1 PodSandboxStatus",),
    "PodSandboxFilter": ("id=1 string", "label_selector=3 strings"),
    "ListPodSandboxRequest": ("filter=1 PodSandboxFilter",),
    "PodSandbox": (
        "id=1 string",
        "metadata=2 PodSandboxMetadata",
        "state=3 int32",
        "created_at=4 int64",
        "labels=5 strings",
        "annotations=6 strings",
    ),
    "ListPodSandboxResponse": ("items=1 *PodSandbox",),
    # containers
    "ImageSpec": ("image=1 string", "user_specified_image=18 string"),
    "KeyValue": ("key=1 string", "value=2 bytes"),
    "Mount": (
        "container_path=1 string",
        "host_path=2 string",
        "readonly=3 bool",
        "mount_options=11 *string",
    ),
    "LinuxContainerResources": (
        "cpu_period=1 int64",
        "cpu_quota=2 int64",
        "cpu_shares=3 int64",
        "memory_limit_in_bytes=4 int64",
        "oom_score_adj=5 int64",
        "cpuset_cpus=6 string",
    ),
    "Capability": ("add_capabilities=1 *string", "drop_capabilities=2 *string"),
    "LinuxContainerSecurityContext": (
        "capabilities=1 Capability",
        "privileged=2 bool",
        "namespace_options=3 NamespaceOption",
        "selinux_options=4 SELinuxOption",
        "run_as_user=5 Int64Value",
        "readonly_rootfs=7 bool",
        "supplemental_groups=8 *int64",
        "no_new_privs=11 bool",
        "run_as_group=12 Int64Value",
        "masked_paths=13 *string",
        "readonly_paths=14 *string",
        "seccomp=15 SecurityProfile",
        "apparmor=16 SecurityProfile",
    ),
    "LinuxContainerConfig": (
        "resources=1 LinuxContainerResources",
        "security_context=2 LinuxContainerSecurityContext",
    ),
    "ContainerMetadata": ("name=1 string", "attempt=2 uint32"),
    "CDIDevice": ("name=1 string",),
    "ContainerConfig": (
        "metadata=1 ContainerMetadata",
        "image=2 ImageSpec",
        "command=3 *string",
        "args=4 *string",
        "working_dir=5 string",
        "envs=6 *KeyValue",
        "mounts=7 *Mount",
        "labels=9 strings",
        "annotations=10 strings",
        "log_path=11 string",
        "stdin=12 bool",
        "stdin_once=13 bool",
        "tty=14 bool",
        "linux=15 LinuxContainerConfig",
        "CDI_devices=17 *CDIDevice",
        "stop_signal=18 int32",
    ),
    "CreateContainerRequest": (
        "pod_sandbox_id=1 string",
        "config=2 ContainerConfig",
        "sandbox_config=3 PodSandboxConfig",
    ),
    "CreateContainerResponse": ("container_id=1 string",),
    "StartContainerRequest": ("container_id=1 string",),
    "StartContainerResponse": (),
    "StopContainerRequest": ("container_id=1 string", "timeout=2 int64"),
    "StopContainerResponse": (),
    "RemoveContainerRequest": ("container_id=1 string",),
    "RemoveContainerResponse": (),
    "ContainerFilter": ("id=1 string", "label_selector=4 strings"),
    "ListContainersRequest": ("filter=1 ContainerFilter",),
    "Container": (
        "id=1 string",
        "pod_sandbox_id=2 string",
        "metadata=3 ContainerMetadata",
        "state=6 int32",
        "labels=8 strings",
    ),
    "ListContainersResponse": ("containers=1 *Container",),
    "ContainerStatusRequest": ("container_id=1 string", "verbose=2 bool"),
    "ContainerStatus": (
        "id=1 string",
        "metadata=2 ContainerMetadata",
        "state=3 int32",
        "created_at=4 int64",
        "started_at=5 int64",
        "finished_at=6 int64",
        "exit_code=7 int32",
        "image=8 ImageSpec",
        "image_ref=9 string",
        "reason=10 string",
        "message=11 string",
        "labels=12 strings",
        "annotations=13 strings",
        "mounts=14 *Mount",
        "log_path=15 string",
        "resources=16 ContainerResources",
    ),
    "ContainerResources": ("linux=1 LinuxContainerResources",),
    "ContainerStatusResponse": ("status=1 ContainerStatus", "info=2 strings"),
    "UpdateContainerResourcesRequest": ("container_id=1 string", "linux=2 LinuxContainerResources"),
    "UpdateContainerResourcesResponse": (),
    "UInt64Value": ("value=1 uint64",),
    "MemoryUsage": ("working_set_bytes=2 UInt64Value", "usage_bytes=4 UInt64Value"),
    "ContainerStats": ("memory=3 MemoryUsage",),
    "ContainerStatsRequest": ("container_id=1 string",),
    "ContainerStatsResponse": ("stats=1 ContainerStats",),
    # commands in containers
    "ExecSyncRequest": ("container_id=1 string", "cmd=2 *string", "timeout=3 int64"),
    "ExecSyncResponse": ("stdout=1 bytes", "stderr=2 bytes", "exit_code=3 int32"),
    "ExecRequest": (
        "container_id=1 string",
        "cmd=2 *string",
        "tty=3 bool",
        "stdin=4 bool",
        "stdout=5 bool",
        "stderr=6 bool",
    ),
    "ExecResponse": ("url=1 string",),
    # images
    "Image": (
        "id=1 string",
        "repo_tags=2 *string",
        "repo_digests=3 *string",
        "size=4 uint64",
        "uid=5 Int64Value",
        "username=6 string",
    ),
    "ListImagesRequest": (),
    "ListImagesResponse": ("images=1 *Image",),
    "ImageStatusRequest": ("image=1 ImageSpec",),
    "ImageStatusResponse": ("image=1 Image",),
    "PullImageRequest": ("image=1 ImageSpec", "sandbox_config=3 PodSandboxConfig"),
    "PullImageResponse": ("image_ref=1 string",),
}

#: Where a namespace is shared: `NamespaceOption`.
POD: Final = 0
CONTAINER: Final = 1
NODE: Final = 2
TARGET: Final = 3
#: `PodSandbox.state`
SANDBOX_READY: Final = 0
#: `Container.state`
CREATED: Final = 0
RUNNING: Final = 1
EXITED: Final = 2

_CLASSES: Final = message_classes("nodeward.cri", _MESSAGES)


def message(name: str) -> Any:
    """Return the class of a message. It has no static type (it is made from the table), hence Any."""
    return _CLASSES[name]
