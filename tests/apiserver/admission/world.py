"""A server's caches filled with a few objects, and writes as they arrive at admission."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.codec import decoder, encode, to_stored
from nodeward.api.core_v1.cluster import Namespace, NamespaceStatus, ServiceAccount
from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.errors import ApiError
from nodeward.api.meta import KubeObject, ObjectMeta
from nodeward.api.scheme import SCHEME
from nodeward.apiserver.admission.chain import AdmissionChain
from nodeward.apiserver.admission.plugin import AdmissionPlugin, Write
from nodeward.apiserver.auth.user import User
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.hub import Hub
from nodeward.base.quantity import Quantity
from nodeward.features import FRAMEWORK, Framework, Gates
from nodeward.machinery.clock import SeededChance
from nodeward.machinery.virtual_loop import run_virtual, virtual_clock
from nodeward.store.memory import MemoryStore

ADMIN = User("admin", groups=("system:masters", "system:authenticated"))


def kubelet(node: str) -> User:
    return User(f"system:node:{node}", groups=("system:nodes", "system:authenticated"))


def meta(name: str, namespace: str = "", **more: Any) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace, **more)


def namespace(name: str, phase: str = "Active") -> Namespace:
    return Namespace(metadata=meta(name), status=NamespaceStatus(phase=phase))


def account(name: str = "default", namespace: str = "default", **more: Any) -> ServiceAccount:
    return ServiceAccount(metadata=meta(name, namespace), **more)


def amounts(**given: str) -> dict[str, Quantity]:
    """`cpu="1"`; two underscores stand for a dot, one for a slash."""
    return {name.replace("__", ".").replace("_", "/"): Quantity.parse(text) for name, text in given.items()}


def pod(name: str = "p", namespace: str = "default", **spec: Any) -> Pod:
    spec.setdefault("containers", [Container(name="c", image="i")])
    return Pod(metadata=meta(name, namespace, uid=f"uid-{name}"), spec=PodSpec(**spec))


def asking(name: str = "c", requests: dict[str, Quantity] | None = None, **limits: str) -> Container:
    return Container(
        name=name, resources=ResourceRequirements(requests=requests or {}, limits=amounts(**limits))
    )


def world(
    *objects: KubeObject, gates: str = "", version: str = "1.37", features: Framework = FRAMEWORK
) -> Environment:
    """The surroundings of a server that holds these objects."""
    return run_virtual(_world(objects, Gates.of(version, gates), features))


async def _world(objects: tuple[KubeObject, ...], gates: Gates, features: Framework) -> Environment:
    clock = virtual_clock()
    store = MemoryStore()
    await store.open()
    hub = Hub(store, SCHEME, clock)
    for obj in (namespace("default"), *objects):
        kind = SCHEME.by_type(type(obj))
        key = hub.key(kind, obj.metadata.namespace, obj.metadata.name)
        await store.put(key, to_stored(obj), expected=0)
    hub_revision = await store.revision()
    # Nothing is written afterwards, so loading is enough and the hub can be stopped at once.
    await hub.start()
    assert hub.revision == hub_revision
    await hub.stop()
    return Environment(hub, SCHEME, clock, SeededChance(1), gates, features=features)


def put(env: Environment, obj: KubeObject) -> None:
    """Let a committed write arrive in the caches."""
    kind = SCHEME.by_type(type(obj))
    name = obj.metadata.name
    key = f"{obj.metadata.namespace}/{name}" if kind.is_namespaced else name
    env.hub.revision += 1
    env.hub.cache(kind).apply(key, to_stored(obj), env.hub.revision)


def remove(env: Environment, obj: KubeObject) -> None:
    kind = SCHEME.by_type(type(obj))
    env.hub.revision += 1
    env.hub.cache(kind).apply(f"{obj.metadata.namespace}/{obj.metadata.name}", None, env.hub.revision)


def copy(obj: Any) -> Any:
    return decoder(type(obj)).decode(encode(obj))


def create(obj: Any, user: User = ADMIN, **more: Any) -> Write:
    kind = SCHEME.by_type(type(obj))
    where = obj.metadata
    return Write("CREATE", kind, where.namespace, where.name, "", user, obj, None, **more)


def update(new: Any, old: Any, subresource: str = "", user: User = ADMIN) -> Write:
    kind = SCHEME.by_type(type(new))
    where = old.metadata
    return Write("UPDATE", kind, where.namespace, where.name, subresource, user, new, old)


def delete(obj: Any, user: User = ADMIN) -> Write:
    kind = SCHEME.by_type(type(obj))
    where = obj.metadata
    return Write("DELETE", kind, where.namespace, where.name, "", user, None, obj)


def send(obj: Any, subresource: str, sent: Any, user: User = ADMIN) -> Write:
    """Something created below an object."""
    kind = SCHEME.by_type(type(obj))
    where = obj.metadata
    return Write("CREATE", kind, where.namespace, where.name, subresource, user, None, obj, sent=sent)


def admitted(plugin: AdmissionPlugin, write: Write) -> Any:
    """The object as the plugin lets it through."""
    chain = AdmissionChain([plugin])
    if write.operation != "DELETE":
        chain.admit(write)
    chain.validate(write)
    return write.new


def refused(plugin: AdmissionPlugin, write: Write) -> ApiError:
    with pytest.raises(ApiError) as caught:
        admitted(plugin, write)
    return caught.value


def forbidden(plugin: AdmissionPlugin, write: Write) -> str:
    """Why the plugin refuses: the part after `is forbidden: `."""
    error = refused(plugin, write)
    start = f'{write.kind.qualified_resource} "{write.name}" is forbidden: '
    assert error.code == 403
    assert str(error).startswith(start)
    return str(error)[len(start) :]
