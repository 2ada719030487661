"""The rest of a pod's spec: names, policies, security, placement, DNS, annotations."""

from __future__ import annotations

from typing import Any

import pytest

from tests.validation.pods import check_pod
from tests.validation.tables import Case, case

_C = "spec.containers[0]"
_SC = "spec.securityContext"
_SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of..."


@pytest.mark.parametrize(
    "one",
    [
        case(
            "policies have fixed words",
            {"spec.restartPolicy": "Maybe", "spec.dnsPolicy": "Mine", "spec.preemptionPolicy": "Always"},
            'spec.restartPolicy: Unsupported value: "Maybe": supported values: "Always", "OnFailure", "Never"',
            'spec.dnsPolicy: Unsupported value: "Mine": supported values: "ClusterFirstWithHostNet", '
            '"ClusterFirst", "Default", "None"',
            'spec.preemptionPolicy: Unsupported value: "Always": supported values: "PreemptLowerPriority", "Never"',
        ),
        case(
            "names of other objects are names",
            {
                "spec.serviceAccountName": "A",
                "spec.nodeName": "B",
                "spec.hostname": "c.d",
                "spec.subdomain": "e.f",
                "spec.priorityClassName": "G",
                "spec.runtimeClassName": "H",
            },
            f'spec.serviceAccountName: Invalid value: "A": {_SUBDOMAIN}',
            f'spec.nodeName: Invalid value: "B": {_SUBDOMAIN}',
            'spec.hostname: Invalid value: "c.d": must not contain dots',
            'spec.subdomain: Invalid value: "e.f": must not contain dots',
            f'spec.priorityClassName: Invalid value: "G": {_SUBDOMAIN}',
            f'spec.runtimeClassName: Invalid value: "H": {_SUBDOMAIN}',
        ),
        case(
            "a deadline is a positive number of seconds",
            {"spec.activeDeadlineSeconds": 0},
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
        ),
        case("a negative grace period becomes one second", {"spec.terminationGracePeriodSeconds": -5}),
        case(
            "a node selector is made of labels",
            {"spec.nodeSelector": {"a b": "x"}},
            'spec.nodeSelector: Invalid value: "a b": name part must consist...',
        ),
        case(
            "a name for the host is short and excludes others",
            {"spec.hostnameOverride": "A" * 65, "spec.setHostnameAsFQDN": True},
            "spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true",
            "spec.hostnameOverride: Too long: may not be more than 64 bytes",
            f'spec.hostnameOverride: Invalid value: "{"A" * 65}": {_SUBDOMAIN}',
        ),
        case(
            "processes are shared with the host or within the pod",
            {"spec.shareProcessNamespace": True, "spec.hostPID": True},
            "spec.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be "
            "enabled",
        ),
        case(
            "users of its own exclude everything of the host",
            {
                "spec.hostUsers": False,
                "spec.hostNetwork": True,
                "spec.hostPID": True,
                "spec.hostIPC": True,
            },
            "spec.hostNetwork: Forbidden: when `hostUsers` is false",
            "spec.HostPID: Forbidden: when `hostUsers` is false",
            "spec.HostIPC: Forbidden: when `hostUsers` is false",
        ),
        case(
            "gates are named once and well",
            {"spec.schedulingGates": [{"name": "a"}, {"name": "a"}, {"name": "a b"}], "spec.nodeName": "n"},
            'spec.schedulingGates[1]: Duplicate value: "a"',
            'spec.schedulingGates[2]: Invalid value: "a b": name part must consist...',
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
        ),
        case(
            "readiness gates are condition types",
            {"spec.readinessGates": [{"conditionType": "a b"}]},
            'spec.readinessGates[0].conditionType: Invalid value: "a b": name part must consist...',
        ),
        case(
            "an operating system is one of two",
            {"spec.os": {"name": "plan9"}},
            'spec.os: Unsupported value: "plan9": supported values: "linux", "windows"',
        ),
        case(
            "a group is named",
            {"spec.schedulingGroup": {}, "spec.evictionResponders": [{"name": "x"}]},
            "spec.schedulingGroup.podGroupName: Invalid value: null: must specify one of: `podGroupName`",
            "spec.schedulingGroup: Forbidden: may not be set when evictionResponders is set",
            "spec.evictionResponders[0].name: Invalid value: \"x\": must include a prefix (e.g. 'example.com/key')",
            "spec.evictionResponders[0].priority: Required value",
        ),
        case(
            "host aliases are addresses and names",
            {"spec.hostAliases": [{"ip": "010.0.0.1", "hostnames": ["A"]}, {"ip": "x"}]},
            'spec.hostAliases[0].ip: Invalid value: "010.0.0.1": must not have leading 0s',
            f'spec.hostAliases[0].hostnames[0]: Invalid value: "A": {_SUBDOMAIN}',
            'spec.hostAliases[1].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or '
            "2001:db8::ffff)",
        ),
        case(
            "lenient addresses pass while the rule is off",
            {"spec.hostAliases": [{"ip": "010.0.0.1"}]},
            off=("StrictIPCIDRValidation",),
        ),
    ],
    ids=str,
)
def test_spec(one: Case) -> None:
    check_pod(one)


@pytest.mark.parametrize(
    "one",
    [
        case(
            "no policy needs a configuration",
            {"spec.dnsPolicy": "None"},
            "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
        ),
        case(
            "and a nameserver",
            {"spec.dnsPolicy": "None", "spec.dnsConfig": {"searches": ["a"]}},
            "spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` "
            "is None",
        ),
        case(
            "there are three nameservers at most, and they are addresses",
            {"spec.dnsConfig": {"nameservers": ["1.1.1.1", "::1", "x", "2.2.2.2"]}},
            'spec.dnsConfig.nameservers: Invalid value: ["1.1.1.1","::1","x","2.2.2.2"]: must not have more than 3 '
            "nameservers",
            'spec.dnsConfig.nameservers[2]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or '
            "2001:db8::ffff)",
        ),
        case(
            "searches may have underscores and dots",
            {"spec.dnsConfig": {"searches": [".", "_tcp.example.com."]}},
        ),
        case(
            "searches are names, options are named",
            {"spec.dnsConfig": {"searches": ["a b"], "options": [{"value": "x"}]}},
            'spec.dnsConfig.searches[0]: Invalid value: "a b": a lowercase RFC 1123 subdomain must consist of...',
            "spec.dnsConfig.options[0]: Required value: must not be empty",
        ),
    ],
    ids=str,
)
def test_dns(one: Case) -> None:
    check_pod(one)


@pytest.mark.parametrize(
    "one",
    [
        case(
            "users and groups are numbers of the kernel",
            {
                _SC: {"runAsUser": -1, "fsGroup": 2**31, "supplementalGroups": [-1]},
                f"{_C}.securityContext": {"runAsGroup": -1},
            },
            f"{_C}.securityContext.runAsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            f"{_SC}.fsGroup: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive",
            f"{_SC}.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            f"{_SC}.supplementalGroups[0]: Invalid value: -1: must be between 0 and 2147483647, inclusive",
        ),
        case(
            "who is privileged can escalate",
            {f"{_C}.securityContext": {"privileged": True, "allowPrivilegeEscalation": False}},
            f'{_C}.securityContext: Invalid value: {{"privileged":true,"allowPrivilegeEscalation":false}}: '
            "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
        ),
        case(
            "who may do everything can escalate",
            {
                f"{_C}.securityContext": {
                    "capabilities": {"add": ["CAP_SYS_ADMIN"]},
                    "allowPrivilegeEscalation": False,
                }
            },
            f"{_C}.securityContext: Invalid value: {{...",
        ),
        case(
            "an open /proc needs users of its own",
            {f"{_C}.securityContext": {"procMount": "Unmasked"}},
            f'{_C}.securityContext.procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`',
        ),
        case(
            "profiles of the host are named, others are not",
            {
                _SC: {"seccompProfile": {"type": "Localhost"}, "appArmorProfile": {"type": "Magic"}},
                f"{_C}.securityContext": {
                    "seccompProfile": {"type": "Unconfined", "localhostProfile": "x"},
                    "appArmorProfile": {"type": "Localhost", "localhostProfile": " x"},
                },
            },
            f"{_C}.securityContext.seccompProfile.localhostProfile: Invalid value: "
            f'{{"type":"Unconfined","localhostProfile":"x"}}: '
            "can only be set when seccomp type is Localhost",
            f'{_C}.securityContext.appArmorProfile.localhostProfile: Invalid value: " x": must not be padded with '
            "whitespace",
            f"{_SC}.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost",
            f'{_SC}.appArmorProfile.type: Unsupported value: "Magic": supported values: "Localhost", '
            '"RuntimeDefault", "Unconfined"',
        ),
        case(
            "sysctls are named once and leave the host alone",
            {
                "spec.hostNetwork": True,
                _SC: {
                    "sysctls": [
                        {"name": "net.a", "value": "1"},
                        {"name": "A"},
                        {"name": "kernel.sem"},
                        {"name": "kernel.sem"},
                    ]
                },
            },
            f"{_SC}.sysctls[0].name: Invalid value: \"net.a\": may not be specified when 'hostNetwork' is true",
            f'{_SC}.sysctls[1].name: Invalid value: "A": must have at most 253 characters and match regex '
            "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
            f'{_SC}.sysctls[3].name: Duplicate value: "kernel.sem"',
        ),
        case(
            "policies of groups and labels have fixed words",
            {
                _SC: {
                    "fsGroupChangePolicy": "x",
                    "supplementalGroupsPolicy": "y",
                    "seLinuxChangePolicy": "MountOption",
                }
            },
            f'{_SC}.fsGroupChangePolicy: Unsupported value: "x": supported values: "Always", "OnRootMismatch"',
            f'{_SC}.supplementalGroupsPolicy: Unsupported value: "y": supported values: "Merge", "Strict"',
            f'{_SC}.seLinuxChangePolicy: Unsupported value: "MountOption": supported values: "Recursive"',
        ),
        case(
            "with the gate labels may be set at mount time",
            {_SC: {"seLinuxChangePolicy": "MountOption"}},
            gates=("SELinuxMount",),
        ),
        case(
            "Windows options are not for Linux",
            {"spec.os": {"name": "linux"}, _SC: {"windowsOptions": {"runAsUserName": "a"}}},
            f"{_SC}.windowsOptions: Forbidden: windows options cannot be set for a linux pod",
        ),
        case(
            "Linux options are not for Windows",
            {
                "spec.os": {"name": "windows"},
                _SC: {"runAsUser": 0},
                "spec.hostPID": True,
                f"{_C}.securityContext": {"privileged": False},
            },
            f"{_SC}.runAsUser: Forbidden: cannot be set for a windows pod",
            "spec.hostPID: Forbidden: cannot be set for a windows pod",
            f"{_C}.securityContext.privileged: Forbidden: cannot be set for a windows pod",
        ),
        case(
            "Windows user names have their own rules",
            {
                f"{_C}.securityContext": {
                    "windowsOptions": {"runAsUserName": "do main\\.. ", "gmsaCredentialSpec": ""}
                }
            },
            f'{_C}.securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot '
            "be an empty string",
            f'{_C}.securityContext.windowsOptions.runAsUserName: Invalid value: "do main\\\\.. ": '
            "runAsUserName's User cannot contain only periods or spaces",
        ),
        case(
            "processes of the Windows host are all or none, with its network",
            {
                _SC: {"windowsOptions": {"hostProcess": True}},
                f"{_C}.securityContext": {"windowsOptions": {"hostProcess": False}},
                "spec.containers[1]": {"name": "d", "image": "i"},
            },
            f"{_C}.securityContext.windowsOptions.hostProcess: Invalid value: false: "
            "pod hostProcess value must be identical if both are specified, was true",
            'spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be '
            "HostProcess containers",
            "spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess "
            "containers",
        ),
    ],
    ids=str,
)
def test_security(one: Case) -> None:
    check_pod(one)


_NODE = "spec.affinity.nodeAffinity"
_REQ = "requiredDuringSchedulingIgnoredDuringExecution"
_PREF = "preferredDuringSchedulingIgnoredDuringExecution"


def _requirement(key: str = "k", operator: str = "In", values: list[str] | None = None) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": ["v"] if values is None else values}


@pytest.mark.parametrize(
    "one",
    [
        case(
            "a selector of nodes has terms",
            {_NODE: {_REQ: {"nodeSelectorTerms": []}}},
            f"{_NODE}.{_REQ}.nodeSelectorTerms: Required value: must have at least one node selector term",
        ),
        case(
            "expressions have operators and as many values as those take",
            {
                _NODE: {
                    _REQ: {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    _requirement(values=[]),
                                    _requirement(operator="Exists"),
                                    _requirement(operator="Gt", values=["1", "2"]),
                                    _requirement(operator="Like"),
                                    _requirement(values=["-"]),
                                ],
                                "matchFields": [
                                    _requirement("spec.x"),
                                    _requirement("metadata.name", "Exists", []),
                                ],
                            }
                        ]
                    }
                }
            },
            *(
                f"{_NODE}.{_REQ}.nodeSelectorTerms[0].{rest}"
                for rest in (
                    "matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or "
                    "'NotIn'",
                    "matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or "
                    "'DoesNotExist'",
                    "matchExpressions[2].values: Required value: must be specified single value when `operator` is "
                    "'Lt' or 'Gt'",
                    'matchExpressions[3].operator: Invalid value: "Like": not a valid selector operator',
                    'matchExpressions[4].values[0]: Invalid value: "-": a valid label must be...',
                    'matchFields[0].key: Invalid value: "spec.x": not a valid field selector key',
                    'matchFields[1].operator: Invalid value: "Exists": not a valid selector operator',
                )
            ),
        ),
        case(
            "preferences weigh from 1 to 100",
            {
                _NODE: {
                    _PREF: [{"weight": 101, "preference": {"matchExpressions": [_requirement(values=["-"])]}}]
                }
            },
            f"{_NODE}.{_PREF}[0].weight: Invalid value: 101: must be in the range 1-100",
        ),
        case(
            "pods are near others in a topology",
            {
                "spec.affinity.podAffinity": {
                    _REQ: [
                        {
                            "labelSelector": {"matchExpressions": [_requirement(operator="Near")]},
                            "namespaces": ["A"],
                        }
                    ]
                }
            },
            f'spec.affinity.podAffinity.{_REQ}[0].labelSelector.matchExpressions[0].operator: Invalid value: "Near": '
            "not a valid selector operator",
            f'spec.affinity.podAffinity.{_REQ}[0].namespace: Invalid value: "A": a lowercase RFC 1123 label...',
            f"spec.affinity.podAffinity.{_REQ}[0].topologyKey: Required value: can not be empty",
            f'spec.affinity.podAffinity.{_REQ}[0].topologyKey: Invalid value: "": name part must be non-empty',
            f'spec.affinity.podAffinity.{_REQ}[0].topologyKey: Invalid value: "": name part must consist...',
        ),
        case(
            "keys taken from the pod need a selector, and match or do not",
            {
                "spec.affinity.podAntiAffinity": {
                    _REQ: [
                        {"topologyKey": "t", "matchLabelKeys": ["a"]},
                        {
                            "topologyKey": "t",
                            "labelSelector": {},
                            "matchLabelKeys": ["a"],
                            "mismatchLabelKeys": ["a"],
                        },
                    ]
                }
            },
            f"spec.affinity.podAntiAffinity.{_REQ}[0].matchLabelKeys: Forbidden: must not be specified when "
            "labelSelector is not set",
            f'spec.affinity.podAntiAffinity.{_REQ}[1].matchLabelKeys[0]: Invalid value: "a": '
            "exists in both matchLabelKeys and mismatchLabelKeys",
        ),
        case(
            "spreading has a skew, a key and an action, each pair once",
            {
                "spec.topologySpreadConstraints": [
                    {"maxSkew": 0, "whenUnsatisfiable": "Panic", "minDomains": 0, "nodeTaintsPolicy": "x"},
                    {"maxSkew": 1, "topologyKey": "t", "whenUnsatisfiable": "ScheduleAnyway"},
                    {
                        "maxSkew": 1,
                        "topologyKey": "t",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "matchLabelKeys": ["a"],
                    },
                ]
            },
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
            "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
            'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Panic": supported values: '
            '"DoNotSchedule", "ScheduleAnyway"',
            "spec.topologySpreadConstraints[0].minDomains: Invalid value: 0: must be greater than zero",
            "spec.topologySpreadConstraints[0].minDomains: Invalid value: 0: can only use minDomains if "
            "whenUnsatisfiable=DoNotSchedule, not Panic",
            'spec.topologySpreadConstraints[0].nodeTaintsPolicy: Unsupported value: "x": supported values: '
            '"Honor", "Ignore"',
            'spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: Duplicate value: "{t, '
            'ScheduleAnyway}"',
            "spec.topologySpreadConstraints[2].matchLabelKeys: Forbidden: must not be specified when labelSelector "
            "is not set",
        ),
    ],
    ids=str,
)
def test_placement(one: Case) -> None:
    check_pod(one)


_T = "spec.tolerations[0]"


def _toleration(promise: str, toleration: dict[str, Any], *errors: str, **facts: Any) -> Case:
    return case(promise, {"spec.tolerations": [toleration]}, *errors, **facts)


@pytest.mark.parametrize(
    "one",
    [
        _toleration("everything may be tolerated", {"operator": "Exists"}),
        _toleration("a number may be compared (KEP-5471)", {"key": "k", "operator": "Gt", "value": "-950"}),
        _toleration(
            "not while the gate is off",
            {"key": "k", "operator": "Lt", "value": "5"},
            f'{_T}.operator: Unsupported value: "Lt": supported values: "Equal", "Exists", "Lt", "Gt"',
            off=("TaintTolerationComparisonOperators",),
        ),
        _toleration(
            "an empty number is neither canonical nor a number",
            {"key": "k", "operator": "Gt"},
            f'{_T}.value: Invalid value: "": must be non-empty',
            f'{_T}.value: Invalid value: "": strconv.ParseInt: parsing "": invalid syntax',
        ),
        _toleration(
            "numbers fit into 64 bits",
            {"key": "k", "operator": "Gt", "value": "9223372036854775808"},
            f'{_T}.value: Invalid value: "9223372036854775808": strconv.ParseInt: parsing "9223372036854775808": '
            "value out of range",
        ),
        _toleration(
            "plus signs are not canonical",
            {"key": "k", "operator": "Gt", "value": "+5"},
            f'{_T}.value: Invalid value: "+5": must be a valid decimal integer in canonical form',
        ),
        _toleration(
            "seconds are for NoExecute",
            {"key": "k", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5},
            f"{_T}.effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set",
        ),
        _toleration(
            "values are labels, effects are known",
            {"key": "k", "value": "a b", "effect": "Never"},
            f'{_T}.operator: Invalid value: "a b": a valid label must be...',
            f'{_T}.effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", '
            '"NoExecute"',
        ),
    ],
    ids=str,
)
def test_tolerations(one: Case) -> None:
    check_pod(one)


_A = "metadata.annotations"
_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


@pytest.mark.parametrize(
    "one",
    [
        case(
            "a mirror pod is on a node and has no claims",
            {_A: {"kubernetes.io/config.mirror": "x"}, "spec.resourceClaims": [{"name": "a"}]},
            f'{_A}[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror pod '
            "annotation is set",
            ": Forbidden: static pods do not support resource claims",
        ),
        case(
            "the cost of a deletion is a number",
            {_A: {"controller.kubernetes.io/pod-deletion-cost": "+1"}},
            f'{_A}[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "+1": must be a 32bit integer',
        ),
        case(
            "without the gate nobody looks",
            {_A: {"controller.kubernetes.io/pod-deletion-cost": "+1"}},
            off=("PodDeletionCost",),
        ),
        case(
            "old seccomp annotations are profiles and agree with the field",
            {_A: {_SECCOMP: "localhost/../x"}, _SC: {"seccompProfile": {"type": "RuntimeDefault"}}},
            f"{_A}.{_SECCOMP}: Invalid value: \"../x\": must not contain '..'",
            f"{_SC}.seccompProfile.type: Forbidden: seccomp type in annotation and field must match",
        ),
        case(
            "old AppArmor annotations name a container and agree with the field",
            {
                _A: {f"{_APPARMOR}x": "magic", f"{_APPARMOR}c": "localhost/a"},
                f"{_C}.securityContext": {"appArmorProfile": {"type": "Localhost", "localhostProfile": "b"}},
            },
            f'{_A}[{_APPARMOR}x]: Invalid value: "x": container not found',
            f'{_A}[{_APPARMOR}x]: Invalid value: "magic": invalid AppArmor profile name: "magic"',
            f"{_C}.securityContext.appArmorProfile.localhostProfile: Forbidden: apparmor profile in annotation and "
            "field must match",
        ),
        case("annotations nobody knows are fine", {_A: {"example.com/x": "y"}}),
    ],
    ids=str,
)
def test_annotations(one: Case) -> None:
    check_pod(one)
