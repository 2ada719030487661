"""Namespaces, config maps, secrets, service accounts: what is refused, and in which words."""

from __future__ import annotations

import base64

import pytest

from nodeward.api.core_v1.cluster import ConfigMap, Namespace, Secret, ServiceAccount
from nodeward.validation.core.namespace import validate_namespace_finalize
from tests.validation.tables import (
    DROP,
    Case,
    case,
    check,
    check_create,
    check_status,
    check_update,
    edited,
    read,
)

_META = {"name": "a", "namespace": "default"}
CONFIG_MAP = {"metadata": _META, "data": {"key": "value"}}
SECRET = {"metadata": _META, "type": "Opaque", "data": {"key": "dmFsdWU="}}
NAMESPACE = {"metadata": {"name": "a"}}
_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_MEGABYTE = "x" * (1024 * 1024)
_FROZEN = "field is immutable when `immutable` is set"


@pytest.mark.parametrize(
    "one",
    [
        case("a plain config map is fine"),
        case(
            "keys with spaces are refused",
            {"data[a b]": ""},
            f'data[a b]: Invalid value: "a b": {_KEY_RULE}',
        ),
        case(
            "a key must not be a directory",
            {"data": {"..": "x"}},
            "data[..]: Invalid value: \"..\": must not be '..'",
        ),
        case(
            "a key stands in data or in binaryData, not in both",
            {"binaryData": {"key": "AA=="}},
            'data[key]: Invalid value: "key": duplicate of key present in binaryData',
        ),
        case("a megabyte is allowed", {"data": {"key": _MEGABYTE}}),
        case(
            "more than a megabyte is too long",
            {"data": {"key": _MEGABYTE, "b": "x"}},
            ": Too long: may not be more than 1048576 bytes",
        ),
        case("a namespace is needed", {"metadata.namespace": DROP}, "metadata.namespace: Required value"),
    ],
    ids=str,
)
def test_a_new_config_map(one: Case) -> None:
    check_create(ConfigMap, CONFIG_MAP, one)


@pytest.mark.parametrize(
    "one",
    [
        case("data may change", {"data": {"key": "other"}}),
        case(
            "nothing of an immutable one may change",
            {"data": {}, "binaryData": {"b": "AA=="}, "immutable": False},
            f"immutable: Forbidden: {_FROZEN}",
            f"data: Forbidden: {_FROZEN}",
            f"binaryData: Forbidden: {_FROZEN}",
            before={"immutable": True},
        ),
        case(
            "labels of an immutable one may change",
            {"metadata.labels": {"a": "b"}},
            before={"immutable": True},
        ),
    ],
    ids=str,
)
def test_a_changed_config_map(one: Case) -> None:
    check_update(ConfigMap, CONFIG_MAP, one)


@pytest.mark.parametrize(
    "one",
    [
        case("a plain secret is fine"),
        case(
            "a token needs its account",
            {"type": "kubernetes.io/service-account-token"},
            "metadata.annotations[kubernetes.io/service-account.name]: Required value",
        ),
        case(
            "docker credentials need their key",
            {"type": "kubernetes.io/dockercfg"},
            "data[.dockercfg]: Required value",
        ),
        case(
            "docker credentials are JSON, and never shown",
            {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "eA=="}},
            'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": ...',
        ),
        case(
            "docker credentials that are JSON are fine",
            {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "e30="}},
        ),
        case(
            "basic auth needs a name or a password",
            {"type": "kubernetes.io/basic-auth"},
            "data[username]: Required value",
            "data[password]: Required value",
        ),
        case("a name alone is enough", {"type": "kubernetes.io/basic-auth", "data": {"username": ""}}),
        case("ssh needs a key", {"type": "kubernetes.io/ssh-auth"}, "data[ssh-privatekey]: Required value"),
        case(
            "TLS needs both halves",
            {"type": "kubernetes.io/tls"},
            "data[tls.crt]: Required value",
            "data[tls.key]: Required value",
        ),
        case("other types hold anything", {"type": "example.com/own"}),
        case(
            "more than a megabyte is too long",
            {"data": {"a": base64.b64encode(bytes(1024 * 1024 + 1)).decode()}},
            "data: Too long: may not be more than 1048576 bytes",
        ),
    ],
    ids=str,
)
def test_a_new_secret(one: Case) -> None:
    check_create(Secret, SECRET, one)


@pytest.mark.parametrize(
    "one",
    [
        case("the type never changes", {"type": "x"}, 'type: Invalid value: "x": field is immutable'),
        case(
            "an immutable secret stays so",
            {"immutable": DROP},
            f"immutable: Forbidden: {_FROZEN}",
            before={"immutable": True},
        ),
    ],
    ids=str,
)
def test_a_changed_secret(one: Case) -> None:
    check_update(Secret, SECRET, one)


@pytest.mark.parametrize(
    "one",
    [
        case("a plain namespace is fine"),
        case(
            "names have no dots",
            {"metadata.name": "a.b"},
            'metadata.name: Invalid value: "a.b": must not contain dots',
        ),
        case("the standard finalizer is fine", {"spec.finalizers": ["kubernetes"]}),
        case(
            "other finalizers are qualified",
            {"spec.finalizers": ["mine"]},
            'spec.finalizers: Invalid value: "mine": '
            "name is neither a standard finalizer name nor is it fully qualified",
        ),
    ],
    ids=str,
)
def test_a_new_namespace(one: Case) -> None:
    check_create(Namespace, NAMESPACE, one)


@pytest.mark.parametrize(
    "one",
    [
        case("a living namespace is active", {"status.phase": "Active"}),
        case(
            "a living namespace is not terminating",
            {"status.phase": "Terminating"},
            "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty",
        ),
        case(
            "a dying namespace is terminating",
            {"status.phase": "Active"},
            "status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty",
            before={"metadata.deletionTimestamp": "2026-01-01T00:00:00Z", "status.phase": "Terminating"},
        ),
    ],
    ids=str,
)
def test_the_status_of_a_namespace(one: Case) -> None:
    check_status(Namespace, NAMESPACE, one)


def test_finalize_names_the_finalizer_by_its_position() -> None:
    stored = read(Namespace, edited(NAMESPACE, {"metadata.resourceVersion": "7"}))
    new = read(
        Namespace,
        edited(NAMESPACE, {"metadata.resourceVersion": "7", "spec.finalizers": ["kubernetes", "x"]}),
    )
    check(
        validate_namespace_finalize(new, stored),
        (
            'spec.finalizers[1]: Invalid value: "x": '
            "name is neither a standard finalizer name nor is it fully qualified",
        ),
    )


def test_a_service_account_is_named_like_most_objects() -> None:
    check_create(ServiceAccount, {"metadata": {"name": "a.b", "namespace": "default"}}, case("fine"))
    check_create(
        ServiceAccount,
        {"metadata": {"name": "A", "namespace": "default"}},
        case(
            "bad", {}, 'metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of...'
        ),
    )
