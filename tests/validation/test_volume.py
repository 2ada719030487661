"""Volumes of pods, source by source."""

from __future__ import annotations

from typing import Any

import pytest

from tests.validation.pods import check_pod
from tests.validation.tables import Case, case

_V = "spec.volumes[0]"
_MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def _volume(promise: str, source: dict[str, Any], *errors: str, **facts: Any) -> Case:
    return case(promise, {"spec.volumes": [{"name": "v", **source}]}, *errors, **facts)


@pytest.mark.parametrize(
    "one",
    [
        _volume("no source is an emptyDir", {}),
        case(
            "volumes have names of their own",
            {"spec.volumes": [{}, {"name": "A"}, {"name": "b"}, {"name": "b"}]},
            f"{_V}.name: Required value",
            'spec.volumes[1].name: Invalid value: "A": a lowercase RFC 1123 label must consist...',
            'spec.volumes[3].name: Duplicate value: "b"',
        ),
        _volume(
            "a volume has one source",
            {"emptyDir": {}, "cephfs": {"monitors": ["m"]}, "downwardAPI": {}},
            f"{_V}.cephFS: Forbidden: may not specify more than 1 volume type",
            f"{_V}.downwarAPI: Forbidden: may not specify more than 1 volume type",
        ),
        _volume(
            "an emptyDir has a size that is not negative",
            {"emptyDir": {"sizeLimit": "-1", "mode": 0o2000}},
            f"{_V}.emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity",
            f"{_V}.emptyDir.mode: Invalid value: 1024: must be a number between 0 and 01777 (octal), both inclusive",
        ),
        _volume("a path of the host needs a path", {"hostPath": {}}, f"{_V}.hostPath.path: Required value"),
        _volume(
            "a path of the host does not climb, and has a known type",
            {"hostPath": {"path": "/a/../b", "type": "Tape"}},
            f"{_V}.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
            f'{_V}.hostPath.type: Unsupported value: "Tape": supported values: "", "BlockDevice", "CharDevice", '
            '"Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"',
        ),
        _volume(
            "a secret is named, its files have keys, paths and modes",
            {"secret": {"defaultMode": 512, "items": [{"path": "../x", "mode": -1}, {"key": "k"}]}},
            f"{_V}.secret.secretName: Required value",
            f"{_V}.secret.defaultMode: Invalid value: 512: {_MODE}",
            f"{_V}.secret.items[0].key: Required value",
            f"{_V}.secret.items[0].path: Invalid value: \"../x\": must not contain '..'",
            f"{_V}.secret.items[0].mode: Invalid value: -1: {_MODE}",
            f"{_V}.secret.items[1].path: Required value",
        ),
        _volume(
            "a config map is named, and its files stay out of ours",
            {"configMap": {"items": [{"key": "k", "path": "..data"}]}},
            f"{_V}.configMap.name: Required value",
            f"{_V}.configMap.items[0].path: Invalid value: \"..data\": must not start with '..'",
        ),
        _volume(
            "a claim is named",
            {"persistentVolumeClaim": {}},
            f"{_V}.persistentVolumeClaim.claimName: Required value",
        ),
        _volume(
            "NFS has a server and an absolute path",
            {"nfs": {"path": "x"}},
            f"{_V}.nfs.server: Required value",
            f'{_V}.nfs.path: Invalid value: "x": must be an absolute path',
        ),
        _volume(
            "iSCSI has a portal, a qualified name and a small lun",
            {"iscsi": {"iqn": "iqn.bad", "lun": 256, "chapAuthSession": True, "initiatorName": "x"}},
            f"{_V}.iscsi.targetPortal: Required value",
            f'{_V}.iscsi.iqn: Invalid value: "iqn.bad": must be valid format',
            f"{_V}.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive",
            f"{_V}.iscsi.secretRef: Required value",
            f'{_V}.iscsi.initiatorname: Invalid value: "x": must be valid format starting with iqn, eui, or naa',
        ),
        _volume(
            "iSCSI names are taken",
            {"iscsi": {"targetPortal": "p", "iqn": "iqn.2001-04.com.example:storage", "lun": 0}},
        ),
        _volume(
            "fibre channel has targets or ids",
            {"fc": {"targetWWNs": ["a"], "wwids": ["b"]}},
            f'{_V}.fc.targetWWNs: Invalid value: ["a"]: targetWWNs and wwids can not be specified simultaneously',
            f"{_V}.fc.lun: Required value: lun is required if targetWWNs is specified",
        ),
        _volume(
            "disks of clouds are named",
            {"gcePersistentDisk": {"partition": -1}},
            f"{_V}.persistentDisk.pdName: Required value",
            f"{_V}.persistentDisk.partition: Invalid value: -1: must be between 1 and 255, inclusive",
        ),
        _volume(
            "managed Azure disks have their own URI",
            {"azureDisk": {"diskName": "d", "diskURI": "https://x", "kind": "Managed"}},
            f'{_V}.azureDisk.diskURI: Unsupported value: "https://x": supported values: "/subscriptions/{{sub-id}}/'
            'resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"',
        ),
        _volume(
            "flex options stay out of our domains",
            {"flexVolume": {"driver": "d", "options": {"kubernetes.io/x": "1", "a.k8s.io": "2"}}},
            f'{_V}.flexVolume.options[kubernetes.io/x]: Invalid value: "kubernetes.io/x": '
            "kubernetes.io and k8s.io namespaces are reserved",
            f'{_V}.flexVolume.options[a.k8s.io]: Invalid value: "a.k8s.io": '
            "kubernetes.io and k8s.io namespaces are reserved",
        ),
        _volume(
            "a CSI driver has a short name",
            {"csi": {"driver": "A" * 64, "nodePublishSecretRef": {}}},
            f"{_V}.csi.driver: Too long: may not be more than 63 bytes",
            f"{_V}.csi.nodePublishSecretRef.name: Required value",
        ),
        _volume(
            "an image volume has a reference",
            {"image": {"pullPolicy": "Rarely"}},
            f"{_V}.image.reference: Required value",
            f'{_V}.image.pullPolicy: Unsupported value: "Rarely": supported values: "Always", "IfNotPresent", '
            '"Never"',
        ),
        *(
            _volume(
                f"{name} needs what it cannot do without",
                {name: {}},
                *(f"{_V}.{e}: Required value..." for e in needed),
            )
            for name, needed in {
                "awsElasticBlockStore": ("awsElasticBlockStore.volumeID",),
                "gitRepo": ("gitRepo.repository",),
                "glusterfs": ("glusterfs.endpoints", "glusterfs.path"),
                "flocker": ("flocker",),
                "rbd": ("rbd.monitors", "rbd.image"),
                "cinder": ("cinder.volumeID",),
                "cephfs": ("cephfs.monitors",),
                "quobyte": ("quobyte.registry", "quobyte.volume"),
                "azureFile": ("azureFile.secretName", "azureFile.shareName"),
                "vsphereVolume": ("vsphereVolume.volumePath",),
                "photonPersistentDisk": ("photonPersistentDisk.pdID",),
                "portworxVolume": ("portworxVolume.volumeID",),
                "scaleIO": ("scaleIO.gateway", "scaleIO.system", "scaleIO.volumeName"),
                "storageos": ("storageos.volumeName",),
            }.items()
        ),
    ],
    ids=str,
)
def test_sources(one: Case) -> None:
    check_pod(one)


_DOWNWARD = f"{_V}.downwardAPI"


@pytest.mark.parametrize(
    "one",
    [
        _volume(
            "files show fields and resources",
            {
                "downwardAPI": {
                    "items": [
                        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                        {"path": "cpu", "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu"}},
                        {
                            "path": "pages",
                            "resourceFieldRef": {"containerName": "c", "resource": "requests.hugepages-2Mi"},
                        },
                    ]
                }
            },
        ),
        _volume(
            "files show the CPUs a container was assigned, whatever the gates say (KEP-6122)",
            {
                "downwardAPI": {
                    "items": [
                        {
                            "path": "cpus",
                            "resourceFieldRef": {"containerName": "c", "resource": "assigned.cpuset"},
                        }
                    ]
                }
            },
            off=("DownwardAPIAssignedResources",),
        ),
        _volume(
            "a list of CPUs cannot be divided",
            {
                "downwardAPI": {
                    "items": [
                        {
                            "path": "cpus",
                            "resourceFieldRef": {
                                "containerName": "c",
                                "resource": "assigned.cpuset",
                                "divisor": "2",
                            },
                        }
                    ]
                }
            },
            f'{_DOWNWARD}.resourceFieldRef.divisor: Invalid value: "assigned.cpuset": '
            "only divisor's value 1 is supported with the assigned.cpuset resource",
        ),
        _volume(
            "errors name the volume, not the file",
            {
                "downwardAPI": {
                    "defaultMode": 512,
                    "items": [
                        {},
                        {"path": "a", "fieldRef": {"fieldPath": "status.podIP"}},
                        {"path": "b", "resourceFieldRef": {"resource": "limits.cpu"}},
                        {"path": "c", "resourceFieldRef": {"containerName": "c", "resource": "limits.gpu"}},
                        {
                            "path": "d",
                            "fieldRef": {"fieldPath": "metadata.name"},
                            "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu"},
                        },
                    ],
                }
            },
            f"{_DOWNWARD}.defaultMode: Invalid value: 512: {_MODE}",
            f"{_DOWNWARD}.path: Required value",
            f"{_DOWNWARD}: Required value: one of fieldRef and resourceFieldRef is required",
            f'{_DOWNWARD}.fieldRef.fieldPath: Unsupported value: "status.podIP": supported values: '
            '"metadata.annotations", '
            '"metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"',
            f"{_DOWNWARD}.resourceFieldRef.containerName: Required value",
            f'{_DOWNWARD}.resourceFieldRef.resource: Unsupported value: "limits.gpu": supported values: '
            '"assigned.cpuset", '
            '"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", '
            '"requests.ephemeral-storage", '
            '"requests.memory"',
            f'{_DOWNWARD}: Invalid value: "resource": fieldRef and resourceFieldRef can not be specified '
            "simultaneously",
        ),
    ],
    ids=str,
)
def test_downward_api(one: Case) -> None:
    check_pod(one)


_P = f"{_V}.projected"
_S = f"{_P}.sources[0]"


def _projected(promise: str, *parts: object) -> Case:
    sources = [part for part in parts if isinstance(part, dict)]
    errors = [part for part in parts if isinstance(part, str)]
    change = {
        "spec.serviceAccountName": "default",
        "spec.volumes": [{"name": "v", "projected": {"sources": sources}}],
    }
    return case(promise, change, *errors)


@pytest.mark.parametrize(
    "one",
    [
        _projected(
            "what every pod gets is fine",
            {"serviceAccountToken": {"path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {
                "downwardAPI": {
                    "items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]
                }
            },
        ),
        _projected(
            "two sources do not write the same file",
            {"secret": {"name": "s", "items": [{"key": "k", "path": "a"}]}},
            {"configMap": {"name": "m", "items": [{"key": "k", "path": "a"}]}},
            f'{_P}: Invalid value: "m": conflicting duplicate paths',
        ),
        _projected(
            "a part has one source",
            {"secret": {"name": "s"}, "configMap": {"name": "m"}},
            f"{_S}: Forbidden: may not specify more than 1 volume type per source",
        ),
        _projected(
            "tokens live ten minutes at least and have a path",
            {"serviceAccountToken": {"expirationSeconds": 599}},
            f"{_S}.serviceAccountToken.expirationSeconds: Invalid value: 599: may not specify a duration less than "
            "10 minutes",
            f"{_P}.path: Required value",
        ),
        _projected(
            "trust bundles are named or belong to a signer",
            {"clusterTrustBundle": {"path": "p"}},
            {"clusterTrustBundle": {"path": "q", "name": "a:b/c:d", "labelSelector": {}}},
            {"clusterTrustBundle": {"path": "r", "signerName": "signer"}},
            f"{_S}.clusterTrustBundle: Required value: either name or signerName must be specified",
            f'{_P}.sources[1].clusterTrustBundle.name: Invalid value: "a:b/c:d": not a valid clustertrustbundlename: '
            "ClusterTrustBundle for signerName a/b/c must be named with prefix a:b:c:",
            f"{_P}.sources[1].clusterTrustBundle.labelSelector: Invalid value: {{}}: "
            "labelSelector must be unset if name is specified",
            f'{_P}.sources[2].clusterTrustBundle.signerName: Invalid value: "signer": must be a fully qualified '
            "domain "
            "and path of the form 'example.com/signer-name'",
        ),
        _projected(
            "certificates have a signer, a key type, a lifetime and a file",
            {
                "podCertificate": {
                    "signerName": "kubernetes.io/x",
                    "keyType": "DES",
                    "maxExpirationSeconds": 86401,
                    "userAnnotations": {"plain": "x"},
                }
            },
            f'{_S}.podCertificate.userAnnotations: Invalid value: "plain": must be a domain-prefixed key (such as '
            '"acme.io/foo")',
            f'{_S}.podCertificate.keyType: Unsupported value: "DES": supported values: "RSA3072", "RSA4096", '
            '"ECDSAP256", '
            '"ECDSAP384", "ECDSAP521", "ED25519"',
            f"{_S}.podCertificate.maxExpirationSeconds: Invalid value: 86401: "
            "if provided, maxExpirationSeconds must be <= 86400",
            f"{_S}.podCertificate: Required value: specify at least one of credentialBundlePath, keyPath, and "
            "certificateChainPath",
        ),
    ],
    ids=str,
)
def test_projected_volumes(one: Case) -> None:
    check_pod(one)


def test_tokens_need_a_service_account() -> None:
    check_pod(
        _volume(
            "",
            {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
            f"{_S}.serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set",
        )
    )


_T = f"{_V}.ephemeral.volumeClaimTemplate"
_SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


@pytest.mark.parametrize(
    "one",
    [
        _volume("a claim made for the pod is fine", {"ephemeral": {"volumeClaimTemplate": {"spec": _SPEC}}}),
        _volume("its template is needed", {"ephemeral": {}}, f"{_T}: Required value"),
        _volume(
            "a template has labels and annotations and nothing else",
            {
                "ephemeral": {
                    "volumeClaimTemplate": {"metadata": {"name": "x", "labels": {"a": "b"}}, "spec": _SPEC}
                }
            },
            f"{_T}.metadata.name: Forbidden: cannot be set",
        ),
        _volume(
            "a claim says how much and how it is used",
            {
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {"accessModes": ["Often", "ReadWriteOncePod", "ReadOnlyMany"]}
                    }
                }
            },
            f'{_T}.spec.accessModes: Unsupported value: "Often": supported values: "ReadOnlyMany", "ReadWriteMany", '
            '"ReadWriteOnce", "ReadWriteOncePod"',
            f"{_T}.spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
            f"{_T}.spec.resources[storage]: Required value",
        ),
        case(
            "nobody else uses the claim that is made",
            {
                "spec.volumes": [
                    {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": _SPEC}}},
                    {"name": "w", "persistentVolumeClaim": {"claimName": "a-v"}},
                ]
            },
            'spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: "a-v": '
            "must not reference a PVC that gets created for an ephemeral volume",
        ),
    ],
    ids=str,
)
def test_ephemeral_claims(one: Case) -> None:
    check_pod(one)
