"""Controllers beside an API server in the same process, each in the name and with the rights of its service account."""

from __future__ import annotations

from nodeward.apiserver.auth.user import AUTHENTICATED, User, service_account_groups, service_account_name
from nodeward.apiserver.server import ApiServer
from nodeward.controllers.runner import MANAGER, Runner
from nodeward.features import Gates
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock, RealChance

_NAMESPACE = "kube-system"


def controllers_of(server: ApiServer, clock: Clock, gates: Gates, root_ca: str) -> Runner:
    """The controllers of a cluster, not at work yet."""
    return Runner(lambda name: client_of(server, name), clock, RealChance(), gates=gates, root_ca=root_ca)


def client_of(server: ApiServer, name: str) -> Client:
    """The client of one controller, or of the informers they share."""
    if name == MANAGER:
        user = User(f"system:{MANAGER}", groups=(AUTHENTICATED,))
    else:
        groups = (*service_account_groups(_NAMESPACE), AUTHENTICATED)
        user = User(service_account_name(_NAMESPACE, name), groups=groups)
    return server.client(name, user)
