"""Containers of pods: what is refused when a pod is made, and in which words."""

from __future__ import annotations

import pytest

from tests.validation.pods import check_pod
from tests.validation.tables import DROP, Case, case

_C = "spec.containers[0]"
_FILES = {"name": "e", "image": "i"}


@pytest.mark.parametrize(
    "one",
    [
        case("a name and an image are enough"),
        case("a pod needs a container", {"spec.containers": []}, "spec.containers: Required value"),
        case(
            "names and images are needed",
            {"spec.containers": [{}]},
            f"{_C}.name: Required value",
            f"{_C}.image: Required value",
        ),
        case(
            "two containers have two names",
            {"spec.containers[1]": {"name": "c", "image": "i"}},
            'spec.containers[1].name: Duplicate value: "c"',
        ),
        case(
            "an image has no blanks around it",
            {f"{_C}.image": " pause:3.10"},
            f'{_C}.image: Invalid value: " pause:3.10": must not have leading or trailing whitespace',
        ),
        case(
            "policies have fixed words",
            {f"{_C}.imagePullPolicy": "Maybe", f"{_C}.terminationMessagePolicy": "Mail"},
            f'{_C}.terminationMessagePolicy: Unsupported value: "Mail": supported values: "File", '
            '"FallbackToLogsOnError"',
            f'{_C}.imagePullPolicy: Unsupported value: "Maybe": supported values: "Always", "IfNotPresent", "Never"',
        ),
        case(
            "ports are numbers with a known protocol and a name of their own",
            {
                f"{_C}.ports": [
                    {"containerPort": 80, "name": "http"},
                    {"containerPort": 70000, "protocol": "IP", "name": "http"},
                    {"hostPort": -1, "name": "Bad"},
                ]
            },
            f'{_C}.ports[1].name: Duplicate value: "http"',
            f"{_C}.ports[1].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            f'{_C}.ports[1].protocol: Unsupported value: "IP": supported values: "SCTP", "TCP", "UDP"',
            f'{_C}.ports[2].name: Invalid value: "Bad": must contain only alpha-numeric characters (a-z, 0-9), and '
            "hyphens (-)",
            f"{_C}.ports[2].containerPort: Required value",
            f"{_C}.ports[2].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive",
        ),
        case(
            "a port of the host is taken once",
            {f"{_C}.ports": [{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}]},
            f'{_C}.ports[1].hostPort: Duplicate value: "TCP//9"',
        ),
        case(
            "on the host's network both ports are one",
            {"spec.hostNetwork": True, f"{_C}.ports": [{"containerPort": 1, "hostPort": 9}]},
            f"{_C}.ports[0].hostPort: Invalid value: 9: must match `containerPort` when `hostNetwork` is true",
        ),
        case(
            "on the host's network the host's port is filled in",
            {"spec.hostNetwork": True, f"{_C}.ports": [{"containerPort": 1}]},
        ),
    ],
    ids=str,
)
def test_containers(one: Case) -> None:
    check_pod(one)


@pytest.mark.parametrize(
    "one",
    [
        case("variables may have odd names", {f"{_C}.env": [{"name": "1 A", "value": "x"}]}),
        case(
            "without the gate they may not",
            {f"{_C}.env": [{"name": "1 A"}]},
            f'{_C}.env[0].name: Invalid value: "1 A": a valid environment variable name must consist of '
            "alphabetic...",
            off=("RelaxedEnvironmentVariableValidation",),
        ),
        case(
            "an equals sign ends a name",
            {f"{_C}.env": [{"name": "A=B"}, {"value": "x"}]},
            f'{_C}.env[0].name: Invalid value: "A=B": a valid environment variable name must consist only of...',
            f"{_C}.env[1].name: Required value",
        ),
        case(
            "a value comes from one place",
            {
                f"{_C}.env": [
                    {"name": "A", "valueFrom": {}},
                    {"name": "B", "value": "b", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {
                        "name": "C",
                        "valueFrom": {
                            "fieldRef": {"fieldPath": "metadata.name"},
                            "secretKeyRef": {"name": "s", "key": "k"},
                        },
                    },
                ]
            },
            f'{_C}.env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, '
            "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
            f'{_C}.env[1].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
            f'{_C}.env[2].valueFrom: Invalid value: "": may not have more than one field specified at a time',
        ),
        case(
            "only some fields of a pod can be shown in a variable",
            {
                f"{_C}.env": [
                    {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                    {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a.b/c']"}}},
                    {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}},
                    {"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "spec.containers"}}},
                    {"name": "E", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP['x']"}}},
                ]
            },
            f'{_C}.env[2].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.labels": supported values: '
            '"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", '
            '"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"',
            f'{_C}.env[3].valueFrom.fieldRef.fieldPath: Invalid value: "spec.containers": error converting '
            "fieldPath: "
            "field label not supported: spec.containers",
            f"{_C}.env[4].valueFrom.fieldRef.fieldPath: Invalid value: \"status.podIP['x']\": error converting "
            "fieldPath: "
            "field label does not support subscript: status.podIP['x']",
        ),
        case(
            "assigned CPUs are for files: a variable could not follow a resize",
            {
                f"{_C}.env": [
                    {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "assigned.cpuset"}}}
                ]
            },
            f'{_C}.env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "assigned.cpuset": supported '
            "values: "
            '"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", '
            '"requests.ephemeral-storage", '
            '"requests.memory"',
        ),
        case(
            "cpu is divided by 1 or 1m",
            {
                f"{_C}.env": [
                    {
                        "name": "A",
                        "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}},
                    }
                ]
            },
            f'{_C}.env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.cpu": '
            "only divisor's values 1m and 1 are supported with the cpu resource",
        ),
        case(
            "keys of config maps have their own rule",
            {f"{_C}.env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "a b"}}}]},
            f'{_C}.env[0].valueFrom.configMapKeyRef.key: Invalid value: "a b": a valid config key must consist of...',
        ),
        case(
            "a variable from a file needs an emptyDir",
            {
                "spec.volumes": [{"name": "v", "secret": {"secretName": "s"}}],
                f"{_C}.env": [
                    {"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "f", "key": "K"}}},
                    {"name": "B", "valueFrom": {"fileKeyRef": {"volumeName": "w", "path": "f", "key": "K"}}},
                ],
            },
            f'{_C}.env[0].valueFrom.fileKeyRef.volumeName: Invalid value: "v": referenced volume must be of type '
            "emptyDir",
            f'{_C}.env[1].valueFrom.fileKeyRef.volumeName: Not found: "w"',
        ),
        case(
            "many variables come from a config map or a secret",
            {f"{_C}.envFrom": [{"prefix": "P_"}, {"configMapRef": {}, "secretRef": {"name": "s"}}]},
            f'{_C}.envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`',
            f"{_C}.envFrom[1].configMapRef.name: Required value",
            f'{_C}.envFrom: Invalid value: "": may not have more than one field specified at a time',
        ),
    ],
    ids=str,
)
def test_environment(one: Case) -> None:
    check_pod(one)


_VOLUMES = [
    {"name": "v", "emptyDir": {}},
    {"name": "p", "persistentVolumeClaim": {"claimName": "p"}},
    {"name": "i", "image": {"reference": "r"}},
]


@pytest.mark.parametrize(
    "one",
    [
        case(
            "a mount names a volume",
            {"spec.volumes": _VOLUMES, f"{_C}.volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        ),
        case(
            "mounts need a volume and a path of their own",
            {
                "spec.volumes": _VOLUMES,
                f"{_C}.volumeMounts": [
                    {"name": "x", "mountPath": "/v"},
                    {"name": "v", "mountPath": "/v"},
                    {"name": "v"},
                ],
            },
            f'{_C}.volumeMounts[0].name: Not found: "x"',
            f'{_C}.volumeMounts[1].mountPath: Invalid value: "/v": must be unique',
            f"{_C}.volumeMounts[2].mountPath: Required value",
        ),
        case(
            "a path below a volume does not climb out of it",
            {
                "spec.volumes": _VOLUMES,
                f"{_C}.volumeMounts": [
                    {"name": "v", "mountPath": "/v", "subPath": "/a/../b", "subPathExpr": "c"}
                ],
            },
            f'{_C}.volumeMounts.subPath: Invalid value: "/a/../b": must be a relative path',
            f"{_C}.volumeMounts.subPath: Invalid value: \"/a/../b\": must not contain '..'",
            f'{_C}.volumeMounts[0].subPathExpr: Invalid value: "c": subPathExpr and subPath are mutually exclusive',
        ),
        case(
            "mounts that reach the host need privileges",
            {
                "spec.volumes": _VOLUMES,
                f"{_C}.volumeMounts": [{"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional"}],
            },
            f"{_C}.volumeMounts.mountPropagation: Forbidden: "
            "Bidirectional mount propagation is available only to privileged containers",
        ),
        case(
            "recursive read-only is read-only",
            {
                "spec.volumes": _VOLUMES,
                f"{_C}.volumeMounts": [
                    {"name": "v", "mountPath": "/v", "recursiveReadOnly": "Enabled"},
                    {"name": "v", "mountPath": "/w", "recursiveReadOnly": "Yes"},
                ],
            },
            f"{_C}.volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true",
            f'{_C}.volumeMounts.recursiveReadOnly: Unsupported value: "Yes": supported values: "Disabled", '
            '"Enabled", "IfPossible"',
        ),
        case(
            "options of a bind mount are known, given once and not for images",
            {
                "spec.volumes": _VOLUMES,
                f"{_C}.volumeMounts": [
                    {"name": "i", "mountPath": "/i", "bindMountOptions": ["noexec", "noexec", "x"]}
                ],
            },
            f'{_C}.volumeMounts[0].bindMountOptions[1]: Duplicate value: "noexec"',
            f'{_C}.volumeMounts[0].bindMountOptions[2]: Unsupported value: "x": supported values: "nodev", '
            '"noexec", "nosuid"',
            f'{_C}.volumeMounts[0].bindMountOptions: Invalid value: ["noexec","noexec","x"]: '
            "bindMountOptions may not be used with image volumes",
        ),
        case(
            "devices are claims, and not mounted as well",
            {
                "spec.volumes": _VOLUMES,
                f"{_C}.volumeMounts": [{"name": "p", "mountPath": "/p"}],
                f"{_C}.volumeDevices": [
                    {"name": "v", "devicePath": "/dev/../x"},
                    {"name": "p", "devicePath": "/p"},
                    {"name": "y"},
                ],
            },
            f'{_C}.volumeMounts[0].name: Invalid value: "p": must not already exist in volumeDevices',
            f'{_C}.volumeMounts[0].mountPath: Invalid value: "/p": must not already exist as a path in volumeDevices',
            f'{_C}.volumeDevices[0].name: Invalid value: "v": can only use volume source type of '
            "PersistentVolumeClaim "
            "or Ephemeral for block mode",
            f"{_C}.volumeDevices[0].devicePath: Invalid value: \"/dev/../x\": can not contain backsteps ('..')",
            f'{_C}.volumeDevices[1].name: Invalid value: "p": must not already exist in volumeMounts',
            f'{_C}.volumeDevices[1].devicePath: Invalid value: "/p": must not already exist as a path in '
            "volumeMounts",
            f'{_C}.volumeDevices[2].name: Not found: "y"',
            f"{_C}.volumeDevices[2].devicePath: Required value",
        ),
    ],
    ids=str,
)
def test_mounts_and_devices(one: Case) -> None:
    check_pod(one)


@pytest.mark.parametrize(
    "one",
    [
        case("a probe has one action", {f"{_C}.livenessProbe": {"httpGet": {"port": 80}}}),
        case(
            "no action is not enough",
            {f"{_C}.livenessProbe": {}},
            f"{_C}.livenessProbe: Required value: must specify a handler type",
        ),
        case(
            "two actions are too many",
            {f"{_C}.readinessProbe": {"exec": {"command": ["x"]}, "tcpSocket": {"port": "db"}}},
            f"{_C}.readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
        ),
        case(
            "actions are checked",
            {
                f"{_C}.livenessProbe": {"exec": {}, "successThreshold": 2},
                f"{_C}.readinessProbe": {
                    "httpGet": {"port": 0, "scheme": "FTP", "httpHeaders": [{"name": "a b"}]},
                    "terminationGracePeriodSeconds": 5,
                },
                f"{_C}.startupProbe": {"grpc": {"port": 5, "mode": "No"}, "periodSeconds": -1},
            },
            f"{_C}.livenessProbe.exec.command: Required value",
            f"{_C}.livenessProbe.successThreshold: Invalid value: 2: must be 1",
            f"{_C}.readinessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive",
            f'{_C}.readinessProbe.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS"',
            f'{_C}.readinessProbe.httpGet.httpHeaders: Invalid value: "a b": a valid HTTP header must consist of...',
            f"{_C}.readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for "
            "readinessProbes",
            f'{_C}.startupProbe.grpc.mode: Unsupported value: "No": supported values: "Plaintext", "TLS"',
            f"{_C}.startupProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
        ),
        case(
            "a sleep before the end fits into the grace period",
            {f"{_C}.lifecycle": {"preStop": {"sleep": {"seconds": 31}}}},
            f"{_C}.lifecycle.preStop.sleep: Invalid value: 31: "
            "must be non-negative and less than terminationGracePeriodSeconds (30)",
        ),
        case(
            "a stop signal needs a known operating system",
            {f"{_C}.lifecycle": {"stopSignal": "SIGTERM"}},
            f"{_C}.lifecycle.stopSignal: Forbidden: may not be set for containers with empty `spec.os.name`",
        ),
        case(
            "Windows knows two signals",
            {"spec.os": {"name": "windows"}, f"{_C}.lifecycle": {"stopSignal": "SIGUSR1"}},
            f'{_C}.lifecycle.stopSignal: Unsupported value: "SIGUSR1": supported values: "SIGKILL", "SIGTERM"',
        ),
        case(
            "Linux knows real-time signals",
            {"spec.os": {"name": "linux"}, f"{_C}.lifecycle": {"stopSignal": "SIGRTMIN+15"}},
        ),
    ],
    ids=str,
)
def test_probes_and_hooks(one: Case) -> None:
    check_pod(one)


_I = "spec.initContainers[0]"


@pytest.mark.parametrize(
    "one",
    [
        case("an init container is fine", {"spec.initContainers": [_FILES]}),
        case(
            "a sidecar may have probes",
            {
                "spec.initContainers": [
                    {**_FILES, "restartPolicy": "Always", "livenessProbe": {"tcpSocket": {"port": 1}}}
                ]
            },
        ),
        case(
            "an init container that ends has no probes and hooks",
            {
                "spec.initContainers": [
                    {**_FILES, "livenessProbe": {"tcpSocket": {"port": 1}}, "lifecycle": {}}
                ]
            },
            f"{_I}.lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always",
            f"{_I}.livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
        ),
        case(
            "its name is not that of another container",
            {"spec.initContainers": [{**_FILES, "name": "c"}]},
            f'{_I}.name: Duplicate value: "c"',
        ),
        case(
            "it is not restarted for a resize unless it is a sidecar",
            {
                "spec.initContainers": [
                    {**_FILES, "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}
                ]
            },
            f'{_I}.resizePolicy[0].restartPolicy: Invalid value: "RestartContainer": '
            "must not be set to 'RestartContainer' for non-sidecar initContainers",
        ),
        case(
            "restart rules come with a policy, and few",
            {
                f"{_C}.restartPolicyRules": [
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
                    {"action": "Explode"},
                ]
            },
            f"{_C}.restartPolicy: Required value: must specify restartPolicy when restart rules are used",
            f'{_C}.restartPolicyRules[1].action: Unsupported value: "Explode": supported values: "Restart"',
            f"{_C}.restartPolicyRules[1].exitCodes: Required value: must be specified",
        ),
        case(
            "before restart rules only sidecars had a policy",
            {f"{_C}.restartPolicy": "Never", "spec.initContainers": [{**_FILES, "restartPolicy": "Never"}]},
            f"{_C}.restartPolicy: Forbidden: may not be set for non-init containers",
            f'{_I}.restartPolicy: Unsupported value: "Never": supported values: "Always"',
            off=("ContainerRestartRules",),
        ),
        case(
            "resize policies are for cpu and memory, one each",
            {
                "spec.restartPolicy": "Never",
                f"{_C}.resizePolicy": [
                    {"resourceName": "cpu", "restartPolicy": "NotRequired"},
                    {"resourceName": "cpu", "restartPolicy": "RestartContainer"},
                    {"resourceName": "disk", "restartPolicy": "NotRequired"},
                ],
            },
            f'{_C}.resizePolicy[1]: Duplicate value: "cpu"',
            f'{_C}.resizePolicy: Invalid value: "RestartContainer": '
            "must be 'NotRequired' when pod `restartPolicy` is 'Never'",
            f'{_C}.resizePolicy: Unsupported value: "disk": supported values: "cpu", "memory"',
        ),
        case(
            "ephemeral containers are not there from the start",
            {
                "spec.ephemeralContainers": [
                    {**_FILES, "ports": [{"containerPort": 1}], "targetContainerName": "x"}
                ]
            },
            'spec.ephemeralContainers[0].targetContainerName: Not found: "x"',
            "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
            "spec.ephemeralContainers: Forbidden: cannot be set on create",
        ),
    ],
    ids=str,
)
def test_init_and_ephemeral_containers(one: Case) -> None:
    check_pod(one)


@pytest.mark.parametrize(
    "one",
    [
        case(
            "requests below limits are fine",
            {f"{_C}.resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}},
        ),
        case(
            "requests above limits are not",
            {f"{_C}.resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
            f'{_C}.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        case(
            "nothing is negative",
            {f"{_C}.resources": {"requests": {"cpu": "-1"}}},
            f'{_C}.resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        ),
        case(
            "resources without a domain are Kubernetes' own",
            {f"{_C}.resources": {"limits": {"gpu": "1"}}},
            f'{_C}.resources.limits[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
            f'{_C}.resources.limits[gpu]: Invalid value: "gpu": must be a standard resource for containers',
            f'{_C}.resources.requests[gpu]: Invalid value: "gpu": must be a standard resource type or fully '
            "qualified",
            f'{_C}.resources.requests[gpu]: Invalid value: "gpu": must be a standard resource for containers',
        ),
        case(
            "extended resources are whole, and requests are limits",
            {
                f"{_C}.resources": {
                    "limits": {"example.com/gpu": "1500m"},
                    "requests": {"example.com/gpu": "1"},
                }
            },
            f'{_C}.resources.limits[example.com/gpu]: Invalid value: "1500m": must be an integer',
            f'{_C}.resources.requests: Invalid value: "1": must be equal to example.com/gpu limit of 1500m',
        ),
        case(
            "extended resources need a limit",
            {f"{_C}.resources": {"requests": {"example.com/gpu": "1"}}},
            f"{_C}.resources.limits: Required value: Limit must be set for non overcommitable resources",
        ),
        case(
            "huge pages come in pages, and with cpu or memory",
            {f"{_C}.resources": {"limits": {"hugepages-2Mi": "3Mi"}}},
            f'{_C}.resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of '
            "hugepages-2Mi",
            f'{_C}.resources.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple '
            "of hugepages-2Mi",
            f"{_C}.resources: Forbidden: HugePages require cpu or memory",
        ),
        case(
            "claims are those of the pod",
            {
                "spec.resourceClaims": [{"name": "g", "resourceClaimName": "x"}],
                f"{_C}.resources": {"claims": [{"name": "g"}, {"name": "g"}, {"name": "h"}, {}]},
            },
            f'{_C}.resources.claims[1]: Duplicate value: "g"',
            f'{_C}.resources.claims[2]: Not found: "h": must be one of the names in pod.spec.resourceClaims: g',
            f"{_C}.resources.claims[3]: Required value",
        ),
        case(
            "a claim is named directly or by its template",
            {
                "spec.resourceClaims": [
                    {"name": "a"},
                    {"name": "a", "resourceClaimName": "A", "resourceClaimTemplateName": "t"},
                ]
            },
            'spec.resourceClaims[0]: Invalid value: {"name":"a"}: must specify one of: `resourceClaimName`, '
            "`resourceClaimTemplateName`",
            'spec.resourceClaims[1].name: Duplicate value: "a"',
            "spec.resourceClaims[1]: Invalid value: "
            '{"name":"a","resourceClaimName":"A","resourceClaimTemplateName":"t"}: '
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            'spec.resourceClaims[1].resourceClaimName: Invalid value: "A": a lowercase RFC 1123 subdomain...',
        ),
        case(
            "a pod as a whole asks for no less than its containers",
            {
                f"{_C}.resources": {"requests": {"cpu": "2"}, "limits": {"memory": "2Gi"}},
                "spec.resources": {
                    "requests": {"cpu": "1"},
                    "limits": {"cpu": "3", "memory": "1Gi", "example.com/x": "1"},
                },
            },
            'spec.resources.limits[example.com/x]: Unsupported value: "example.com/x": supported values: "cpu", '
            '"hugepages-", "memory"',
            'spec.resources.requests[cpu]: Invalid value: "1": '
            "must be greater than or equal to aggregate container requests of 2",
            'spec.resources.containers[0][memory].limits: Invalid value: "2Gi": must be less than or equal to pod '
            "limits of 1Gi",
        ),
        case(
            "without the gate they are not looked at",
            {"spec.resources": {"limits": {"disk": "1"}}},
            off=("PodLevelResources",),
        ),
        case(
            "overhead is named like any resource",
            {"spec.overhead": {"disk": "1"}},
            'spec.overhead.limits[disk]: Invalid value: "disk": must be a standard resource type or fully qualified',
            'spec.overhead.limits[disk]: Invalid value: "disk": must be a standard resource for containers',
        ),
        case("an image is needed even with all else", {f"{_C}.image": DROP}, f"{_C}.image: Required value"),
    ],
    ids=str,
)
def test_resources(one: Case) -> None:
    check_pod(one)
