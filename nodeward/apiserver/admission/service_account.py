"""ServiceAccount: sets a pod's service account and mounts its token into every container.

Mirror pods are left as they are, and may name neither an account nor a secret: their node wrote them.

What must stay true: the volume is added once per pod, only if a container lacks a mount at the usual path, and is
exactly upstream's (`defaultMode` written out), because clients compare.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from nodeward.api.core_v1.cluster import Namespace, ServiceAccount
from nodeward.api.core_v1.container import Container, EphemeralContainer, VolumeMount
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.references import KeyToPath, LocalObjectReference, ObjectFieldSelector
from nodeward.api.core_v1.volume import (
    ConfigMapProjection,
    DownwardAPIProjection,
    ProjectedVolumeSource,
    ServiceAccountTokenProjection,
    Volume,
    VolumeProjection,
)
from nodeward.api.core_v1.volume_sources import DownwardAPIVolumeFile
from nodeward.apiserver.admission.plugin import AdmissionPlugin, Write
from nodeward.apiserver.environment import Environment
from nodeward.rules.pod_references import MIRROR, secret_names

DEFAULT: Final = "default"
MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
VOLUME_PREFIX: Final = "kube-api-access-"
#: An hour and seven seconds: an unusual lifetime, by which these tokens are recognized.
TOKEN_SECONDS: Final = 3607
_ENFORCE: Final = "kubernetes.io/enforce-mountable-secrets"


class ServiceAccountPlugin(AdmissionPlugin):
    name: ClassVar[str] = "ServiceAccount"

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        # Shared by all pods and never changed.
        self._source = _token_source()

    def should_wait(self, write: Write) -> bool:
        """Wait while the default account of a new namespace does not exist yet."""
        if write.operation != "CREATE" or not write.is_about("pods"):
            return False
        pod: Pod = write.new
        name = pod.spec.service_account_name or DEFAULT
        if name != DEFAULT or MIRROR in pod.metadata.annotations:
            return False
        home = self.env.peek(Namespace, write.namespace)
        is_young = home is not None and home.metadata.deletion_timestamp is None
        return is_young and self.env.peek(ServiceAccount, DEFAULT, write.namespace) is None

    def admit(self, write: Write) -> None:
        if write.operation != "CREATE" or not write.is_about("pods"):
            return
        pod: Pod = write.new
        if MIRROR in pod.metadata.annotations:
            _check_mirror(write, pod)
            return
        spec = pod.spec
        if not spec.service_account_name:
            spec.service_account_name = spec.service_account = DEFAULT
        account = self._account(write, pod)
        if _mounts_token(account, pod):
            self._mount(pod)
        if not spec.image_pull_secrets:
            spec.image_pull_secrets = [
                LocalObjectReference(name=reference.name) for reference in account.image_pull_secrets
            ]

    def validate(self, write: Write) -> None:
        if write.operation == "UPDATE" and write.is_about("pods", "ephemeralcontainers"):
            self._check_secrets(write, write.new, ephemeral=True)
        elif write.operation == "CREATE" and write.is_about("pods"):
            if MIRROR in write.new.metadata.annotations:
                _check_mirror(write, write.new)
            else:
                self._check_secrets(write, write.new, ephemeral=False)

    def _account(self, write: Write, pod: Pod) -> ServiceAccount:
        name = pod.spec.service_account_name
        if not name:
            raise write.refuse(f"no service account specified for pod {write.namespace}/{pod.metadata.name}")
        account = self.env.peek(ServiceAccount, name, write.namespace)
        if account is None:
            raise write.refuse(
                f'error looking up service account {write.namespace}/{name}: serviceaccount "{name}" not found'
            )
        return account

    def _mount(self, pod: Pod) -> None:
        named = (volume.name for volume in pod.spec.volumes if volume.name.startswith(VOLUME_PREFIX))
        existing = next(named, "")
        volume = existing or VOLUME_PREFIX + self.env.chance.name_suffix(5)
        is_needed = False
        for container in (*pod.spec.init_containers, *pod.spec.containers):
            if all(mount.mount_path != MOUNT_PATH for mount in container.volume_mounts):
                container.volume_mounts.append(
                    VolumeMount(name=volume, read_only=True, mount_path=MOUNT_PATH)
                )
                is_needed = True
        if is_needed and not existing:
            pod.spec.volumes.append(Volume(name=volume, projected=self._source))

    def _check_secrets(self, write: Write, pod: Pod, *, ephemeral: bool) -> None:
        account = self._account(write, pod)
        if account.metadata.annotations.get(_ENFORCE, "") not in ("1", "t", "T", "true", "TRUE", "True"):
            return
        mountable = {reference.name for reference in account.secrets}
        faults = (
            _strange_ephemeral(pod, mountable) if ephemeral else _strange_secrets(pod, account, mountable)
        )
        for what, reference in faults:
            end = f"is not allowed because service account {account.metadata.name} does not reference that"
            raise write.refuse(f"{what} {end} {reference}")


def _check_mirror(write: Write, pod: Pod) -> None:
    if pod.spec.service_account_name:
        raise write.refuse("a mirror pod may not reference service accounts")
    if any(True for _ in secret_names(pod.spec)):
        raise write.refuse("a mirror pod may not reference secrets")
    for volume in pod.spec.volumes:
        sources = volume.projected.sources if volume.projected is not None else ()
        if any(source.service_account_token is not None for source in sources):
            raise write.refuse("a mirror pod may not use ServiceAccountToken volume projections")


def _mounts_token(account: ServiceAccount, pod: Pod) -> bool:
    """Tell whether to mount a token: the pod decides, then the account; the default is yes."""
    for wish in (pod.spec.automount_service_account_token, account.automount_service_account_token):
        if wish is not None:
            return wish
    return True


def _token_source() -> ProjectedVolumeSource:
    """Make the projected volume of token, certificate authority and namespace."""
    namespace = ObjectFieldSelector(api_version="v1", field_path="metadata.namespace")
    return ProjectedVolumeSource(
        default_mode=0o644,
        sources=[
            VolumeProjection(
                service_account_token=ServiceAccountTokenProjection(
                    path="token", expiration_seconds=TOKEN_SECONDS
                )
            ),
            VolumeProjection(
                config_map=ConfigMapProjection(
                    name="kube-root-ca.crt", items=[KeyToPath(key="ca.crt", path="ca.crt")]
                )
            ),
            VolumeProjection(
                downward_api=DownwardAPIProjection(
                    items=[DownwardAPIVolumeFile(path="namespace", field_ref=namespace)]
                )
            ),
        ],
    )


def _strange_secrets(pod: Pod, account: ServiceAccount, mountable: set[str]) -> Iterator[tuple[str, str]]:
    """Return the secrets a pod names that its account does not list, for accounts that enforce the list."""
    for volume in pod.spec.volumes:
        if volume.secret is not None and volume.secret.secret_name not in mountable:
            yield f'volume with secret.secretName="{volume.secret.secret_name}"', "secret"
    for container in pod.spec.init_containers:
        yield from _strange_in_container("init container", container, mountable)
    for container in pod.spec.containers:
        yield from _strange_in_container("container", container, mountable)
    pull = {reference.name for reference in account.image_pull_secrets}
    for position, reference in enumerate(pod.spec.image_pull_secrets):
        if reference.name not in pull:
            yield f'imagePullSecrets[{position}].name="{reference.name}"', "imagePullSecret"


def _strange_ephemeral(pod: Pod, mountable: set[str]) -> Iterator[tuple[str, str]]:
    for container in pod.spec.ephemeral_containers:
        yield from _strange_in_container("ephemeral container", container, mountable)


def _strange_in_container(
    what: str, container: Container | EphemeralContainer, mountable: set[str]
) -> Iterator[tuple[str, str]]:
    for variable in container.env:
        key = variable.value_from.secret_key_ref if variable.value_from is not None else None
        if key is not None and key.name not in mountable:
            text = f"{what} {container.name} with envVar {variable.name}"
            yield f'{text} referencing secret.secretName="{key.name}"', "secret"
    for source in container.env_from:
        if source.secret_ref is not None and source.secret_ref.name not in mountable:
            text = f"{what} {container.name} with envFrom"
            yield f'{text} referencing secret.secretName="{source.secret_ref.name}"', "secret"
