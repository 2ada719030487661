"""Who the parts of a cluster are to its API server: each speaks in its own name, with its own rights and no others."""

from __future__ import annotations

from typing import Final

from nodeward.apiserver.auth.user import AUTHENTICATED, User, service_account_groups, service_account_name
from nodeward.apiserver.server import ApiServer
from nodeward.controllers.runner import MANAGER
from nodeward.machinery.client import Client

_NAMESPACE: Final = "kube-system"
SCHEDULER: Final = User("system:kube-scheduler", groups=(AUTHENTICATED,))
#: One process that is thousands of nodes has the rights of none and of all.
FLEET: Final = User("system:nodeward:fleet", groups=("system:masters", AUTHENTICATED))


def node_user(name: str) -> User:
    """A kubelet with a node's own rights."""
    return User(f"system:node:{name}", groups=("system:nodes", AUTHENTICATED))


def controller_user(name: str) -> User:
    """Who one controller is, or the informers they share."""
    if name == MANAGER:
        return User(f"system:{MANAGER}", groups=(AUTHENTICATED,))
    groups = (*service_account_groups(_NAMESPACE), AUTHENTICATED)
    return User(service_account_name(_NAMESPACE, name), groups=groups)


def controller_client(server: ApiServer, name: str) -> Client:
    """The client of one controller, or of the informers they share."""
    return server.client(name, controller_user(name))
