"""Services, endpoints and endpoint slices: what is refused, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.core_v1.service import Endpoints, Service
from nodeward.api.discovery_v1 import EndpointSlice
from nodeward.validation.registry import VALIDATORS
from tests.validation.tables import (
    Case,
    case,
    check_create,
    check_status,
    check_update,
    context,
    defaulted,
    edited,
)

_META = {"name": "web", "namespace": "default"}
SERVICE: dict[str, Any] = {"metadata": _META, "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}}
WITH_IP = edited(
    SERVICE, {"spec.clusterIP": "10.0.0.1", "spec.clusterIPs": ["10.0.0.1"], "spec.ipFamilies": ["IPv4"]}
)
_BALANCED = "may only be used when `type` is 'LoadBalancer'"
_IP_RULE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


@pytest.mark.parametrize(
    "one",
    [
        case("a plain service is fine"),
        case("names may start with a digit since 1.36", {"metadata.name": "1web"}),
        case(
            "names of services were stricter before",
            {"metadata.name": "1web"},
            'metadata.name: Invalid value: "1web": a DNS-1035 label must consist of...',
            off=("RelaxedServiceNameValidation",),
        ),
        case("ports are needed", {"spec.ports": []}, "spec.ports: Required value"),
        case(
            "a headless service needs none",
            {"spec.ports": [], "spec.clusterIP": "None", "spec.clusterIPs": ["None"]},
        ),
        case(
            "ports are numbers or names",
            {"spec.ports": [{"port": 0, "targetPort": "WEB", "protocol": "HTTP", "appProtocol": "a b"}]},
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            'spec.ports[0].protocol: Unsupported value: "HTTP": supported values: "SCTP", "TCP", "UDP"',
            'spec.ports[0].targetPort: Invalid value: "WEB": '
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
            'spec.ports[0].targetPort: Invalid value: "WEB": must contain at least one letter (a-z)',
            'spec.ports[0].appProtocol: Invalid value: "a b": name part must consist of...',
        ),
        case(
            "several ports have names, and differ",
            {"spec.ports": [{"port": 80}, {"port": 80, "name": "a"}, {"port": 81, "name": "a"}]},
            "spec.ports[0].name: Required value",
            'spec.ports[2].name: Duplicate value: "a"',
            'spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,'
            '"TargetPort":0,"NodePort":0}',
        ),
        case(
            "node ports belong to types that have them",
            {"spec.ports[0].nodePort": 30000},
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        case(
            "node ports differ",
            {
                "spec.type": "NodePort",
                "spec.ports": [
                    {"port": 1, "name": "a", "nodePort": 30000},
                    {"port": 2, "name": "b", "nodePort": 30000},
                ],
            },
            "spec.ports[1].nodePort: Duplicate value: 30000",
        ),
        case(
            "types are known ones",
            {"spec.type": "Magic"},
            'spec.type: Unsupported value: "Magic": '
            'supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"',
        ),
        case(
            "a name outside needs no ports",
            {"spec": {"type": "ExternalName", "externalName": "example.com."}},
        ),
        case(
            "a name outside is needed",
            {"spec": {"type": "ExternalName"}},
            "spec.externalName: Required value",
        ),
        case(
            "a name outside has no addresses",
            {
                "spec.type": "ExternalName",
                "spec.externalName": "a.b",
                "spec.clusterIP": "None",
                "spec.clusterIPs": ["None"],
            },
            "spec.clusterIPs: Forbidden: may not be set for ExternalName services",
        ),
        case(
            "a headless service has no node ports",
            {"spec.type": "NodePort", "spec.clusterIP": "None", "spec.clusterIPs": ["None"]},
            "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services",
        ),
        case(
            "addresses are addresses, of families that fit",
            {
                "spec.clusterIP": "10.0.0.1",
                "spec.clusterIPs": ["10.0.0.1"],
                "spec.ipFamilies": ["IPv6", "IPv6", "IPv9"],
            },
            'spec.ipFamilies[1]: Duplicate value: "IPv6"',
            'spec.ipFamilies[2]: Unsupported value: "IPv9": supported values: "IPv4", "IPv6"',
            'spec.clusterIPs[0]: Invalid value: "10.0.0.1": expected an IPv6 value as indicated by `ipFamilies[0]`',
        ),
        case(
            "an address is not text",
            {"spec.clusterIP": "x", "spec.clusterIPs": ["x"]},
            f'spec.clusterIPs[0]: Invalid value: "x": {_IP_RULE}',
        ),
        case(
            "two addresses are of two families",
            {"spec.clusterIP": "10.0.0.1", "spec.clusterIPs": ["10.0.0.1", "10.0.0.2"]},
            'spec.clusterIPs: Invalid value: ["10.0.0.1","10.0.0.2"]: '
            "may specify no more than one IP for each IP family",
        ),
        case(
            "the first address is the address",
            {"spec.clusterIP": "10.0.0.2", "spec.clusterIPs": ["10.0.0.1"]},
            'spec.clusterIPs: Invalid value: ["10.0.0.1"]: first value must match `clusterIP`',
        ),
        case(
            "addresses have no zeros in front",
            {"spec.externalIPs": ["010.0.0.1", "127.0.0.1"]},
            'spec.externalIPs[0]: Invalid value: "010.0.0.1": must not have leading 0s',
            'spec.externalIPs[1]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
        ),
        case(
            "older servers took zeros",
            {"spec.externalIPs": ["010.0.0.1"]},
            off=("StrictIPCIDRValidation",),
        ),
        case(
            "affinity lasts at most a day",
            {
                "spec.sessionAffinity": "ClientIP",
                "spec.sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 86401}},
            },
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: "
            "must be greater than 0 and less than 86400",
        ),
        case(
            "what is for load balancers is for load balancers",
            {
                "spec.loadBalancerClass": "x",
                "spec.loadBalancerSourceRanges": ["10.0.0.0/8"],
                "spec.allocateLoadBalancerNodePorts": True,
            },
            f"spec.LoadBalancerSourceRanges: Forbidden: {_BALANCED}",
            f"spec.allocateLoadBalancerNodePorts: Forbidden: {_BALANCED}",
            f"spec.loadBalancerClass: Forbidden: {_BALANCED}",
        ),
        case(
            "ranges are networks",
            {"spec.type": "LoadBalancer", "spec.loadBalancerSourceRanges": ["10.0.0.1/8", "x"]},
            'spec.LoadBalancerSourceRanges[0]: Invalid value: "10.0.0.1/8": '
            "must not have bits set beyond the prefix length",
            'spec.LoadBalancerSourceRanges[1]: Invalid value: "x": '
            "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        ),
        case(
            "traffic from outside comes to what is outside",
            {"spec.externalTrafficPolicy": "Local"},
            'spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services',
        ),
        case(
            "a local load balancer is health-checked",
            {"spec.type": "LoadBalancer", "spec.externalTrafficPolicy": "Local"},
            "spec.healthCheckNodePort: Required value",
        ),
        case(
            "distribution is by known rules",
            {"spec.trafficDistribution": "PreferFar"},
            'spec.trafficDistribution: Unsupported value: "PreferFar": '
            'supported values: "PreferClose", "PreferSameZone", "PreferSameNode"',
        ),
    ],
    ids=str,
)
def test_a_new_service(one: Case) -> None:
    check_create(Service, SERVICE, one)


@pytest.mark.parametrize(
    "one",
    [
        case("ports and selector may change", {"spec.ports": [{"port": 81}], "spec.selector": {}}),
        case(
            "the address stays",
            {"spec.clusterIP": "10.0.0.2", "spec.clusterIPs": ["10.0.0.2"]},
            'spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set',
        ),
        case(
            "the address is not given up",
            {"spec.clusterIP": "", "spec.clusterIPs": []},
            "spec.clusterIPs[0]: Invalid value: []: primary clusterIP can not be unset",
        ),
        case(
            "a second address is won",
            {"spec.clusterIPs": ["10.0.0.1", "fd00::1"], "spec.ipFamilies": ["IPv4", "IPv6"]},
        ),
        case(
            "a service can become a name outside", {"spec": {"type": "ExternalName", "externalName": "a.b"}}
        ),
    ],
    ids=str,
)
def test_a_changed_service(one: Case) -> None:
    check_update(Service, WITH_IP, one)


def test_a_second_address_is_given_up_by_saying_so() -> None:
    dual = edited(WITH_IP, {"spec.clusterIPs": ["10.0.0.1", "fd00::1"], "spec.ipFamilies": ["IPv4", "IPv6"]})
    single = {"spec.clusterIPs": ["10.0.0.1"], "spec.ipFamilies": ["IPv4"]}
    errors = [
        'spec.ipFamilyPolicy: Invalid value: "PreferDualStack": '
        f"must be set to 'SingleStack' when releasing the secondary {what}"
        for what in ("clusterIP", "ipFamily")
    ]
    silently = {**single, "spec.ipFamilyPolicy": "PreferDualStack"}
    check_update(Service, dual, case("silently", silently, *errors))
    check_update(Service, dual, case("said", {**single, "spec.ipFamilyPolicy": "SingleStack"}))


def test_the_class_of_a_load_balancer_stays() -> None:
    balanced = edited(WITH_IP, {"spec.type": "LoadBalancer", "spec.loadBalancerClass": "a.example.com/b"})
    error = 'spec.loadBalancerClass: Invalid value: "a.example.com/c": may not change once set'
    check_update(Service, balanced, case("stays", {"spec.loadBalancerClass": "a.example.com/c"}, error))


@pytest.mark.parametrize(
    "one",
    [
        case(
            "only load balancers have an ingress",
            {"status.loadBalancer.ingress": [{"ip": "192.0.2.1"}]},
            "status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'",
        ),
        case(
            "an ingress is an address or a name",
            {
                "status.loadBalancer.ingress": [
                    {"ip": "x"},
                    {"hostname": "192.0.2.1"},
                    {"hostname": "a", "ipMode": "VIP"},
                ]
            },
            f'status.loadBalancer.ingress[0].ip: Invalid value: "x": {_IP_RULE}',
            'status.loadBalancer.ingress[1].hostname: Invalid value: "192.0.2.1": '
            "must be a DNS name, not an IP address",
            "status.loadBalancer.ingress[2].ipMode: Forbidden: may not be specified when `ip` is not set",
            before={"spec.type": "LoadBalancer"},
        ),
    ],
    ids=str,
)
def test_the_status_of_a_service(one: Case) -> None:
    check_status(Service, SERVICE, one)


def test_a_service_says_what_nobody_will_heed() -> None:
    obj = defaulted(
        Service,
        edited(SERVICE, {"spec.externalIPs": ["192.0.2.1"], "spec.trafficDistribution": "PreferClose"}),
    )
    warnings = VALIDATORS[Service].warnings
    assert warnings is not None
    assert warnings(obj, None, context()) == [
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
        'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"',
    ]


ENDPOINTS: dict[str, Any] = {
    "metadata": _META,
    "subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}],
}


@pytest.mark.parametrize(
    "one",
    [
        case("plain endpoints are fine"),
        case(
            "a subset has addresses",
            {"subsets": [{}]},
            "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`",
        ),
        case(
            "addresses can be reached, nodes are named",
            {"subsets[0].addresses": [{"ip": "169.254.1.1", "nodeName": "A", "hostname": "a.b"}]},
            'subsets[0].addresses[0].hostname: Invalid value: "a.b": must not contain dots',
            'subsets[0].addresses[0].nodeName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of...',
            'subsets[0].addresses[0].ip: Invalid value: "169.254.1.1": '
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
        ),
        case(
            "several ports have names",
            {"subsets[0].ports": [{"port": 80}, {"port": 0, "name": "a"}]},
            "subsets[0].ports[0].name: Required value",
            "subsets[0].ports[1].port: Invalid value: 0: must be between 1 and 65535, inclusive",
        ),
    ],
    ids=str,
)
def test_new_endpoints(one: Case) -> None:
    check_create(Endpoints, ENDPOINTS, one)


def test_endpoints_that_were_stored_stay() -> None:
    old: dict[str, Any] = {"subsets": [{}]}
    check_update(Endpoints, ENDPOINTS, case("kept", {"metadata.labels": {"a": "b"}}, before=old))


SLICE: dict[str, Any] = {
    "metadata": _META,
    "addressType": "IPv4",
    "endpoints": [{"addresses": ["192.0.2.1"]}],
    "ports": [{"port": 80}],
}


@pytest.mark.parametrize(
    "one",
    [
        case("a plain slice is fine"),
        case("an address type is needed", {"addressType": ""}, "addressType: Required value"),
        case(
            "address types are known ones",
            {"addressType": "IPX"},
            'addressType: Unsupported value: "IPX": supported values: "FQDN", "IPv4", "IPv6"',
        ),
        case(
            "endpoints have addresses",
            {"endpoints[0].addresses": []},
            "endpoints[0].addresses: Required value",
        ),
        case(
            "addresses are of the type",
            {"endpoints[0].addresses": ["fd00::1"]},
            'endpoints[0].addresses: Invalid value: "fd00::1": must be an IPv4 address',
        ),
        case(
            "newer addresses have one spelling",
            {"addressType": "IPv6", "endpoints[0].addresses": ["FD00::1", "::ffff:1.2.3.4"]},
            'endpoints[0].addresses[0]: Invalid value: "FD00::1": must be in canonical form ("fd00::1")',
            'endpoints[0].addresses[1]: Invalid value: "::ffff:1.2.3.4": must not be an IPv4-mapped IPv6 address',
        ),
        case(
            "names are whole names",
            {"addressType": "FQDN", "endpoints[0].addresses": ["host", "a.example.com"]},
            'endpoints[0].addresses[0]: Invalid value: "host": '
            "should be a domain with at least two segments separated by dots",
        ),
        case(
            "ports differ by name",
            {"ports": [{"port": 1}, {"port": 2}]},
            'ports[1].name: Duplicate value: ""',
        ),
        case(
            "hints are few and differ",
            {"endpoints[0].hints": {"forZones": [{"name": "a"}, {"name": "a"}], "forNodes": [{"name": "A"}]}},
            'endpoints[0].hints.forZones[1].name: Duplicate value: "a"',
            'endpoints[0].hints.forNodes[0].name: Invalid value: "A": a lowercase RFC 1123 subdomain must...',
        ),
        case(
            "there are at most 1000 endpoints",
            {"endpoints": [{"addresses": ["192.0.2.1"]}] * 1001},
            "endpoints: Too many: 1001: must have at most 1000 items",
        ),
        case(
            "the zone is not a label here",
            {"endpoints[0].deprecatedTopology": {"topology.kubernetes.io/zone": "a"}},
            "endpoints[0].deprecatedTopology[topology.kubernetes.io/zone]: Internal error: "
            "reserved key was not removed in conversion",
        ),
    ],
    ids=str,
)
def test_a_new_endpoint_slice(one: Case) -> None:
    check_create(EndpointSlice, SLICE, one)


def test_a_slice_keeps_its_address_type() -> None:
    change = {"addressType": "FQDN", "endpoints": []}
    error = "addressType: Invalid value: null: field is immutable"
    check_update(EndpointSlice, SLICE, case("kept", change, error))
