"""Authorization checks in expressions: `authorizer.group("").resource("pods").check("get").allowed()`.

Only the declarations: no environment has the variable `authorizer` yet, so that nothing can be asked. They are here
because the checker's messages depend on which names exist.
"""

from __future__ import annotations

from typing import Final

from nodeward.cel import cel_types as t
from nodeward.cel.declarations import Function, Overload, no_such_overload
from nodeward.cel.values import Value


def _kind(name: str) -> t.CelType:
    return t.struct(f"kubernetes.authorization.{name}")


_AUTHORIZER, _PATH, _GROUP = _kind("Authorizer"), _kind("PathCheck"), _kind("GroupCheck")
_RESOURCE, _DECISION = _kind("ResourceCheck"), _kind("Decision")
_S: Final = t.STRING


def _declare(name: str, *overloads: tuple[str, tuple[t.CelType, ...], t.CelType]) -> Function:
    def run(*arguments: Value) -> Value:
        raise no_such_overload(name, arguments)

    return Function(name, tuple(Overload(*each, run, is_member=True) for each in overloads))


AUTHORIZATION: Final = (
    _declare("path", ("authorizer_path", (_AUTHORIZER, _S), _PATH)),
    _declare("group", ("authorizer_group", (_AUTHORIZER, _S), _GROUP)),
    _declare("serviceAccount", ("authorizer_serviceaccount", (_AUTHORIZER, _S, _S), _AUTHORIZER)),
    _declare("resource", ("groupcheck_resource", (_GROUP, _S), _RESOURCE)),
    _declare("subresource", ("resourcecheck_subresource", (_RESOURCE, _S), _RESOURCE)),
    _declare("namespace", ("resourcecheck_namespace", (_RESOURCE, _S), _RESOURCE)),
    _declare("name", ("resourcecheck_name", (_RESOURCE, _S), _RESOURCE)),
    _declare(
        "check",
        ("pathcheck_check", (_PATH, _S), _DECISION),
        ("resourcecheck_check", (_RESOURCE, _S), _DECISION),
    ),
    _declare("errored", ("decision_errored", (_DECISION,), t.BOOL)),
    _declare("error", ("decision_error", (_DECISION,), _S)),
    _declare("allowed", ("decision_allowed", (_DECISION,), t.BOOL)),
    _declare("reason", ("decision_reason", (_DECISION,), _S)),
    _declare("fieldSelector", ("authorizer_fieldselector", (_RESOURCE, _S), _RESOURCE)),
    _declare("labelSelector", ("authorizer_labelselector", (_RESOURCE, _S), _RESOURCE)),
)
