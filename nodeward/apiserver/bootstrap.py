"""What a cluster has from the first moment: system namespaces, roles and bindings, priority classes, its own service.

Run at every start: what is missing is made, what administrators changed is left alone (roles only gain permissions).
Namespaces and the service are looked after from then on: `kubectl delete all --all` takes the service with it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Iterable

import msgspec

from nodeward.api.core_v1.cluster import Namespace
from nodeward.api.core_v1.service import Service, ServicePort, ServiceSpec
from nodeward.api.errors import ApiError
from nodeward.api.meta import KubeObject, ObjectMeta
from nodeward.api.rbac_v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from nodeward.api.scheduling_v1 import PriorityClass
from nodeward.apiserver.admission.priority import system_classes
from nodeward.apiserver.auth.bootstrap_policy import bootstrap_objects
from nodeward.apiserver.auth.reconcile import Change, Step, reconcile
from nodeward.apiserver.environment import Environment
from nodeward.machinery.client import Client

LOG = logging.getLogger(__name__)

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_RBAC: tuple[type[KubeObject], ...] = (ClusterRole, ClusterRoleBinding, Role, RoleBinding)


async def bootstrap(env: Environment, client: Client, *, port: int) -> None:
    """Make what is missing, through the API like anybody else."""
    await _namespaces(env, client)
    await _policy(env, client)
    for wanted in system_classes():
        if env.peek(PriorityClass, wanted.metadata.name) is None:
            await _create(client, wanted)
    await _service(env, client, port)


async def repair(env: Environment, client: Client, *, port: int) -> None:
    """Make again what has gone since: somebody deleted it."""
    await _namespaces(env, client)
    await _service(env, client, port)


async def _namespaces(env: Environment, client: Client) -> None:
    await asyncio.gather(
        *(_create(client, Namespace(metadata=ObjectMeta(name=name))) for name in missing(env))
    )


async def _service(env: Environment, client: Client, port: int) -> None:
    """The cluster's own service; it leads to the port this server answers on."""
    wanted = _kubernetes_service(env, port)
    found = env.peek(Service, "kubernetes", "default")
    if found is None:
        await _create(client, wanted)
    elif [_way(each) for each in found.spec.ports] != [_way(each) for each in wanted.spec.ports]:
        # What is peeked at is shared: a change goes into a copy.
        spec = msgspec.structs.replace(found.spec, ports=wanted.spec.ports)
        try:
            await client.update(msgspec.structs.replace(found, spec=spec))
        except ApiError as error:
            if error.reason not in ("Conflict", "NotFound"):  # somebody was faster; there is a next time
                raise


def _way(port: ServicePort) -> tuple[str, str, int, int | str | None]:
    return port.name, port.protocol, port.port, port.target_port


async def _create(client: Client, obj: KubeObject) -> None:
    try:
        await client.create(obj)
    except ApiError as error:
        if error.reason != "AlreadyExists":  # another server was faster
            raise


async def _policy(env: Environment, client: Client) -> None:
    existing: list[KubeObject] = [obj for kind in _RBAC for obj in env.peek_all(kind)]
    # All at once: the store commits them together.
    await asyncio.gather(*(_write(client, change) for change in reconcile(existing, bootstrap_objects())))


async def _write(client: Client, change: Change) -> None:
    match change.step:
        case Step.CREATE:
            await _create(client, change.obj)
        case Step.UPDATE:
            await client.update(change.obj)
        case Step.RECREATE:
            await client.delete(type(change.obj), change.obj.metadata.name, change.obj.metadata.namespace)
            await _create(client, change.obj)


def _kubernetes_service(env: Environment, port: int) -> Service:
    network = ipaddress.ip_network(env.service_cidr)
    return Service(
        metadata=ObjectMeta(
            name="kubernetes",
            namespace="default",
            labels={"component": "apiserver", "provider": "kubernetes"},
        ),
        spec=ServiceSpec(
            ports=[ServicePort(name="https", protocol="TCP", port=443, target_port=port)],
            cluster_ip=str(network[1]),
            type="ClusterIP",
            session_affinity="None",
        ),
    )


def missing(env: Environment) -> Iterable[str]:
    """The system namespaces that are not there yet, for the readiness check."""
    return (name for name in NAMESPACES if env.peek(Namespace, name) is None)
