"""Every pod gets an account and its token."""

from __future__ import annotations

from typing import Any

from nodeward.api.codec import to_tree
from nodeward.api.core_v1.container import (
    Container,
    EnvVar,
    EnvVarSource,
    EphemeralContainer,
    VolumeMount,
)
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.references import LocalObjectReference, ObjectReference, SecretKeySelector
from nodeward.api.core_v1.volume import (
    ProjectedVolumeSource,
    ServiceAccountTokenProjection,
    Volume,
    VolumeProjection,
)
from nodeward.api.core_v1.volume_sources import SecretVolumeSource
from nodeward.apiserver.admission.service_account import MOUNT_PATH, ServiceAccountPlugin
from nodeward.rules.pod_references import MIRROR
from tests.apiserver.admission.world import account, admitted, copy, create, forbidden, pod, update, world


def test_a_pod_runs_as_the_default_account_with_its_token_in_every_container() -> None:
    plugin = ServiceAccountPlugin(world(account()))
    made = admitted(plugin, create(pod(init_containers=[Container(name="i")])))
    assert (made.spec.service_account_name, made.spec.service_account) == ("default", "default")
    (volume,) = made.spec.volumes
    assert volume.name.startswith("kube-api-access-")
    assert len(volume.name) == len("kube-api-access-") + 5
    assert to_tree(volume.projected) == {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
            {
                "downwardAPI": {
                    "items": [
                        {
                            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                            "path": "namespace",
                        }
                    ]
                }
            },
        ],
    }
    mount = {"name": volume.name, "readOnly": True, "mountPath": MOUNT_PATH}
    for container in (*made.spec.containers, *made.spec.init_containers):
        assert to_tree(container.volume_mounts) == [mount]


def test_a_container_with_its_own_mount_there_is_left_alone() -> None:
    own = Container(name="c", volume_mounts=[VolumeMount(name="v", mount_path=MOUNT_PATH)])
    made = admitted(ServiceAccountPlugin(world(account())), create(pod(containers=[own])))
    assert made.spec.volumes == []
    assert len(made.spec.containers[0].volume_mounts) == 1


def test_a_token_volume_that_is_there_already_is_used() -> None:
    made = admitted(
        ServiceAccountPlugin(world(account())), create(pod(volumes=[Volume(name="kube-api-access-abcde")]))
    )
    assert [volume.name for volume in made.spec.volumes] == ["kube-api-access-abcde"]
    assert made.spec.containers[0].volume_mounts[0].name == "kube-api-access-abcde"


def test_the_wish_of_the_pod_goes_before_that_of_the_account() -> None:
    plugin = ServiceAccountPlugin(world(account(automount_service_account_token=False)))
    assert admitted(plugin, create(pod())).spec.volumes == []
    assert len(admitted(plugin, create(pod(automount_service_account_token=True))).spec.volumes) == 1


def test_pull_secrets_come_from_the_account_unless_the_pod_has_its_own() -> None:
    plugin = ServiceAccountPlugin(world(account(image_pull_secrets=[LocalObjectReference(name="pull")])))
    assert [each.name for each in admitted(plugin, create(pod())).spec.image_pull_secrets] == ["pull"]
    own = pod(image_pull_secrets=[LocalObjectReference(name="own")])
    assert [each.name for each in admitted(plugin, create(own)).spec.image_pull_secrets] == ["own"]


def test_a_missing_account_is_named() -> None:
    write = create(pod(service_account_name="robot"))
    assert forbidden(ServiceAccountPlugin(world()), write) == (
        'error looking up service account default/robot: serviceaccount "robot" not found'
    )


def mirror(**spec: Any) -> Pod:
    made = pod(**spec)
    made.metadata.annotations[MIRROR] = "hash"
    return made


def test_a_copy_of_a_static_pod_is_not_touched() -> None:
    made = mirror()
    before = copy(made)
    assert admitted(ServiceAccountPlugin(world()), create(made)) == before


def test_a_copy_of_a_static_pod_may_name_neither_account_nor_secret() -> None:
    plugin = ServiceAccountPlugin(world(account()))
    token = VolumeProjection(service_account_token=ServiceAccountTokenProjection(path="t"))
    for made, why in (
        (mirror(service_account_name="default"), "a mirror pod may not reference service accounts"),
        (
            mirror(volumes=[Volume(name="v", secret=SecretVolumeSource(secret_name="s"))]),
            "a mirror pod may not reference secrets",
        ),
        (
            mirror(volumes=[Volume(name="v", projected=ProjectedVolumeSource(sources=[token]))]),
            "a mirror pod may not use ServiceAccountToken volume projections",
        ),
    ):
        assert forbidden(plugin, create(made)) == why


def test_an_account_can_insist_on_the_secrets_it_lists() -> None:
    strict = account(secrets=[ObjectReference(name="listed")])
    strict.metadata.annotations["kubernetes.io/enforce-mountable-secrets"] = "true"
    plugin = ServiceAccountPlugin(world(strict))

    def volumes(name: str) -> list[Volume]:
        return [Volume(name="v", secret=SecretVolumeSource(secret_name=name))]

    admitted(plugin, create(pod(volumes=volumes("listed"))))
    end = "is not allowed because service account default does not reference that"
    assert forbidden(plugin, create(pod(volumes=volumes("other")))) == (
        f'volume with secret.secretName="other" {end} secret'
    )
    pulling = pod(image_pull_secrets=[LocalObjectReference(name="pull")])
    assert forbidden(plugin, create(pulling)) == f'imagePullSecrets[0].name="pull" {end} imagePullSecret'
    key = EnvVarSource(secret_key_ref=SecretKeySelector(name="other", key="k"))
    variable = EnvVar(name="E", value_from=key)
    text = f'container c with envVar E referencing secret.secretName="other" {end} secret'
    assert forbidden(plugin, create(pod(containers=[Container(name="c", env=[variable])]))) == text
    running = pod(service_account_name="default")
    debugged = copy(running)
    debugged.spec.ephemeral_containers = [EphemeralContainer(name="c", env=[variable])]
    assert forbidden(plugin, update(debugged, running, "ephemeralcontainers")) == f"ephemeral {text}"
