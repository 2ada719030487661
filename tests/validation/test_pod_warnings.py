"""What a pod's author is warned about."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.core_v1.pod import Pod, PodTemplate
from nodeward.validation.pod.warnings import pod_status_warnings
from nodeward.validation.registry import VALIDATORS
from tests.validation.pods import POD, pod_context
from tests.validation.tables import edited, read

_C = "spec.containers[0]"
_AFFINITY = "spec.affinity.nodeAffinity"
_REQ = "requiredDuringSchedulingIgnoredDuringExecution"
_PREF = "preferredDuringSchedulingIgnoredDuringExecution"
_ZONE = "failure-domain.beta.kubernetes.io/zone"


def _warnings(changes: dict[str, Any]) -> list[str]:
    warnings = VALIDATORS[Pod].warnings
    assert warnings is not None
    return warnings(read(Pod, edited(POD, changes)), None, pod_context())


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, [], id="a plain pod is no reason to warn"),
        pytest.param(
            {"metadata.name": "a.b"},
            [
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
                "a DNS label is recommended: [must not contain dots]"
            ],
            id="a name with dots is a surprising hostname",
        ),
        pytest.param(
            {
                "spec.nodeSelector": {_ZONE: "x"},
                _AFFINITY: {
                    _REQ: {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": _ZONE, "operator": "Exists"}]}]
                    },
                    _PREF: [
                        {
                            "weight": 1,
                            "preference": {
                                "matchExpressions": [{"key": "k", "operator": "In", "values": ["-"]}]
                            },
                        }
                    ],
                },
                "spec.topologySpreadConstraints": [{"topologyKey": _ZONE}],
            },
            [
                f'spec.nodeSelector[{_ZONE}]: deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
                f"{_AFFINITY}.{_REQ}.nodeSelectorTerms[0].matchExpressions[0].key: {_ZONE} is deprecated since "
                "v1.17; "
                'use "topology.kubernetes.io/zone" instead',
                f"{_AFFINITY}.{_PREF}[0].preference.matchExpressions[0].values[0]: - is invalid, a valid label "
                "must be an empty "
                "string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
                "alphanumeric "
                "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
                "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
                f"spec.topologySpreadConstraints[0].topologyKey: {_ZONE} is deprecated since v1.17; "
                'use "topology.kubernetes.io/zone" instead',
                "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
            ],
            id="labels of nodes have newer names",
        ),
        pytest.param(
            {
                "metadata.annotations": {
                    "scheduler.alpha.kubernetes.io/critical-pod": "",
                    "seccomp.security.alpha.kubernetes.io/pod": "x",
                }
            },
            [
                "metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; "
                'use the "priorityClassName" field instead',
                "metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; "
                'use the "seccompProfile" field instead',
            ],
            id="old annotations do nothing",
        ),
        pytest.param(
            {
                "spec.volumes": [
                    {"name": "a", "gitRepo": {}},
                    {"name": "b", "glusterfs": {}},
                    {"name": "c", "storageos": {}},
                ]
            },
            [
                "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
                "spec.volumes[1].glusterfs: deprecated in v1.25, non-functional in v1.26+",
                "spec.volumes[2].storageOS: deprecated in v1.22, non-functional in v1.25+",
            ],
            id="old volumes do nothing",
        ),
        pytest.param(
            {
                "spec.volumes": [
                    {"name": "m", "configMap": {"name": "x", "items": [{"path": "a"}, {"path": "a/b"}]}},
                    {
                        "name": "p",
                        "projected": {
                            "sources": [
                                {},
                                {"serviceAccountToken": {"path": "t"}},
                                {"secret": {"name": "s", "items": [{"path": "t/"}]}},
                            ]
                        },
                    },
                ]
            },
            [
                'volume "m" (ConfigMap "x"): overlapping paths: "a/b" with "a"',
                'volume "p" (Projected) has no sources provided',
                'volume "p" (Projected): overlapping paths: "t" (Secret "s") with "t" (ServiceAccountToken)',
            ],
            id="files overwrite each other",
        ),
        pytest.param(
            {
                "spec.hostAliases": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.1"}],
                "spec.imagePullSecrets": [{"name": "s"}, {"name": "s"}, {}],
            },
            [
                'spec.hostAliases[1].ip: duplicate ip "1.1.1.1"',
                'spec.imagePullSecrets[1].name: duplicate name "s"',
                'spec.imagePullSecrets[2].name: invalid empty name ""',
            ],
            id="entries are given twice",
        ),
        pytest.param(
            {f"{_C}.resources": {"limits": {"memory": "1500m"}}, "spec.overhead": {"memory": "100m"}},
            [
                'spec.overhead[memory]: fractional byte value "100m" is invalid, must be an integer',
                f'{_C}.resources.limits[memory]: fractional byte value "1500m" is invalid, must be an integer',
            ],
            id="nobody has half a byte",
        ),
        pytest.param(
            {
                f"{_C}.env": [
                    {"name": "A", "value": "1"},
                    {"name": "A", "value": "$(A)2"},
                    {"name": "A", "value": "3"},
                ]
            },
            [f'{_C}.env[2]: hides previous definition of "A", which may be dropped when using apply'],
            id="a variable hides another unless it extends it",
        ),
        pytest.param(
            {
                f"{_C}.ports": [
                    {"containerPort": 1, "protocol": "TCP", "name": "x"},
                    {"containerPort": 1, "protocol": "TCP", "hostPort": 9},
                    {"containerPort": 1, "protocol": "TCP", "hostPort": 9, "hostIP": "1.1.1.1"},
                    {"containerPort": 2, "protocol": "TCP", "hostIP": "1.1.1.1", "name": "x"},
                ]
            },
            [
                f"{_C}.ports[1]: overlapping port definition with {_C}.ports[0]",
                f"{_C}.ports[2]: overlapping port definition with {_C}.ports[0]",
                f"{_C}.ports[2]: dangerously ambiguous port definition with {_C}.ports[1]",
                f"{_C}.ports[3]: hostIP set without hostPort: "
                f"{{Name:x HostPort:0 ContainerPort:2 Protocol:TCP HostIP:1.1.1.1}}",
                f'{_C}.ports[3]: duplicate port name "x" with {_C}.ports[0], services and probes that select ports '
                "by name "
                f"will use {_C}.ports[0]",
            ],
            id="ports get in each other's way",
        ),
        pytest.param(
            {
                "spec.terminationGracePeriodSeconds": -1,
                "spec.affinity.podAffinity": {_REQ: [{"topologyKey": "t"}]},
                "spec.dnsConfig": {"nameservers": ["2001:DB8::1", "010.0.0.1", "::ffff:1.2.3.4"]},
            },
            [
                "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated "
                "as 1",
                f"spec.affinity.podAffinity.{_REQ}[0].labelSelector: a null labelSelector results in matching no pod",
                'spec.dnsConfig.nameservers[0]: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format '
                '("2001:db8::1")',
                'spec.dnsConfig.nameservers[1]: non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1"',
                'spec.dnsConfig.nameservers[2]: non-standard IP address "::ffff:1.2.3.4" is invalid: use "1.2.3.4"',
            ],
            id="values are taken for others",
        ),
    ],
)
def test_a_new_pod(changes: dict[str, Any], expected: list[str]) -> None:
    assert _warnings(changes) == expected


def test_a_changed_pod_is_not_warned_about_again() -> None:
    warnings = VALIDATORS[Pod].warnings
    assert warnings is not None
    pod = read(Pod, edited(POD, {"metadata.name": "a.b"}))
    assert warnings(pod, pod, pod_context()) == []


def test_a_template_is_warned_about_below_its_path() -> None:
    warnings = VALIDATORS[PodTemplate].warnings
    assert warnings is not None
    annotation = "container.apparmor.security.beta.kubernetes.io/c"
    template = read(
        PodTemplate,
        {"template": {"metadata": {"annotations": {annotation: "unconfined"}}, "spec": POD["spec"]}},
    )
    assert warnings(template, None, pod_context()) == [
        f"template.metadata.annotations[{annotation}]: deprecated since v1.30; "
        'use the "appArmorProfile" field instead'
    ]


def test_odd_addresses_in_a_status_are_warned_about() -> None:
    pod = read(Pod, {"status": {"podIPs": [{"ip": "010.0.0.1"}], "hostIPs": [{"ip": "10.0.0.1"}]}})
    assert pod_status_warnings(pod) == [
        'status.podIPs[0].ip: non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1"'
    ]
