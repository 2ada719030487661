"""A second opinion: Kubernetes messages written down by hand, and encoded by Google's library.

Only the fields the tests use. A field is `number name type`; `*` marks a list, `{}` a map from strings; types that
start with a capital are messages. Which parts are messages of their own on the wire is written out here, where JSON
has them flat (`Volume.volumeSource`, `Probe.handler`).
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.message import Message

_MESSAGES = """
TypeMeta: 1 apiVersion string, 2 kind string
Unknown: 1 typeMeta TypeMeta, 2 raw bytes, 3 contentEncoding string, 4 contentType string
Timestamp: 1 seconds int64, 2 nanos int32
Quantity: 1 string string
IntOrString: 1 type int64, 2 intVal int32, 3 strVal string
RawJson: 1 raw bytes
Strings: 1 items string*
ManagedFieldsEntry: 1 manager string, 4 time Timestamp, 7 fieldsV1 RawJson
OwnerReference: 1 kind string, 3 name string, 4 uid string, 5 apiVersion string, 6 controller bool
ObjectMeta: 1 name string, 2 generateName string, 3 namespace string, 7 generation int64, \
  8 creationTimestamp Timestamp, 11 labels string{}, 12 annotations string{}, 13 ownerReferences OwnerReference*, \
  17 managedFields ManagedFieldsEntry*
Preconditions: 1 uid string, 2 resourceVersion string
DeleteOptions: 1 gracePeriodSeconds int64, 2 preconditions Preconditions, 4 propagationPolicy string, 5 dryRun string*
LabelSelectorRequirement: 1 key string, 2 operator string, 3 values string*
LabelSelector: 1 matchLabels string{}, 2 matchExpressions LabelSelectorRequirement*
NamespaceSpec: 1 finalizers string*
Namespace: 1 metadata ObjectMeta, 2 spec NamespaceSpec
Secret: 1 metadata ObjectMeta, 2 data bytes{}, 3 type string, 4 stringData string{}, 5 immutable bool
ConfigMap: 1 metadata ObjectMeta, 2 data string{}, 3 binaryData bytes{}
ContainerPort: 1 name string, 2 hostPort int32, 3 containerPort int32, 4 protocol string
LocalObjectReference: 1 name string
ConfigMapKeySelector: 1 localObjectReference LocalObjectReference, 2 key string, 3 optional bool
EnvVarSource: 3 configMapKeyRef ConfigMapKeySelector
EnvVar: 1 name string, 2 value string, 3 valueFrom EnvVarSource
ResourceRequirements: 1 limits Quantity{}, 2 requests Quantity{}
VolumeMount: 1 name string, 2 readOnly bool, 3 mountPath string
HttpGetAction: 1 path string, 2 port IntOrString, 3 host string, 4 scheme string
ProbeHandler: 2 httpGet HttpGetAction
Probe: 1 handler ProbeHandler, 2 initialDelaySeconds int32, 3 timeoutSeconds int32
Container: 1 name string, 2 image string, 3 command string*, 6 ports ContainerPort*, 7 env EnvVar*, \
  8 resources ResourceRequirements, 9 volumeMounts VolumeMount*, 11 readinessProbe Probe
EmptyDirVolumeSource: 1 medium string, 2 sizeLimit Quantity
KeyToPath: 1 key string, 2 path string, 3 mode int32
ConfigMapVolumeSource: 1 localObjectReference LocalObjectReference, 2 items KeyToPath*, 3 defaultMode int32
VolumeSource: 2 emptyDir EmptyDirVolumeSource, 19 configMap ConfigMapVolumeSource
Volume: 1 name string, 2 volumeSource VolumeSource
PodSecurityContext: 2 runAsUser int64, 3 runAsNonRoot bool, 4 supplementalGroups int64*
EphemeralContainerCommon: 1 name string, 2 image string
EphemeralContainer: 1 common EphemeralContainerCommon, 2 targetContainerName string
PodSpec: 1 volumes Volume*, 2 containers Container*, 4 terminationGracePeriodSeconds int64, 7 nodeSelector string{}, \
  14 securityContext PodSecurityContext, 25 priority int32, 34 ephemeralContainers EphemeralContainer*
PodStatus: 1 phase string, 7 startTime Timestamp
Pod: 1 metadata ObjectMeta, 2 spec PodSpec, 3 status PodStatus
PodTemplateSpec: 1 metadata ObjectMeta, 2 spec PodSpec
RollingUpdateDeployment: 1 maxUnavailable IntOrString, 2 maxSurge IntOrString
DeploymentStrategy: 1 type string, 2 rollingUpdate RollingUpdateDeployment
DeploymentSpec: 1 replicas int32, 2 selector LabelSelector, 3 template PodTemplateSpec, 4 strategy DeploymentStrategy, \
  7 paused bool
Deployment: 1 metadata ObjectMeta, 2 spec DeploymentSpec
ControllerRevision: 1 metadata ObjectMeta, 2 data RawJson, 3 revision int64
LeaseSpec: 1 holderIdentity string, 2 leaseDurationSeconds int32, 3 acquireTime Timestamp, 4 renewTime Timestamp
Lease: 1 metadata ObjectMeta, 2 spec LeaseSpec
ResourceAttributes: 1 namespace string, 2 verb string, 3 group string, 4 version string, 5 resource string
SelfSubjectAccessReviewSpec: 1 resourceAttributes ResourceAttributes
SelfSubjectAccessReview: 1 metadata ObjectMeta, 2 spec SelfSubjectAccessReviewSpec
SubjectAccessReviewSpec: 1 resourceAttributes ResourceAttributes, 3 user string, 4 groups string*, 5 extra Strings{}
SubjectAccessReview: 1 metadata ObjectMeta, 2 spec SubjectAccessReviewSpec
Eviction: 1 metadata ObjectMeta, 2 deleteOptions DeleteOptions
BoundObjectReference: 1 kind string, 2 apiVersion string, 3 name string, 4 uid string
TokenRequestSpec: 1 audiences string*, 3 boundObjectRef BoundObjectReference, 4 expirationSeconds int64
TokenRequest: 1 metadata ObjectMeta, 2 spec TokenRequestSpec
ScaleSpec: 1 replicas int32
Scale: 1 metadata ObjectMeta, 2 spec ScaleSpec
ResourceSliceSpec: 1 driver string, 10 skipNodeOperations string*
ResourceSlice: 1 metadata ObjectMeta, 2 spec ResourceSliceSpec
"""

_FIELD = descriptor_pb2.FieldDescriptorProto
_PLAIN = {
    "string": _FIELD.TYPE_STRING,
    "bytes": _FIELD.TYPE_BYTES,
    "bool": _FIELD.TYPE_BOOL,
    "int32": _FIELD.TYPE_INT32,
    "int64": _FIELD.TYPE_INT64,
}


def _set_type(field: descriptor_pb2.FieldDescriptorProto, type_: str) -> None:
    if type_ in _PLAIN:
        field.type = _PLAIN[type_]
    else:
        field.type = _FIELD.TYPE_MESSAGE
        field.type_name = f".k8s.{type_}"


def _add_field(message: descriptor_pb2.DescriptorProto, text: str) -> None:
    number, name, type_ = text.split()
    field = message.field.add(name=name, json_name=name, number=int(number), label=_FIELD.LABEL_OPTIONAL)
    if type_.endswith(("*", "{}")):
        field.label = _FIELD.LABEL_REPEATED
    if not type_.endswith("{}"):
        _set_type(field, type_.removesuffix("*"))
        return
    entry = message.nested_type.add(name=f"{name[0].upper()}{name[1:]}Entry")
    entry.options.map_entry = True
    _set_type(entry.field.add(name="key", number=1, label=_FIELD.LABEL_OPTIONAL), "string")
    _set_type(entry.field.add(name="value", number=2, label=_FIELD.LABEL_OPTIONAL), type_.removesuffix("{}"))
    field.type = _FIELD.TYPE_MESSAGE
    field.type_name = f".k8s.{message.name}.{entry.name}"


def _pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(name="k8s.proto", package="k8s", syntax="proto2")
    for line in _MESSAGES.strip().splitlines():
        name, _, fields = line.partition(":")
        message = file.message_type.add(name=name)
        for field in fields.split(","):
            _add_field(message, field)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


_POOL = _pool()


def message(name: str, content: dict[str, Any]) -> Message:
    """A message of that name; bytes are given as base64, as in JSON."""
    built = message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"k8s.{name}"))()
    json_format.ParseDict(content, built)
    return built


def envelope(api_version: str, kind: str, raw: bytes, **others: str) -> bytes:
    """What goes over the wire."""
    unknown = message("Unknown", {"typeMeta": {"apiVersion": api_version, "kind": kind}, **others})
    unknown.raw = raw  # type: ignore[attr-defined]
    return b"k8s\x00" + unknown.SerializeToString()


def body(api_version: str, kind: str, content: dict[str, Any]) -> bytes:
    """An object in its envelope."""
    return envelope(api_version, kind, message(kind, content).SerializeToString())


def varint(number: int) -> bytes:
    """As the library writes numbers, behind a tag of one byte."""
    return message("ObjectMeta", {"generation": number}).SerializeToString()[1:]


def tag(number: int, wire: int) -> bytes:
    """What stands before a value."""
    return varint(number << 3 | wire)


def delimited(number: int, content: bytes) -> bytes:
    """A string, bytes or a message, with its tag."""
    return tag(number, 2) + varint(len(content)) + content
