"""The owners of files in volumes (`user`, `defaultUser`): whether any is set, and how to remove them all."""

from __future__ import annotations

from collections.abc import Iterator

from nodeward.api.core_v1.references import KeyToPath
from nodeward.api.core_v1.volume import (
    ClusterTrustBundleProjection,
    PodCertificateProjection,
    ProjectedVolumeSource,
    ServiceAccountTokenProjection,
    Volume,
)
from nodeward.api.core_v1.volume_sources import (
    ConfigMapVolumeSource,
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    SecretVolumeSource,
)

_Source = SecretVolumeSource | ConfigMapVolumeSource | DownwardAPIVolumeSource | ProjectedVolumeSource
_Owned = (
    KeyToPath
    | DownwardAPIVolumeFile
    | ServiceAccountTokenProjection
    | ClusterTrustBundleProjection
    | PodCertificateProjection
)


def has_owners(volumes: list[Volume]) -> bool:
    return any(source.default_user is not None for source in _sources(volumes)) or any(
        file.user is not None for file in _files(volumes)
    )


def drop_owners(volumes: list[Volume]) -> None:
    for source in _sources(volumes):
        source.default_user = None
    for file in _files(volumes):
        file.user = None


def _sources(volumes: list[Volume]) -> Iterator[_Source]:
    for volume in volumes:
        for source in (volume.secret, volume.config_map, volume.downward_api, volume.projected):
            if source is not None:
                yield source


def _files(volumes: list[Volume]) -> Iterator[_Owned]:
    for source in _sources(volumes):
        if not isinstance(source, ProjectedVolumeSource):
            yield from source.items
            continue
        for part in source.sources:
            for listed in (part.secret, part.config_map, part.downward_api):
                if listed is not None:
                    yield from listed.items
            for single in (part.service_account_token, part.cluster_trust_bundle, part.pod_certificate):
                if single is not None:
                    yield single
