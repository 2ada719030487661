"""Environment variables of a container and where their values come from."""

from __future__ import annotations

from nodeward.api.core_v1.container import EnvFromSource, EnvVar, EnvVarSource
from nodeward.api.core_v1.references import ConfigMapKeySelector, FileKeySelector, SecretKeySelector
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
from nodeward.validation.checks import check_name
from nodeward.validation.meta.paths import validate_no_backsteps
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
    if source.field_ref is not None:
        count += 1
        errors += validate_field_ref(source.field_ref, ENV_FIELDS, path.child("fieldRef"))
    if source.resource_field_ref is not None:
        count += 1
        errors += validate_resource_ref(source.resource_field_ref, path.child("resourceFieldRef"))
    if source.config_map_key_ref is not None:
        count += 1
        errors += _key(source.config_map_key_ref, path.child("configMapKeyRef"))
    if source.secret_key_ref is not None:
        count += 1
        errors += _key(source.secret_key_ref, path.child("secretKeyRef"))
    if source.file_key_ref is not None:
        count += 1
        errors += _file_key(source.file_key_ref, path.child("fileKeyRef"))
    if count == 0:
        listed = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`"
        last = ", `secretKeyRef` or `fileKeyRef`" if options.env_files() else " or `secretKeyRef`"
        errors.append(invalid(path, "", f"must specify one of: {listed}{last}"))
    elif value:
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif count > 1:
        errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def _key(selector: ConfigMapKeySelector | SecretKeySelector, path: FieldPath) -> list[FieldError]:
    errors = [invalid(path.child("name"), selector.name, fault) for fault in dns_subdomain(selector.name)]
    return errors + check_name(selector.key, path.child("key"), config_key)


def _file_key(selector: FileKeySelector, path: FieldPath) -> list[FieldError]:
    errors = check_name(selector.key, path.child("key"), relaxed_env_name)
    errors += check_name(selector.volume_name, path.child("volumeName"), dns_label)
    if not selector.path:
        errors.append(required(path.child("path")))
    else:
        errors += validate_no_backsteps(selector.path, path.child("path"))
    return errors


def validate_env_from(sources: list[EnvFromSource], path: FieldPath, options: PodOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, source in enumerate(sources):
        at = path.index(i)
        if source.prefix:
            faults = _name_faults(source.prefix, options)
            errors += [invalid(at.child("prefix"), source.prefix, fault) for fault in faults]
        named = [
            (name, reference)
            for name, reference in (("configMapRef", source.config_map_ref), ("secretRef", source.secret_ref))
            if reference is not None
        ]
        for name, reference in named:
            if not reference.name:
                errors.append(required(at.child(name, "name")))
            else:
                faults = dns_subdomain(mask_trailing_dash(reference.name))
                errors += [invalid(at.child(name, "name"), reference.name, fault) for fault in faults]
        if not named:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(named) > 1:
            errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors
