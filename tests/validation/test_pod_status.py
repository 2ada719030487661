"""What a pod's status may say."""

from __future__ import annotations

import pytest

from nodeward.api.core_v1.pod import Pod
from nodeward.validation.registry import VALIDATORS
from tests.validation.pods import pod_context, stored_pods
from tests.validation.tables import Case, case, check

_S = "status.containerStatuses"
_ENDED = [{"name": "c", "state": {"terminated": {"exitCode": 1}}}]
_RUNS = [{"name": "c", "state": {"running": {}}}]
_STAYS = f"{_S}[0].state: Forbidden: may not be transitioned to non-terminated state"


@pytest.mark.parametrize(
    "one",
    [
        case("a phase may be reported", {"status.phase": "Running"}),
        case(
            "conditions have types",
            {"status.conditions": [{"type": "a b", "observedGeneration": -1}, {"type": "Ready"}]},
            "status.conditions[0].observedGeneration: Invalid value: -1: must be a non-negative integer",
            'status.conditions[0].Type: Invalid value: "a b": name part must consist...',
        ),
        case(
            "binding goes elsewhere",
            {"spec.nodeName": "n"},
            "status.nodeName: Forbidden: may not be changed directly",
        ),
        case(
            "a pod that is bound is not nominated",
            {"status.nominatedNodeName": "m"},
            "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node",
            before={"spec.nodeName": "n"},
        ),
        case(
            "the class stays",
            {"status.qosClass": "Guaranteed"},
            'status.qosClass: Invalid value: "Guaranteed": field is immutable',
            before={"status.qosClass": "Burstable"},
        ),
        case("a container that is restarted may run again", {_S: _RUNS}, before={_S: _ENDED}),
        case(
            "one that is not stays ended",
            {_S: _RUNS},
            _STAYS,
            before={_S: _ENDED, "spec.restartPolicy": "Never"},
        ),
        case(
            "a failure may be tried again",
            {_S: _RUNS},
            before={_S: _ENDED, "spec.restartPolicy": "OnFailure"},
        ),
        case(
            "a container's own rules decide",
            {_S: _RUNS},
            before={
                _S: _ENDED,
                "spec.restartPolicy": "Never",
                "spec.containers[0].restartPolicy": "Never",
                "spec.containers[0].restartPolicyRules": [
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}
                ],
            },
        ),
        case(
            "an address is given twice",
            {"status.podIP": "10.0.0.1", "status.podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]},
        ),
        case(
            "there is one address of each family",
            {"status.podIP": "10.0.0.1", "status.podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]},
            'status.podIPs: Invalid value: [{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}]: may specify no more than one IP '
            "for each IP family",
        ),
        case(
            "addresses of the host fit together",
            {"status.hostIP": "10.0.0.1", "status.hostIPs": [{"ip": "10.0.0.2"}]},
            'status.hostIPs[0].ip: Invalid value: "10.0.0.2": must be equal to `hostIP`',
        ),
        case(
            "claims are those of the pod",
            {"status.resourceClaimStatuses": [{"name": "x", "resourceClaimName": "Y"}]},
            'status.resourceClaimStatuses[0].name: Invalid value: "x": must match the name of an entry in '
            "`spec.resourceClaims`",
            'status.resourceClaimStatuses[0].resourceClaimName: Invalid value: "Y": a lowercase RFC 1123 '
            "subdomain...",
        ),
        case(
            "claims made for extended resources name who asked",
            {
                "status.extendedResourceClaimStatus": {
                    "requestMappings": [{"containerName": "x", "resourceName": "r", "requestName": "q"}]
                }
            },
            'status.extendedResourceClaimStatus.requestMappings[0].containerName: Invalid value: "x": '
            "must match the name of an entry in spec.initContainers.name or spec.containers.name",
            "status.extendedResourceClaimStatus.resourceClaimName: Required value",
        ),
        case(
            "what claims take from the node is named and positive",
            {
                "status.nodeAllocatableResourceClaimStatuses": [
                    {
                        "resourceClaimName": "x",
                        "mapping": [{"name": "gpu", "quantity": "-1"}],
                        "overhead": [{"name": "cpu"}],
                    }
                ]
            },
            'status.nodeAllocatableResourceClaimStatuses[0].resourceClaimName: Invalid value: "x": no mapping '
            "found in pod reference",
            'status.nodeAllocatableResourceClaimStatuses[0].mapping[0].name: Invalid value: "gpu": must be a node '
            "allocatable resource name",
            'status.nodeAllocatableResourceClaimStatuses[0].mapping[0].quantity: Invalid value: "-1": must be '
            "non-negative",
            'status.nodeAllocatableResourceClaimStatuses[0].overhead[0]: Invalid value: "": '
            "at least one of perPod or perContainer must be set",
        ),
        case(
            "users are numbers",
            {_S: [{"name": "c", "user": {"linux": {"uid": -1, "gid": -1}}}]},
            f"{_S}[0].user.linux.uid: Invalid value: -1: must be between 0 and 4294967295, inclusive",
            f"{_S}[0].user.linux.gid: Invalid value: -1: must be between 0 and 2147483647, inclusive",
        ),
        case(
            "health is of devices the container asked for",
            {
                _S: [
                    {
                        "name": "c",
                        "allocatedResourcesStatus": [
                            {"name": "gpu", "resources": [{"resourceID": "1", "health": "Sick"}]}
                        ],
                    }
                ]
            },
            f'{_S}[0].allocatedResourcesStatus[0].name: Invalid value: "gpu": must match one of the container\'s '
            "resource requests",
            f'{_S}[0].allocatedResourcesStatus[0].resources[0].health: Unsupported value: "Sick": '
            'supported values: "Healthy", "Unhealthy", "Unknown"',
        ),
        case(
            "health of volumes is of the pod's volumes",
            {
                "status.volumeHealth": [
                    {"name": "v", "healthConditions": [{"status": "Tired", "reason": "a b"}]}
                ]
            },
            'status.volumeHealth[0].name: Not found: "v"',
            'status.volumeHealth[0].healthConditions[0].status: Unsupported value: "Tired": '
            'supported values: "DataLoss", "Degraded", "Inaccessible"',
            'status.volumeHealth[0].healthConditions[0].reason: Invalid value: "a b": a condition reason must '
            "start...",
        ),
    ],
    ids=str,
)
def test_status(one: Case) -> None:
    new, old = stored_pods(one)
    status = VALIDATORS[Pod].status
    assert status is not None
    check(status(new, old, pod_context(one)), one.errors)
