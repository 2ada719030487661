"""Volumes that will not do what their author hopes: removed kinds, and files that overwrite each other."""

from __future__ import annotations

from typing import Final, NamedTuple

from nodeward.api.context import Context
from nodeward.api.core_v1.references import KeyToPath
from nodeward.api.core_v1.volume import Volume, VolumeProjection
from nodeward.api.core_v1.volume_sources import DownwardAPIVolumeFile
from nodeward.base.fielderror import quote
from nodeward.base.fieldpath import FieldPath
from nodeward.base.quantity import Quantity
from nodeward.validation.pod.warnings_ports import LISTED

#: (field of `Volume`, its name in the warning, since when), in upstream's order; gitRepo depends on a gate.
_REMOVED: Final = (
    ("photon_persistent_disk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("git_repo", "gitRepo", ""),
    ("scale_io", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("ephemeral", "ephemeral", ""),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
)


class _File(NamedTuple):
    path: str
    source: str

    def __str__(self) -> str:
        return f"{quote(self.path)} ({self.source})" if self.source else quote(self.path)


def volume_warnings(volumes: list[Volume], path: FieldPath, ctx: Context) -> list[str]:
    warnings: list[str] = []
    for i, volume in enumerate(volumes):
        for attribute, name, since in _REMOVED:
            if getattr(volume, attribute) is None:
                continue
            at = path.index(i).child(name)
            if since:
                warnings.append(f"{at}: {since}")
            elif volume.git_repo is not None:
                off = "" if ctx.on("GitRepoVolumeDriver") else ", and disabled by default in v1.33+"
                warnings.append(f"{at}: deprecated in v1.11{off}")
            else:
                warnings += _ephemeral(volume, at)
    for volume in volumes:
        warnings += _overlaps(volume)
    return warnings


def fraction_warnings(quantity: Quantity, path: FieldPath, name: str) -> list[str]:
    """Nobody has half a byte."""
    if not quantity.milli_value % 1000:
        return []
    shown = quote(str(quantity))
    return [f"{path.key(name)}: fractional byte value {shown} is invalid, must be an integer"]


def _ephemeral(volume: Volume, path: FieldPath) -> list[str]:
    template = volume.ephemeral.volume_claim_template if volume.ephemeral is not None else None
    if template is None:
        return []
    at = path.child("volumeClaimTemplate", "spec", "resources")
    resources = template.spec.resources
    return [
        warning
        for name, amounts in (("requests", resources.requests), ("limits", resources.limits))
        if "storage" in amounts
        for warning in fraction_warnings(amounts["storage"], at.child(name), "storage")
    ]


def _overlaps(volume: Volume) -> list[str]:
    if volume.config_map is not None:
        kind = f"ConfigMap {quote(volume.config_map.name)}"
        files = _files(volume.config_map.items, "")
    elif volume.secret is not None:
        kind = f"Secret {quote(volume.secret.secret_name)}"
        files = _files(volume.secret.items, "")
    elif volume.downward_api is not None:
        kind, files = "DownwardAPI", _files(volume.downward_api.items, "")
    elif volume.projected is not None:
        return _projected(volume.name, volume.projected.sources)
    else:
        return []
    return _collisions(volume.name, kind, files, _Written())


def _projected(name: str, sources: list[VolumeProjection]) -> list[str]:
    warnings: list[str] = []
    written = _Written()
    for source in sources:
        if source == VolumeProjection():
            warnings.append(f"volume {quote(name)} (Projected) has no sources provided")
        else:
            warnings += _collisions(name, "Projected", _projection_files(source), written)
    return warnings


def _projection_files(source: VolumeProjection) -> list[_File]:
    if source.config_map is not None and source.config_map.items:
        return _files(source.config_map.items, f"ConfigMap {quote(source.config_map.name)}")
    if source.secret is not None and source.secret.items:
        return _files(source.secret.items, f"Secret {quote(source.secret.name)}")
    if source.downward_api is not None and source.downward_api.items:
        return _files(source.downward_api.items, "DownwardAPI")
    if source.service_account_token is not None:
        return [_File(source.service_account_token.path, "ServiceAccountToken")]
    bundle = source.cluster_trust_bundle
    if bundle is not None:
        name = bundle.name if bundle.name is not None else bundle.signer_name or ""
        return [_File(bundle.path, f"ClusterTrustBundle {quote(name)}")]
    certificate = source.pod_certificate
    if certificate is None:
        return []
    files = (
        _File(certificate.certificate_chain_path, "PodCertificate chain"),
        _File(certificate.key_path, "PodCertificate key"),
        _File(certificate.credential_bundle_path, "PodCertificate credential bundle"),
    )
    return [file for file in files if file.path]


def _files(items: list[KeyToPath] | list[DownwardAPIVolumeFile], source: str) -> list[_File]:
    return [_File(item.path, source) for item in items]


class _Written:
    """The files a volume writes so far, found by their path and by the directories above it."""

    def __init__(self) -> None:
        self._files: list[_File] = []
        self._at: dict[str, list[int]] = {}
        self._below: dict[str, list[int]] = {}

    def add(self, file: _File) -> list[_File]:
        """Remember the file; the first `LISTED` earlier ones that have its path, lie below it or are above it."""
        if not file.path:
            return []
        parts = file.path.split("/")
        above = ["/".join(parts[:n]) for n in range(1, len(parts)) if parts[:n] != [""]]
        same = [*self._at.get(file.path, ())[:LISTED], *self._below.get(file.path, ())[:LISTED]]
        found = sorted({*same, *(i for path in above for i in self._at.get(path, ())[:LISTED])})
        self._at.setdefault(file.path, []).append(len(self._files))
        for path in above:
            self._below.setdefault(path, []).append(len(self._files))
        self._files.append(file)
        return [self._files[i] for i in found[:LISTED]]


def _collisions(name: str, kind: str, files: list[_File], written: _Written) -> list[str]:
    """Files that are written twice or are directories of others; `written` grows."""
    return [
        f"volume {quote(name)} ({kind}): overlapping paths: {file} with {other}"
        for file in (_File(path.rstrip("/"), source) for path, source in files)
        for other in written.add(file)
    ]
