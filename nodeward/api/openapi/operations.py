"""The operations of each path, independent of the version of OpenAPI in which they are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from nodeward.api.meta import DeleteOptions, Status
from nodeward.api.openapi.definitions import GroupVersionKind
from nodeward.api.openapi.names import definition_name, list_definition_name, operation_group, tag
from nodeward.api.scheme import Kind, Subresource


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the path or the query."""

    name: str
    place: str
    type: str
    description: str


def _query(name: str, type_: str, description: str) -> Parameter:
    return Parameter(name, "query", type_, description)


NAME = Parameter("name", "path", "string", "Name of the object.")
NAMESPACE = Parameter("namespace", "path", "string", "Namespace of the object.")
PRETTY = _query("pretty", "string", "Whether the answer is indented.")
_DRY_RUN = _query("dryRun", "string", "All: do everything but keep the result.")
_WRITE = (
    _DRY_RUN,
    _query("fieldManager", "string", "Who makes the change."),
    _query("fieldValidation", "string", "Ignore, Warn or Strict: what unknown and repeated fields get."),
)
_PATCH = (*_WRITE, _query("force", "boolean", "Whether an apply takes fields from others."))
_SELECT = (
    _query("continue", "string", "Where the page before this one ended."),
    _query("fieldSelector", "string", "Only objects with these fields."),
    _query("labelSelector", "string", "Only objects with these labels."),
    _query("limit", "integer", "Most objects in one answer."),
    _query("resourceVersion", "string", "How fresh the answer must be."),
    _query("resourceVersionMatch", "string", "Exact, or not older than the version given."),
    _query("sendInitialEvents", "boolean", "Whether a watch starts with what is there."),
    _query("timeoutSeconds", "integer", "How long the request may last."),
)
_LIST = (
    _query("allowWatchBookmarks", "boolean", "Whether a watch may send bookmarks."),
    *_SELECT,
    _query("watch", "boolean", "Send changes as they happen instead of a list."),
)
_DELETE = (
    _DRY_RUN,
    _query("gracePeriodSeconds", "integer", "Seconds before the object goes."),
    _query(
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "boolean",
        "Whether to delete an object that cannot be read.",
    ),
    _query("orphanDependents", "boolean", "Whether dependents stay; propagationPolicy is the newer way."),
    _query("propagationPolicy", "string", "Orphan, Background or Foreground: what happens to dependents."),
)

_CREATED = ("200", "201", "202")


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    #: what Kubernetes calls it: list, get, post, put, patch, delete, deletecollection
    action: str
    id: str
    tag: str
    kind: GroupVersionKind
    description: str
    parameters: tuple[Parameter, ...]
    #: definition of what is sent; None: nothing is
    body: str | None
    #: definition of what is answered
    answer: str
    codes: tuple[str, ...] = ("200",)

    @property
    def is_patch(self) -> bool:
        return self.action == "patch"

    @property
    def is_list(self) -> bool:
        return self.action == "list"


@dataclass(frozen=True, slots=True)
class Path:
    path: str
    parameters: tuple[Parameter, ...]
    operations: tuple[Operation, ...]


def operations_of(kind: Kind) -> Iterator[Path]:
    """Return every path of a kind with its operations."""
    in_namespace = (NAMESPACE,) if kind.is_namespaced else ()
    collection = kind.path("{namespace}")
    own = (kind.group, kind.version, kind.name)
    make = _Maker(kind, "Namespaced" if kind.is_namespaced else "")
    if kind.is_namespaced and "list" in kind.verbs:
        everywhere = make.operation("get", "list", "list", own, suffix="ForAllNamespaces", scope="")
        yield Path(kind.path(), (PRETTY,), (everywhere,))
    verbs = {
        "list": ("get", "list", "list"),
        "create": ("post", "post", "create"),
        "deletecollection": ("delete", "deletecollection", "delete"),
    }
    found = tuple(make.operation(*names, own) for verb, names in verbs.items() if verb in kind.verbs)
    if found:
        yield Path(collection, (*in_namespace, PRETTY), found)
    verbs = _ITEM_VERBS | {"delete": ("delete", "delete", "delete")}
    found = tuple(make.operation(*names, own) for verb, names in verbs.items() if verb in kind.verbs)
    at_name = (NAME, *in_namespace, PRETTY)
    if found:
        yield Path(f"{collection}/{{name}}", at_name, found)
    for subresource in kind.subresources:
        if subresource.is_stream:
            continue  # what travels is described elsewhere: bytes of a log, channels of a WebSocket
        yield Path(f"{collection}/{{name}}/{subresource.name}", at_name, tuple(make.below(subresource)))


#: verb -> method, action, first word of the id
_ITEM_VERBS = {
    "get": ("get", "get", "read"),
    "update": ("put", "put", "replace"),
    "patch": ("patch", "patch", "patch"),
}
_SUBRESOURCE_VERBS = _ITEM_VERBS | {"create": ("post", "post", "create")}
_PARAMETERS = {
    "get": (),
    "list": _LIST,
    "post": _WRITE,
    "put": _WRITE,
    "patch": _PATCH,
    "delete": _DELETE,
    "deletecollection": tuple(sorted((*_SELECT, *_DELETE), key=lambda parameter: parameter.name)),
}
_CODES = {"post": _CREATED, "put": ("200", "201"), "patch": ("200", "201"), "delete": ("200", "202")}
_SENTENCES = {
    "list": "List or watch objects of kind {}.",
    "get": "Read one {}.",
    "post": "Create one {}.",
    "put": "Replace one {}.",
    "patch": "Change parts of one {}.",
    "delete": "Delete one {}.",
    "deletecollection": "Delete objects of kind {}.",
}


class _Maker:
    """Makes the operations of one kind."""

    def __init__(self, kind: Kind, scope: str) -> None:
        self._kind = kind
        self._scope = scope
        self._group = operation_group(kind.group, kind.version)
        self._tag = tag(kind.group, kind.version)

    def operation(
        self,
        method: str,
        action: str,
        word: str,
        gvk: GroupVersionKind,
        *,
        struct: type[msgspec.Struct] | None = None,
        suffix: str = "",
        scope: str | None = None,
    ) -> Operation:
        scope = self._scope if scope is None else scope
        if action == "deletecollection":
            scope = f"Collection{scope}"
        own = definition_name(struct or self._kind.type)
        body: str | None = own
        answer = own
        if action in ("get", "list"):
            body = None
            answer = list_definition_name(self._kind) if action == "list" else own
        elif action == "patch":
            body = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch"
        elif action in ("delete", "deletecollection"):
            body, answer = definition_name(DeleteOptions), definition_name(Status)
        return Operation(
            method=method,
            action=action,
            id=f"{word}{self._group}{scope}{self._kind.name}{suffix}",
            tag=self._tag,
            kind=gvk,
            description=_SENTENCES[action].format(gvk[2]),
            parameters=_PARAMETERS[action],
            body=body,
            answer=answer,
            codes=_CODES.get(action, ("200",)),
        )

    def below(self, subresource: Subresource) -> Iterator[Operation]:
        kind = self._kind
        gvk = (kind.group, kind.version, kind.name)
        if subresource.type is not None:
            gvk = (subresource.group, subresource.version or kind.version, subresource.kind)
        suffix = subresource.name[0].upper() + subresource.name[1:]
        for verb, words in _SUBRESOURCE_VERBS.items():
            if verb in subresource.verbs:
                yield self.operation(*words, gvk, struct=subresource.type, suffix=suffix)
