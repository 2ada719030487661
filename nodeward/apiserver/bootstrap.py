"""Objects every cluster has from its start: system namespaces, RBAC, priority classes, the `kubernetes` service.

Called by `server.py` at every start: missing objects are created, what administrators changed is kept (roles only gain
permissions). Namespaces and the service are also created again while the server runs: `kubectl delete all --all`
deletes the service.
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
from nodeward.apiserver.auth.reconcile import RbacChange, RbacStep, reconcile
from nodeward.apiserver.environment import Environment
from nodeward.machinery.client import Client

LOG = logging.getLogger(__name__)

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_RBAC: tuple[type[KubeObject], ...] = (ClusterRole, ClusterRoleBinding, Role, RoleBinding)


async def bootstrap(env: Environment, client: Client, *, port: int) -> None:
    """Create what is missing, through the API like any client."""
    await _namespaces(env, client)
    await _policy(env, client)
    for wanted in system_classes():
        if env.peek(PriorityClass, wanted.metadata.name) is None:
            await _create(client, wanted)
    await _service(env, client, port)


async def repair(env: Environment, client: Client, *, port: int) -> None:
    """Create again what has been deleted since."""
    await _namespaces(env, client)
    await _service(env, client, port)


async def _namespaces(env: Environment, client: Client) -> None:
    await asyncio.gather(
        *(_create(client, Namespace(metadata=ObjectMeta(name=name))) for name in missing(env))
    )


async def _service(env: Environment, client: Client, port: int) -> None:
    """Return the `kubernetes` service, which leads to the port this server answers on."""
    wanted = _kubernetes_service(env, port)
    found = env.peek(Service, "kubernetes", "default")
    if found is None:
        await _create(client, wanted)
    elif [_way(each) for each in found.spec.ports] != [_way(each) for each in wanted.spec.ports]:
        # A cached object is shared: change a copy.
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
    # Created concurrently, so that the store commits them together.
    await asyncio.gather(*(_write(client, change) for change in reconcile(existing, bootstrap_objects())))


async def _write(client: Client, change: RbacChange) -> None:
    match change.step:
        case RbacStep.CREATE:
            await _create(client, change.obj)
        case RbacStep.UPDATE:
            await client.update(change.obj)
        case RbacStep.RECREATE:
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
    """List the system namespaces that do not exist yet, for the readiness check."""
    return (name for name in NAMESPACES if env.peek(Namespace, name) is None)
