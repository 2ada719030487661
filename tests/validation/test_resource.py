"""Devices: slices, claims, classes and taint rules: what is refused, and in which words (KEP-5471, KEP-5945)."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.resource_v1 import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from tests.validation.tables import (
    DROP,
    Case,
    case,
    check_create,
    check_status,
    check_update,
)

_R = "spec.devices.requests[0]"
CLAIM: dict[str, Any] = {
    "metadata": {"name": "c1", "namespace": "default"},
    "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}},
}
TEMPLATE: dict[str, Any] = {"metadata": CLAIM["metadata"], "spec": {"spec": CLAIM["spec"]}}
SLICE: dict[str, Any] = {
    "metadata": {"name": "s1"},
    "spec": {
        "driver": "gpu.example.com",
        "pool": {"name": "n1", "resourceSliceCount": 1},
        "nodeName": "n1",
        "devices": [{"name": "d0"}],
    },
}
CLASS: dict[str, Any] = {"metadata": {"name": "gpu.example.com"}, "spec": {}}
RULE: dict[str, Any] = {"metadata": {"name": "r"}, "spec": {"taint": {"key": "a", "effect": "NoSchedule"}}}
_RESULT = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "d0"}
_OPERATORS = 'supported values: "Equal", "Exists"'
_NO_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_NUMERIC = "TaintTolerationComparisonOperators"
_SKIP = "DRAOptionalNodePreparation"


def _selector(expression: str) -> list[dict[str, Any]]:
    return [{"cel": {"expression": expression}}]


@pytest.mark.parametrize(
    "one",
    [
        case("a plain claim is fine"),
        case(
            "expressions and operators are answered as Kubernetes 1.37 does",
            {
                f"{_R}.exactly.selectors": _selector("device.driver =="),
                f"{_R}.exactly.tolerations": [{"key": "a", "operator": "Gt", "value": "1"}],
            },
            f'{_R}.exactly.selectors[0].cel.expression: Invalid value: "device.driver ==": compilation failed: '
            "ERROR: <input>:1:17: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', "
            "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n"
            " | device.driver ==\n | ................^",
            f'{_R}.exactly.tolerations[0].operator: Unsupported value: "Gt": {_OPERATORS}',
        ),
        case(
            "with the gate numbers are compared",
            {f"{_R}.exactly.tolerations": [{"key": "a", "operator": "Gt", "value": "950"}]},
            gates=(_NUMERIC,),
        ),
        case(
            "numbers are written in one way",
            {
                f"{_R}.exactly.tolerations": [
                    {"key": "a", "operator": "Lt", "value": "0950"},
                    {"key": "a", "operator": "Lt", "value": "9223372036854775808"},
                ]
            },
            f'{_R}.exactly.tolerations[0].value: Invalid value: "0950": '
            "must be a valid decimal integer in canonical form",
            f'{_R}.exactly.tolerations[1].value: Invalid value: "9223372036854775808": must fit into 64 bits',
            gates=(_NUMERIC,),
        ),
        case(
            "tolerations are complete and of known effect",
            {f"{_R}.exactly.tolerations": [{}, {"operator": "Exists", "value": "x", "effect": "Maybe"}]},
            f'{_R}.exactly.tolerations[1].value: Invalid value: "x": must be empty for operator `Exists`',
            f'{_R}.exactly.tolerations[1].effect: Unsupported value: "Maybe": '
            'supported values: "NoExecute", "NoSchedule", "None"',
        ),
        case(
            "a request asks in one way",
            {f"{_R}.exactly": DROP},
            f"{_R}: Required value: exactly one of `exactly` or `firstAvailable` is required",
        ),
        case(
            "a request does not ask in two ways",
            {f"{_R}.firstAvailable": [{"name": "a", "deviceClassName": "b"}]},
            f"{_R}: Invalid value: null: "
            "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
        ),
        case(
            "a request names a class and how many",
            {f"{_R}.exactly": {"count": -1}, f"{_R}.name": "A"},
            f'{_R}.name: Invalid value: "A": a lowercase RFC 1123 label must consist of...',
            f"{_R}.exactly.deviceClassName: Required value",
            f"{_R}.exactly.count: Invalid value: -1: must be greater than zero",
        ),
        case(
            "all devices are not counted",
            {f"{_R}.exactly.allocationMode": "All", f"{_R}.exactly.count": 2},
            f"{_R}.exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'",
        ),
        case(
            "requests have names of their own",
            {"spec.devices.requests[1]": CLAIM["spec"]["devices"]["requests"][0]},
            'spec.devices.requests[1]: Duplicate value: "gpu"',
        ),
        case(
            "there are at most 32 requests",
            {
                "spec.devices.requests": [
                    {"name": f"r{i}", "exactly": {"deviceClassName": "a"}} for i in range(33)
                ]
            },
            "spec.devices.requests: Too many: 33: must have at most 32 items",
        ),
        case(
            "constraints speak of requests and of full names",
            {"spec.devices.constraints": [{"requests": ["x"], "matchAttribute": "numa"}, {}]},
            f'spec.devices.constraints[0].requests[0]: Invalid value: "x": {_NO_REQUEST}',
            'spec.devices.constraints[0].matchAttribute: Invalid value: "numa": '
            "a fully qualified name must be a domain and a name separated by a slash",
            "spec.devices.constraints[1].matchAttribute: Required value",
        ),
        case(
            "configuration is an object of a driver",
            {"spec.devices.config": [{"opaque": {"parameters": [1]}}, {}]},
            "spec.devices.config[0].opaque.driver: Required value",
            'spec.devices.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object',
            "spec.devices.config[1].opaque: Required value",
        ),
        case(
            "derived attributes are used by a constraint",
            {f"{_R}.exactly.derivedAttributes": [{"name": "a.example.com/b", "expression": "1 +"}]},
            f'{_R}.exactly.derivedAttributes[0].name: Invalid value: "a.example.com/b": must be referenced by '
            "at least one matchAttribute or distinctAttribute constraint targeting this request",
            f'{_R}.exactly.derivedAttributes[0].expression: Invalid value: "1 +": compilation failed: ...',
        ),
    ],
    ids=str,
)
def test_a_new_claim(one: Case) -> None:
    check_create(ResourceClaim, CLAIM, one)


def test_alternatives_are_named_with_their_request() -> None:
    change = {
        f"{_R}.exactly": DROP,
        f"{_R}.firstAvailable": [{"name": "big", "deviceClassName": "a"}],
        "spec.devices.constraints": [
            {"requests": ["gpu/big", "gpu/small"], "matchAttribute": "a.example.com/b"}
        ],
    }
    error = f'spec.devices.constraints[0].requests[1]: Invalid value: "gpu/small": {_NO_REQUEST}'
    check_create(ResourceClaim, CLAIM, case("named", change, error))


def test_the_spec_of_a_claim_never_changes() -> None:
    change = case("no", {f"{_R}.name": "other"}, "spec: Invalid value: null: field is immutable")
    check_update(ResourceClaim, CLAIM, change)


def test_a_template_carries_labels_and_a_good_claim() -> None:
    check_create(ResourceClaimTemplate, TEMPLATE, case("fine", {"spec.metadata.labels": {"a": "b"}}))
    bad = {"spec.metadata.name": "x", "spec.spec.devices.requests[0].exactly": DROP}
    errors = (
        "spec.metadata.name: Forbidden: cannot be set",
        "spec.spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required",
    )
    check_create(ResourceClaimTemplate, TEMPLATE, case("bad", bad, *errors))


def _allocated(**more: Any) -> dict[str, Any]:
    return {"status": {"allocation": {"devices": {"results": [{**_RESULT, **more}]}}}}


_AT = "status.allocation.devices.results[0]"


@pytest.mark.parametrize(
    "one",
    [
        case("an allocation is fine", _allocated()),
        case("an allocation can be taken away", {"status": {}}, before=_allocated()),
        case(
            "an allocation is not exchanged",
            _allocated(device="d1"),
            "status.allocation: Invalid value: null: field cannot be modified once set",
            before=_allocated(),
        ),
        case(
            "results are devices for requests",
            _allocated(request="x", pool="", device="D", shareID="1"),
            f'{_AT}.request: Invalid value: "x": {_NO_REQUEST}',
            f"{_AT}.pool: Required value",
            f'{_AT}.device: Invalid value: "D": a lowercase RFC 1123 label must consist of...',
            f'{_AT}.shareID: Invalid value: "1": must be a lowercase UUID in 8-4-4-4-12 format',
        ),
        case(
            "with the gate off nobody starts to skip node operations",
            _allocated(skipNodeOperations=True),
            f"{_AT}.skipNodeOperations: Forbidden: "
            "may only be set when the DRAOptionalNodePreparation feature gate is enabled",
        ),
        case(
            "with the gate on operations may be skipped", _allocated(skipNodeOperations=True), gates=(_SKIP,)
        ),
        case("not skipping needs no gate", _allocated(skipNodeOperations=False)),
        case(
            "users are users of an allocation",
            {"status": {"reservedFor": [{"resource": "pods", "name": "a", "uid": "1"}]}},
            "status.reservedFor: Forbidden: may not be specified when `allocated` is not set",
        ),
        case(
            "users are named and told apart",
            {**_allocated(), "status.reservedFor": [{}, {"resource": "pods", "name": "a"}]},
            "status.reservedFor[0].resource: Required value",
            "status.reservedFor[0].name: Required value",
            "status.reservedFor[0].uid: Required value",
            "status.reservedFor[1].uid: Required value",
            'status.reservedFor[1]: Duplicate value: ""',
        ),
        case(
            "a claim that goes gets no new users",
            {"status.reservedFor": [{"resource": "pods", "name": "a", "uid": "1"}]},
            "status.reservedFor: Forbidden: "
            "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set",
            before={**_allocated(), "metadata.deletionTimestamp": "2026-01-01T00:00:00Z"},
        ),
        case(
            "the status of a device is that of an allocated one",
            {"status.devices": [{**{k: v for k, v in _RESULT.items() if k != "request"}, "device": "d9"}]},
            'status.devices[0]: Invalid value: {"driver":"gpu.example.com","pool":"n1","device":"d9","ShareID":""}: '
            "must be an allocated device in the claim",
            before=_allocated(),
        ),
        case(
            "addresses of a device come with their network",
            {
                "status.devices": [
                    {
                        **{k: v for k, v in _RESULT.items() if k != "request"},
                        "networkData": {"ips": ["192.0.2.1", "2001:DB8::1/64", "192.0.2.5/24"]},
                    }
                ]
            },
            'status.devices[0].networkData.ips[0]: Invalid value: "192.0.2.1": '
            "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)",
            'status.devices[0].networkData.ips[1]: Invalid value: "2001:DB8::1/64": '
            'must be in canonical form ("2001:db8::1/64")',
            before=_allocated(),
        ),
    ],
    ids=str,
)
def test_the_status_of_a_claim(one: Case) -> None:
    check_status(ResourceClaim, CLAIM, one)


_D = "spec.devices[0]"
_CAPACITY = "spec.devices[0].capacity"


@pytest.mark.parametrize(
    "one",
    [
        case("a plain slice is fine"),
        case(
            "devices are somewhere",
            {"spec.nodeName": DROP},
            "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, "
            "`perDeviceNodeSelection` is required",
        ),
        case(
            "devices are in one place",
            {"spec.allNodes": True},
            'spec: Invalid value: "{`nodeName`, `allNodes`}": exactly one of `nodeName`, `nodeSelector`, '
            "`allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set",
        ),
        case(
            "a pool has a name and slices",
            {"spec.pool": {"name": "", "generation": -1}},
            "spec.pool.name: Required value",
            "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
            "spec.pool.generation: Invalid value: -1: must be greater than or equal to zero",
        ),
        case(
            "devices have names of their own",
            {"spec.devices[1]": {"name": "d0"}},
            'spec.devices[1]: Duplicate value: "d0"',
        ),
        case(
            "there are at most 128 devices",
            {"spec.devices": [{"name": f"d{i}"} for i in range(129)]},
            "spec.devices: Too many: 129: must have at most 128 items",
        ),
        case(
            "and at most 64 with taints",
            {
                "spec.devices": [
                    {"name": f"d{i}", "taints": [{"key": "a", "effect": "None"}]} for i in range(65)
                ]
            },
            "spec.devices: Too many: 65: must have at most 64 items",
        ),
        case(
            "attributes have one value each",
            {f"{_D}.attributes": {"model": {}, "size": {"int": 1, "bool": True}}},
            f'{_D}.attributes[model]: Invalid value: "": must specify one of: '
            "`int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`",
            f'{_D}.attributes[size]: Invalid value: "{{int, bool}}": must specify exactly one of: '
            "`int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`",
        ),
        case(
            "attributes are named by identifiers, versions are versions",
            {f"{_D}.attributes": {"a-b": {"version": "1.2"}, "/c": {"string": "x" * 65}}},
            f'{_D}.attributes: Invalid value: "a-b": a valid C identifier must start with...',
            f'{_D}.attributes[a-b].version: Invalid value: "1.2": '
            "must be a string compatible with semver.org spec 2.0.0",
            f'{_D}.attributes: Invalid value: "": the domain must not be empty',
            f"{_D}.attributes[/c].string: Too long: may not be more than 64 bytes",
        ),
        case(
            "a device has at most 32 attributes and capacities",
            {
                f"{_D}.attributes": {f"a{i}": {"int": i} for i in range(30)},
                _CAPACITY: {f"c{i}": {"value": "1"} for i in range(3)},
            },
            f"{_D}: Invalid value: 33: the total number of attributes and capacities must not exceed 32",
        ),
        case(
            "policies of requests need many allocations",
            {_CAPACITY: {"mem": {"value": "8Gi", "requestPolicy": {"default": "1Gi"}}}},
            f"{_CAPACITY}[mem].requestPolicy: Forbidden: allowMultipleAllocations must be true",
        ),
        case(
            "a range starts, ends and steps inside the capacity",
            {
                f"{_D}.allowMultipleAllocations": True,
                _CAPACITY: {
                    "mem": {
                        "value": "8",
                        "requestPolicy": {
                            "default": "2",
                            "validRange": {"min": "1", "max": "9", "step": "3"},
                        },
                    }
                },
            },
            f'{_CAPACITY}[mem].requestPolicy.validRange.max: Invalid value: "9": max is larger than capacity value: 8',
            f'{_CAPACITY}[mem].requestPolicy.validRange.step: Invalid value: "2": '
            "value is not a multiple of a given step (3) from (1)",
            f'{_CAPACITY}[mem].requestPolicy.validRange.step: Invalid value: "9": '
            "value is not a multiple of a given step (3) from (1)",
        ),
        case(
            "listed values are sorted and hold the default",
            {
                f"{_D}.allowMultipleAllocations": True,
                _CAPACITY: {
                    "mem": {"value": "8", "requestPolicy": {"default": "3", "validValues": ["2", "1", "9"]}}
                },
            },
            f'{_CAPACITY}[mem].requestPolicy.validValues[1]: Invalid value: "1": '
            "values must be sorted in ascending order",
            f'{_CAPACITY}[mem].requestPolicy.validValues[2]: Invalid value: "9": '
            "option is larger than capacity value: 8",
            f'{_CAPACITY}[mem].requestPolicy.validValues: Invalid value: "3": '
            "default value is not valid according to the requestPolicy",
        ),
        case(
            "counters are shared or used, not both",
            {"spec.sharedCounters": [{"name": "set", "counters": {}}]},
            'spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed',
            "spec.sharedCounters[0].counters: Required value",
        ),
        case(
            "a device says itself where it is only if the slice says so",
            {f"{_D}.nodeName": "n1"},
            f"{_D}: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if "
            "`perDeviceNodeSelection` is set to true in the ResourceSlice spec",
        ),
        case(
            "binding conditions come in pairs",
            {f"{_D}.bindingConditions": ["a", "a"]},
            f'{_D}.bindingConditions[1]: Duplicate value: "a"',
            f"{_D}.bindingFailureConditions: Invalid value: null: "
            "bindingFailureConditions are required to use bindingConditions",
        ),
        case(
            "taints have a key and an effect",
            {f"{_D}.taints": [{}]},
            f'{_D}.taints[0].key: Invalid value: "": name part must be non-empty',
            f'{_D}.taints[0].key: Invalid value: "": name part must consist of...',
            f"{_D}.taints[0].effect: Required value",
        ),
    ],
    ids=str,
)
def test_a_new_slice(one: Case) -> None:
    check_create(ResourceSlice, SLICE, one)


def test_what_a_slice_is_about_never_changes() -> None:
    change = {"spec.nodeName": "n2", "spec.driver": "x.example.com", "spec.pool.name": "n2"}
    errors = (
        'spec.pool.name: Invalid value: "n2": field is immutable',
        'spec.driver: Invalid value: "x.example.com": field is immutable',
        'spec.nodeName: Invalid value: "n2": field is immutable',
    )
    check_update(ResourceSlice, SLICE, case("no", change, *errors))


_FIELD = "spec.skipNodeOperations"
_CLOSED = f"{_FIELD}: Forbidden: may only be set when the {_SKIP} feature gate is enabled"


@pytest.mark.parametrize(
    "one",
    [
        case("new and valid: nothing is skipped", {_FIELD: False}),
        case("new and invalid: skipping is new", {_FIELD: True}, _CLOSED),
        case("new and invalid in the form of a list", {_FIELD: ["*"]}, _CLOSED),
        case("old and valid: still nothing is skipped", {"spec.pool.generation": 1}, before={_FIELD: False}),
        case("old and invalid but unchanged", {"spec.pool.generation": 1}, before={_FIELD: True}),
        case("old and invalid may be given up", {_FIELD: DROP}, before={_FIELD: True}),
        case("with the gate on it is stored", {_FIELD: True}, gates=(_SKIP,)),
        case(
            "preparing is not skipped alone",
            {_FIELD: ["NodePrepareResources"]},
            'spec.skipNodeOperations: Invalid value: ["NodePrepareResources"]: '
            "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped",
            gates=(_SKIP,),
        ),
        case(
            "operations are known and named once",
            {_FIELD: ["*", "*", "Reboot"]},
            'spec.skipNodeOperations[1]: Duplicate value: "*"',
            'spec.skipNodeOperations[2]: Unsupported value: "Reboot": '
            'supported values: "*", "NodePrepareResources", "NodeUnprepareResources"',
            gates=(_SKIP,),
        ),
    ],
    ids=str,
)
def test_skipping_node_operations_is_ratcheted(one: Case) -> None:
    check_update(ResourceSlice, SLICE, one)


def test_a_new_slice_does_not_skip_without_the_gate() -> None:
    check_create(ResourceSlice, SLICE, case("no", {_FIELD: True}, _CLOSED))


@pytest.mark.parametrize(
    "one",
    [
        case("a plain class is fine", {"spec.selectors": _selector("device.driver == 'a'")}),
        case(
            "selectors are expressions",
            {"spec.selectors": [{}, *_selector("(")]},
            "spec.selectors[0].cel: Required value",
            'spec.selectors[1].cel.expression: Invalid value: "(": compilation failed: ERROR: <input>:1:2: '
            "Syntax error: ...",
        ),
        case(
            "selectors give a bool, in time",
            {
                "spec.selectors": [
                    *_selector("device.driver"),
                    *_selector("device.capacity['a'].b > 1"),
                    *_selector("lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))"),
                    *_selector("int('x') == 1"),
                    *_selector("a" * 10241),
                ]
            },
            'spec.selectors[0].cel.expression: Invalid value: "device.driver": must evaluate to bool or the unknown '
            "type, not string",
            "spec.selectors[1].cel.expression: Invalid value: \"device.capacity['a'].b > 1\": compilation failed: "
            "ERROR: <input>:1:24: found no matching overload for '_>_' applied to '(kubernetes.Quantity, int)'...",
            "spec.selectors[2].cel.expression: Forbidden: too complex, exceeds cost limit",
            "spec.selectors[3].cel.expression: Internal error: program instantiation failed: type conversion error "
            "from 'string' to 'int'",
            "spec.selectors[4].cel.expression: Too long: may not be more than 10240 bytes",
        ),
        case(
            "lists of attributes have a gate",
            {"spec.selectors": _selector("device.attributes['a'].b.exists(x, x == 1)")},
            "spec.selectors[0].cel.expression: Invalid value: \"device.attributes['a'].b.exists(x, x == 1)\": "
            "compilation failed: ERROR: <input>:1:23: expression of type 'any' cannot be range of a comprehension...",
        ),
        case(
            "and are expressions with it",
            {"spec.selectors": _selector("device.attributes['a'].b.includes(1)")},
            gates=("DRAListTypeAttributes",),
        ),
        case(
            "shared devices have a gate too",
            {"spec.selectors": _selector("device.allowMultipleAllocations")},
            'spec.selectors[0].cel.expression: Invalid value: "device.allowMultipleAllocations": '
            "compilation failed: ERROR: <input>:1:7: undefined field 'allowMultipleAllocations'...",
            off=("DRAConsumableCapacity",),
        ),
        case("a class can stand for a resource", {"spec.extendedResourceName": "example.com/gpu"}),
        case(
            "but not for one of Kubernetes' own",
            {"spec.extendedResourceName": "cpu"},
            'spec.extendedResourceName: Invalid value: "cpu": '
            "a name must be a domain-prefixed path, such as 'example.com/my-prop'",
        ),
    ],
    ids=str,
)
def test_a_new_class(one: Case) -> None:
    check_create(DeviceClass, CLASS, one)


def test_an_expression_that_was_stored_stays() -> None:
    old = {"spec.selectors": _selector("(")}
    check_update(DeviceClass, CLASS, case("kept", {"metadata.labels": {"a": "b"}}, before=old))


@pytest.mark.parametrize(
    "one",
    [
        case("a plain rule is fine"),
        case(
            "selectors are names",
            {"spec.deviceSelector": {"driver": "A B", "pool": "", "device": "x"}},
            'spec.deviceSelector.driver: Invalid value: "A B": a lowercase RFC 1123 subdomain must consist of...',
            "spec.deviceSelector.pool: Required value",
        ),
        case(
            "effects are known ones",
            {"spec.taint.effect": "x"},
            'spec.taint.effect: Unsupported value: "x": supported values: "NoExecute", "NoSchedule", "None"',
        ),
    ],
    ids=str,
)
def test_a_new_taint_rule(one: Case) -> None:
    check_create(DeviceTaintRule, RULE, one)
