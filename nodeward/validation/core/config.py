"""ConfigMaps, Secrets and ServiceAccounts: keys, sizes, what each type of secret must hold, what immutable means."""

from __future__ import annotations

from typing import Final

import msgspec

from nodeward.api.context import Context
from nodeward.api.core_v1.cluster import ConfigMap, Secret
from nodeward.base.fielderror import FieldError, invalid, required, too_long
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import config_key, dns_subdomain, size
from nodeward.validation.checks import check_form, check_immutable, check_present, check_unset
from nodeward.validation.kinds import changed, kind, made
from nodeward.validation.meta.metadata import (
    METADATA,
)

_SIZE_LIMIT: Final = 1024 * 1024
_FROZEN: Final = "field is immutable when `immutable` is set"
_DATA: Final = ROOT.child("data")
_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"


def _keys(data: dict[str, str] | dict[str, bytes], path: FieldPath) -> list[FieldError]:
    return [invalid(path.key(key), key, fault) for key in data for fault in config_key(key)]


def _config_map(new: ConfigMap, old: ConfigMap | None, ctx: Context) -> list[FieldError]:
    errors: list[FieldError] = []
    for key in new.data:
        errors += check_form(key, _DATA.key(key), config_key)
        if key in new.binary_data:
            errors.append(invalid(_DATA.key(key), key, "duplicate of key present in binaryData"))
    errors += _keys(new.binary_data, ROOT.child("binaryData"))
    total = sum(size(value) for value in new.data.values())
    total += sum(len(value) for value in new.binary_data.values())
    return [*errors, too_long(ROOT, _SIZE_LIMIT)] if total > _SIZE_LIMIT else errors


def _frozen(new: ConfigMap | Secret, old: ConfigMap | Secret, ctx: Context) -> list[FieldError]:
    """What `immutable` means: neither the data nor the word itself changes any more."""
    changes = {"immutable": not new.immutable, "data": new.data != old.data}
    if isinstance(new, ConfigMap) and isinstance(old, ConfigMap):
        changes["binaryData"] = new.binary_data != old.binary_data
    return check_unset(ROOT, _FROZEN, **changes) if old.immutable else []


def _secret(new: Secret, old: Secret | None, ctx: Context) -> list[FieldError]:
    errors = _keys(new.data, _DATA)
    if sum(len(value) for value in new.data.values()) > _SIZE_LIMIT:
        errors.append(too_long(_DATA, _SIZE_LIMIT))
    match new.type:
        case "kubernetes.io/service-account-token":
            at = METADATA.child("annotations").key(_ACCOUNT_NAME)
            errors += check_present(new.metadata.annotations.get(_ACCOUNT_NAME), at)
        case "kubernetes.io/dockercfg":
            errors += _json_object(new, ".dockercfg")
        case "kubernetes.io/dockerconfigjson":
            errors += _json_object(new, ".dockerconfigjson")
        case "kubernetes.io/basic-auth":
            if "username" not in new.data and "password" not in new.data:
                errors += [required(_DATA.key("username")), required(_DATA.key("password"))]
        case "kubernetes.io/ssh-auth":
            errors += check_present(new.data.get("ssh-privatekey"), _DATA.key("ssh-privatekey"))
        case "kubernetes.io/tls":
            errors += [required(_DATA.key(key)) for key in ("tls.crt", "tls.key") if key not in new.data]
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


def _same_type(new: Secret, old: Secret, ctx: Context) -> list[FieldError]:
    return check_immutable(new.type, old.type, ROOT.child("type"))


_MADE: Final = made(dns_subdomain, namespaced=True)
CONFIG_MAP: Final = kind(dns_subdomain, _config_map, update=(changed, _frozen, _MADE, _config_map))
SECRET: Final = kind(dns_subdomain, _secret, update=(changed, _same_type, _frozen, _MADE, _secret))
SERVICE_ACCOUNT: Final = kind(dns_subdomain, _MADE, create=(_MADE,))
