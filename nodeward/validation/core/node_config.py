"""Where a kubelet takes its configuration from: kept for nodes that still carry it."""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.node import ConfigMapNodeConfigSource, NodeConfigSource, NodeConfigStatus
from nodeward.base.fielderror import FieldError, forbidden, invalid, required
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import config_key, dns_label, dns_subdomain
from nodeward.validation.checks import Fields, named


def validate_config_source(source: NodeConfigSource, path: FieldPath, *, in_spec: bool) -> list[FieldError]:
    if source.config_map is None:
        return [invalid(path, source, "exactly one reference subfield must be non-nil")]
    return _config_map(source.config_map, path.child("configMap"), in_spec)


_KEY: Final = Fields(
    ConfigMapNodeConfigSource,
    namespace=named(dns_label),
    name=named(dns_subdomain),
    kubelet_config_key=named(config_key),
)


def validate_config_status(status: NodeConfigStatus, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    for field, source in (
        ("assigned", status.assigned),
        ("active", status.active),
        ("lastKnownGood", status.last_known_good),
    ):
        if source is not None:
            errors += validate_config_source(source, path.child(field), in_spec=False)
    return errors


def _config_map(source: ConfigMapNodeConfigSource, path: FieldPath, in_spec: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    # In the spec somebody asks for a config map by name, in the status the kubelet says which one it was.
    for field, value in (("uid", source.uid), ("resourceVersion", source.resource_version)):
        if in_spec and value:
            errors.append(forbidden(path.child(field), f"{field} must not be set in spec"))
        elif not in_spec and not value:
            errors.append(required(path.child(field)))
    return errors + _KEY(source, path)
