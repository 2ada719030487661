"""Environment variables of a container and where their values come from."""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.container import EnvFromSource, EnvVar, EnvVarSource
from nodeward.api.core_v1.references import ConfigMapKeySelector, FileKeySelector
from nodeward.base.fielderror import FieldError, invalid, required
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import (
    config_key,
    dns_label,
    dns_subdomain,
    env_name,
    mask_trailing_dash,
    relaxed_env_name,
)
from nodeward.validation.checks import Fields, Rule, check_form, check_name, check_subdomain, named
from nodeward.validation.meta.paths import backstep_faults
from nodeward.validation.pod.downward_api import ENV_FIELDS, validate_field_ref, validate_resource_ref
from nodeward.validation.pod.options import PodOptions


def validate_env(variables: list[EnvVar], path: FieldPath, options: PodOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, variable in enumerate(variables):
        if not variable.name:
            errors.append(required(path.index(i).child("name")))
        elif faults := _name_faults(variable.name, options):
            errors += [invalid(path.index(i).child("name"), variable.name, fault) for fault in faults]
        if variable.value_from is not None:
            at = path.index(i).child("valueFrom")
            errors += _value_from(variable.value_from, variable.value, at, options)
    return errors


def _name_faults(name: str, options: PodOptions) -> list[str]:
    strict = env_name(name)
    if not strict:
        return strict
    return relaxed_env_name(name) if options.relaxed_env_name(name) else strict


def _value_from(source: EnvVarSource, value: str, path: FieldPath, options: PodOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    count = 0
    for field, json_name, rule in _SOURCES:
        reference = getattr(source, field)
        if reference is not None:
            count += 1
            errors += rule(reference, path.child(json_name))
    if count == 0:
        listed = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`"
        last = ", `secretKeyRef` or `fileKeyRef`" if options.env_files() else " or `secretKeyRef`"
        errors.append(invalid(path, "", f"must specify one of: {listed}{last}"))
    elif value:
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif count > 1:
        errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


_KEY: Final = Fields(ConfigMapKeySelector, name=check_subdomain, key=named(config_key))
_FILE_KEY: Final = Fields(
    FileKeySelector, key=named(relaxed_env_name), volume_name=named(dns_label), path=named(backstep_faults)
)
#: where the value of a variable may come from: the field, its JSON name, the rule
_SOURCES: Final[tuple[tuple[str, str, Rule], ...]] = (
    ("field_ref", "fieldRef", lambda ref, path: validate_field_ref(ref, ENV_FIELDS, path)),
    ("resource_field_ref", "resourceFieldRef", validate_resource_ref),
    ("config_map_key_ref", "configMapKeyRef", _KEY),
    ("secret_key_ref", "secretKeyRef", _KEY),
    ("file_key_ref", "fileKeyRef", _FILE_KEY),
)


def validate_env_from(sources: list[EnvFromSource], path: FieldPath, options: PodOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, source in enumerate(sources):
        at = path.index(i)
        if source.prefix:
            errors += check_form(source.prefix, at.child("prefix"), lambda text: _name_faults(text, options))
        references = {"configMapRef": source.config_map_ref, "secretRef": source.secret_ref}
        found = {field: reference for field, reference in references.items() if reference is not None}
        for field, reference in found.items():
            errors += check_name(reference.name, at.child(field, "name"), _prefix_of_subdomain)
        if not found:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(found) > 1:
            errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def _prefix_of_subdomain(text: str) -> list[str]:
    return dns_subdomain(mask_trailing_dash(text))
