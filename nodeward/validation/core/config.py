"""ConfigMaps, Secrets and ServiceAccounts: keys, sizes, what each type of secret must hold, what immutable means."""

from __future__ import annotations

from typing import Final

import msgspec

from nodeward.api.context import Context
from nodeward.api.core_v1.cluster import ConfigMap, Secret, ServiceAccount
from nodeward.base.fielderror import FieldError, forbidden, invalid, required, too_long
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import config_key, dns_subdomain, size
from nodeward.validation.checks import check_form, check_immutable, check_present
from nodeward.validation.meta.metadata import (
    METADATA,
    validate_metadata,
    validate_metadata_update,
)
from nodeward.validation.validator import Validator

_SIZE_LIMIT: Final = 1024 * 1024
_FROZEN: Final = "field is immutable when `immutable` is set"
_DATA: Final = ROOT.child("data")
_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"


def _keys(data: dict[str, str] | dict[str, bytes], path: FieldPath) -> list[FieldError]:
    return [invalid(path.key(key), key, fault) for key in data for fault in config_key(key)]


def _create_config_map(config: ConfigMap, ctx: Context) -> list[FieldError]:
    errors = validate_metadata(config.metadata, dns_subdomain, namespaced=True)
    for key in config.data:
        errors += check_form(key, _DATA.key(key), config_key)
        if key in config.binary_data:
            errors.append(invalid(_DATA.key(key), key, "duplicate of key present in binaryData"))
    errors += _keys(config.binary_data, ROOT.child("binaryData"))
    total = sum(size(value) for value in config.data.values())
    total += sum(len(value) for value in config.binary_data.values())
    if total > _SIZE_LIMIT:
        errors.append(too_long(ROOT, _SIZE_LIMIT))
    return errors


def _update_config_map(new: ConfigMap, old: ConfigMap, ctx: Context) -> list[FieldError]:
    errors = validate_metadata_update(new.metadata, old.metadata)
    if old.immutable:
        if not new.immutable:
            errors.append(forbidden(ROOT.child("immutable"), _FROZEN))
        if new.data != old.data:
            errors.append(forbidden(_DATA, _FROZEN))
        if new.binary_data != old.binary_data:
            errors.append(forbidden(ROOT.child("binaryData"), _FROZEN))
    return errors + _create_config_map(new, ctx)


def _create_secret(secret: Secret, ctx: Context) -> list[FieldError]:
    errors = validate_metadata(secret.metadata, dns_subdomain, namespaced=True)
    errors += _keys(secret.data, _DATA)
    if sum(len(value) for value in secret.data.values()) > _SIZE_LIMIT:
        errors.append(too_long(_DATA, _SIZE_LIMIT))
    match secret.type:
        case "kubernetes.io/service-account-token":
            if not secret.metadata.annotations.get(_ACCOUNT_NAME):
                errors.append(required(METADATA.child("annotations").key(_ACCOUNT_NAME)))
        case "kubernetes.io/dockercfg":
            errors += _json_object(secret, ".dockercfg")
        case "kubernetes.io/dockerconfigjson":
            errors += _json_object(secret, ".dockerconfigjson")
        case "kubernetes.io/basic-auth":
            if "username" not in secret.data and "password" not in secret.data:
                errors += [required(_DATA.key("username")), required(_DATA.key("password"))]
        case "kubernetes.io/ssh-auth":
            errors += check_present(secret.data.get("ssh-privatekey"), _DATA.key("ssh-privatekey"))
        case "kubernetes.io/tls":
            errors += [required(_DATA.key(key)) for key in ("tls.crt", "tls.key") if key not in secret.data]
    return errors


def _json_object(secret: Secret, key: str) -> list[FieldError]:
    value = secret.data.get(key)
    if value is None:
        return [required(_DATA.key(key))]
    try:
        msgspec.json.decode(value, type=dict[str, object] | None)
    except msgspec.DecodeError as error:
        # Unlike upstream: the reason is in our JSON reader's words.
        return [invalid(_DATA.key(key), "<secret contents redacted>", str(error))]
    return []


def _update_secret(new: Secret, old: Secret, ctx: Context) -> list[FieldError]:
    errors = validate_metadata_update(new.metadata, old.metadata)
    errors += check_immutable(new.type, old.type, ROOT.child("type"))
    if old.immutable:
        if not new.immutable:
            errors.append(forbidden(ROOT.child("immutable"), _FROZEN))
        if new.data != old.data:
            errors.append(forbidden(_DATA, _FROZEN))
    return errors + _create_secret(new, ctx)


def _create_account(account: ServiceAccount, ctx: Context) -> list[FieldError]:
    return validate_metadata(account.metadata, dns_subdomain, namespaced=True)


def _update_account(new: ServiceAccount, old: ServiceAccount, ctx: Context) -> list[FieldError]:
    return validate_metadata_update(new.metadata, old.metadata) + _create_account(new, ctx)


CONFIG_MAP: Final = Validator(
    create=_create_config_map, update=_update_config_map, status=None, name=dns_subdomain
)
SECRET: Final = Validator(create=_create_secret, update=_update_secret, status=None, name=dns_subdomain)
SERVICE_ACCOUNT: Final = Validator(
    create=_create_account, update=_update_account, status=None, name=dns_subdomain
)
