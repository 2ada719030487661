"""Volumes made of files the cluster knows: secrets, config maps, the downward API, tokens, certificates.

All of them are written by the same atomic writer, so their paths obey the same rule, and in a projected volume no two
sources may write the same path.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.references import KeyToPath
from nodeward.api.core_v1.volume import (
    ClusterTrustBundleProjection,
    PodCertificateProjection,
    ProjectedVolumeSource,
    ServiceAccountTokenProjection,
    VolumeProjection,
)
from nodeward.api.core_v1.volume_sources import (
    ConfigMapVolumeSource,
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    SecretVolumeSource,
)
from nodeward.base.fielderror import FieldError, forbidden, invalid, required, too_long
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import label_key_faults, size, user_id
from nodeward.validation.checks import check_each, check_form, check_one_of, check_present
from nodeward.validation.meta.labels import validate_label_selector
from nodeward.validation.meta.metadata import ANNOTATIONS_LIMIT
from nodeward.validation.meta.paths import local_path_faults, validate_local_path
from nodeward.validation.meta.signers import (
    is_kubernetes_signer,
    trust_bundle_name,
    validate_signer_name,
)
from nodeward.validation.pod.downward_api import FILE_FIELDS, validate_field_ref, validate_resource_ref
from nodeward.validation.pod.options import PodOptions

BAD_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
_KEY_TYPES: Final = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_SHORTEST_TOKEN: Final = 10 * 60
_LONGEST_TOKEN: Final = 2**32
_SHORTEST_CERTIFICATE: Final = 3600
_LONGEST_CERTIFICATE: Final = 91 * 86400
_LONGEST_KUBERNETES_CERTIFICATE: Final = 86400
_CONFLICT: Final = "conflicting duplicate paths"


def _mode(mode: int | None, path: FieldPath) -> list[FieldError]:
    return [] if mode is None or 0 <= mode <= 0o777 else [invalid(path, mode, BAD_MODE)]


def _user(user: int | None, path: FieldPath) -> list[FieldError]:
    return [] if user is None else [invalid(path, user, fault) for fault in user_id(user)]


def _defaults(
    source: SecretVolumeSource | ConfigMapVolumeSource | DownwardAPIVolumeSource | ProjectedVolumeSource,
    path: FieldPath,
) -> list[FieldError]:
    if _is_plain(source.default_mode, source.default_user):
        return []
    errors = _mode(source.default_mode, path.child("defaultMode"))
    return errors + _user(source.default_user, path.child("defaultUser"))


def _is_plain(mode: int | None, user: int | None) -> bool:
    """Nothing to complain about? Every pod has a volume of files, so the usual case must cost little."""
    return (mode is None or 0 <= mode <= 0o777) and user is None


def secret(source: SecretVolumeSource, path: FieldPath) -> list[FieldError]:
    errors = [] if source.secret_name else [required(path.child("secretName"))]
    return errors + _defaults(source, path) + _items(source.items, path)


def config_map(source: ConfigMapVolumeSource, path: FieldPath) -> list[FieldError]:
    errors = [] if source.name else [required(path.child("name"))]
    return errors + _defaults(source, path) + _items(source.items, path)


def _items(items: list[KeyToPath], path: FieldPath) -> list[FieldError]:
    return check_each(items, path.child("items"), _item) if items else []


def _item(item: KeyToPath, path: FieldPath) -> list[FieldError]:
    if item.key and item.path and not local_path_faults(item.path) and _is_plain(item.mode, item.user):
        return []
    errors = [] if item.key else [required(path.child("key"))]
    errors += check_present(item.path, path.child("path"))
    errors += validate_local_path(item.path, path.child("path"))
    return errors + _mode(item.mode, path.child("mode")) + _user(item.user, path.child("user"))


def downward_api(source: DownwardAPIVolumeSource, path: FieldPath, ctx: Context) -> list[FieldError]:
    errors = _defaults(source, path)
    for file in source.items:
        errors += _downward_file(file, path, ctx)  # without the index of the item, as upstream
    return errors


def _downward_file(file: DownwardAPIVolumeFile, path: FieldPath, ctx: Context) -> list[FieldError]:
    errors = [] if file.path else [required(path.child("path"))]
    errors += check_form(file.path, path.child("path"), local_path_faults)
    if file.field_ref is not None:
        errors += validate_field_ref(file.field_ref, FILE_FIELDS, path.child("fieldRef"))
        if file.resource_field_ref is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(path, "resource", detail))
    elif file.resource_field_ref is not None:
        errors += validate_resource_ref(file.resource_field_ref, path.child("resourceFieldRef"), ctx)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    if _is_plain(file.mode, file.user):
        return errors
    return errors + _mode(file.mode, path.child("mode")) + _user(file.user, path.child("user"))


class _Paths:
    """The paths a projected volume writes so far."""

    __slots__ = ("_at", "_seen")

    def __init__(self, at: FieldPath) -> None:
        self._at = at
        self._seen: set[str] = set()

    def take(self, path: str, value: str) -> list[FieldError]:
        if path not in self._seen:
            self._seen.add(path)
            return []
        return [invalid(self._at, value, _CONFLICT)]


def projected(source: ProjectedVolumeSource, path: FieldPath, options: PodOptions) -> list[FieldError]:
    errors = _defaults(source, path)
    paths = _Paths(path)
    for i, part in enumerate(source.sources):
        errors += _projection(part, path.child("sources").index(i), path, paths, options)
    return errors


def _projection(
    source: VolumeProjection, path: FieldPath, volume: FieldPath, paths: _Paths, options: PodOptions
) -> list[FieldError]:
    errors: list[FieldError] = []
    count = 0
    for name, listed in (("secret", source.secret), ("configMap", source.config_map)):
        if listed is not None:
            count += 1
            at = path.child(name)
            errors += check_present(listed.name, at.child("name"))
            for i, item in enumerate(listed.items):
                errors += _item(item, at.child("items").index(i))
                if item.path:
                    errors += paths.take(item.path, listed.name)
    if source.downward_api is not None:
        count += 1
        for file in source.downward_api.items:
            errors += _downward_file(file, path.child("downwardAPI"), options.ctx)
            if file.path:
                errors += paths.take(file.path, file.path)
    if source.service_account_token is not None:
        count += 1
        errors += _token(source.service_account_token, path.child("serviceAccountToken"), volume, options)
    if source.cluster_trust_bundle is not None:
        count += 1
        errors += _trust_bundle(source.cluster_trust_bundle, path.child("clusterTrustBundle"), paths)
    if source.pod_certificate is not None:
        count += 1
        errors += _certificate(source.pod_certificate, path.child("podCertificate"), paths)
    if count > 1:
        errors.append(forbidden(path, "may not specify more than 1 volume type per source"))
    return errors


def _token(
    token: ServiceAccountTokenProjection, path: FieldPath, volume: FieldPath, options: PodOptions
) -> list[FieldError]:
    errors: list[FieldError] = []
    seconds = token.expiration_seconds
    if seconds is None:
        errors.append(required(path.child("expirationSeconds")))
    elif not _SHORTEST_TOKEN <= seconds <= _LONGEST_TOKEN:
        how = "less than 10 minutes" if seconds < _SHORTEST_TOKEN else "larger than 2^32 seconds"
        at = path.child("expirationSeconds")
        errors.append(invalid(at, seconds, f"may not specify a duration {how}"))
    if not token.path:
        errors.append(required(volume.child("path")))
    elif (faults := local_path_faults(token.path)) and not options.non_local_token_path():
        errors += [invalid(volume.child("path"), token.path, fault) for fault in faults]
    return errors + _user(token.user, path.child("user"))


def _trust_bundle(bundle: ClusterTrustBundleProjection, path: FieldPath, paths: _Paths) -> list[FieldError]:
    errors: list[FieldError] = []
    if bundle.name is not None and bundle.signer_name is not None:
        errors.append(invalid(path, bundle, "only one of name and signerName may be used"))
    elif bundle.name is not None:
        at = path.child("name")
        errors += check_present(bundle.name, at, "must be a valid object name")
        errors += [
            invalid(at, bundle.name, f"not a valid clustertrustbundlename: {fault}")
            for fault in trust_bundle_name(bundle.name)
        ]
        if bundle.label_selector is not None:
            detail = "labelSelector must be unset if name is specified"
            errors.append(invalid(path.child("labelSelector"), bundle.label_selector, detail))
    elif bundle.signer_name is not None:
        at = path.child("signerName")
        errors += check_present(bundle.signer_name, at, "must be a valid signer name")
        errors += validate_signer_name(bundle.signer_name, at)
        errors += validate_label_selector(bundle.label_selector, path.child("labelSelector"))
    else:
        errors.append(required(path, "either name or signerName must be specified"))
    errors += check_present(bundle.path, path.child("path"))
    errors += _user(bundle.user, path.child("user"))
    errors += validate_local_path(bundle.path, path.child("path"))
    return errors + paths.take(bundle.path, bundle.path)


def _certificate(certificate: PodCertificateProjection, path: FieldPath, paths: _Paths) -> list[FieldError]:
    errors = validate_signer_name(certificate.signer_name, path.child("signerName"))
    errors += _user_annotations(certificate.user_annotations, path.child("userAnnotations"))
    errors += _user(certificate.user, path.child("user"))
    errors += check_one_of(certificate.key_type, path.child("keyType"), _KEY_TYPES)
    seconds = certificate.max_expiration_seconds
    if seconds is not None:
        at = path.child("maxExpirationSeconds")
        is_ours = is_kubernetes_signer(certificate.signer_name)
        longest = _LONGEST_KUBERNETES_CERTIFICATE if is_ours else _LONGEST_CERTIFICATE
        if seconds < _SHORTEST_CERTIFICATE:
            detail = f"if provided, maxExpirationSeconds must be >= {_SHORTEST_CERTIFICATE}"
            errors.append(invalid(at, seconds, detail))
        if seconds > longest:
            errors.append(invalid(at, seconds, f"if provided, maxExpirationSeconds must be <= {longest}"))
    files = (
        ("credentialBundlePath", certificate.credential_bundle_path),
        ("keyPath", certificate.key_path),
        ("certificateChainPath", certificate.certificate_chain_path),
    )
    for name, file in files:
        if file:
            errors += validate_local_path(file, path.child(name))
            errors += paths.take(file, file)
    if not any(file for _, file in files):
        detail = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
        errors.append(required(path, detail))
    return errors


def _user_annotations(annotations: dict[str, str], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    for key in annotations:
        lower = key.lower()
        if not lower:
            errors.append(required(path))
        elif faults := label_key_faults(lower):
            errors += [invalid(path, lower, fault) for fault in faults]
        elif "/" not in lower:
            errors.append(invalid(path, lower, 'must be a domain-prefixed key (such as "acme.io/foo")'))
    if sum(size(key) + size(value) for key, value in annotations.items()) > ANNOTATIONS_LIMIT:
        errors.append(too_long(path, ANNOTATIONS_LIMIT))
    return errors
