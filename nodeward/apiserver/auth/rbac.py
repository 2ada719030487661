"""The RBAC authorizer: what a user was granted, by which binding of which role.

`security.py` feeds roles and bindings in (`replace`, `upsert`, `remove`) and calls `authorize`. Roles only grant, so
the answer is ALLOW or NO_OPINION, never DENY.

Speed: bindings are indexed by subject, and the result for a question is kept until any role or binding changes. The
name of the object is not part of the question (a node agent reads thousands of names): a result is one decision for
every name, plus the names that some rule singles out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from nodeward.api.meta import KubeObject
from nodeward.api.rbac_v1 import (
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from nodeward.apiserver.auth.rules import ALL, path_matches, resource_matches, verb_matches
from nodeward.apiserver.auth.user import (
    NO_OPINION,
    Attributes,
    Authorization,
    AuthorizerDecision,
    User,
    service_account_name,
)
from nodeward.base.fielderror import quote
from nodeward.base.invariant import InvariantBroken, invariant

#: Results kept; when there are more, all are dropped.
REMEMBERED: Final = 65_536
#: Questions with more characters (an invented path or namespace of kilobytes) are answered and not kept.
LONGEST_REMEMBERED: Final = 512

_Key: TypeAlias = tuple[str, str]
#: For every name, and for the names that rules single out.
_Answer: TypeAlias = tuple[Authorization, dict[str, Authorization] | None]


class _Binding:
    """The parts of a binding used here; `namespace` is empty for a cluster role binding."""

    __slots__ = ("name", "namespace", "role_ref", "subjects")

    def __init__(self, binding: ClusterRoleBinding | RoleBinding) -> None:
        self.name = binding.metadata.name
        self.namespace = binding.metadata.namespace if isinstance(binding, RoleBinding) else ""
        self.role_ref = binding.role_ref
        #: Subject as indexed, and how it is described; a subject that can match nobody is left out.
        self.subjects: list[tuple[_Key, str]] = []
        for subject in binding.subjects:
            if (key := _subject_key(subject, self.namespace)) is not None:
                self.subjects.append((key, _describe_subject(subject, self.namespace)))

    def describe(self, subject: str) -> str:
        kind, name = "ClusterRoleBinding", self.name
        if self.namespace:
            kind, name = "RoleBinding", f"{self.name}/{self.namespace}"
        return f"{kind} {quote(name)} of {self.role_ref.kind} {quote(self.role_ref.name)} to {subject}"


def _subject_key(subject: Subject, namespace: str) -> _Key | None:
    match subject.kind:
        case "User" | "Group":
            return subject.kind, subject.name
        case "ServiceAccount":
            home = subject.namespace or namespace
            return ("User", service_account_name(home, subject.name)) if home else None
        case _:
            return None


def _describe_subject(subject: Subject, namespace: str) -> str:
    if subject.kind == "ServiceAccount":
        return f"{subject.kind} {quote(f'{subject.name}/{subject.namespace or namespace}')}"
    return f"{subject.kind} {quote(subject.name)}"


class RbacAuthorizer:
    """Roles and bindings, and the decisions that follow from them. Used from one thread."""

    __slots__ = ("_answers", "_bindings", "_by_subject", "_cluster_roles", "_roles")

    def __init__(self) -> None:
        self._cluster_roles: dict[str, list[PolicyRule]] = {}
        self._roles: dict[_Key, list[PolicyRule]] = {}
        #: By namespace ("" for cluster role bindings) and name.
        self._bindings: dict[_Key, _Binding] = {}
        #: By namespace and subject: names of bindings.
        self._by_subject: dict[tuple[str, _Key], dict[str, None]] = {}
        self._answers: dict[tuple[object, ...], _Answer] = {}

    # Feeding.

    def replace(self, kind: str, objects: Iterable[KubeObject]) -> None:
        """Replace all objects of `kind`."""
        match kind:
            case "ClusterRole":
                self._cluster_roles.clear()
            case "Role":
                self._roles.clear()
            case "ClusterRoleBinding" | "RoleBinding":
                is_cluster_wide = kind == "ClusterRoleBinding"
                for namespace, name in [key for key in self._bindings if (key[0] == "") == is_cluster_wide]:
                    self._unbind(namespace, name)
            case _:
                invariant(False, f"RBAC knows no kind {kind}")
        self._answers.clear()
        for item in objects:
            self.upsert(kind, item)

    def upsert(self, kind: str, obj: KubeObject) -> None:
        """Add or replace an object."""
        self._answers.clear()
        meta = obj.metadata
        match kind, obj:
            case "ClusterRole", ClusterRole():
                self._cluster_roles[meta.name] = obj.rules
            case "Role", Role():
                self._roles[meta.namespace, meta.name] = obj.rules
            case "ClusterRoleBinding", ClusterRoleBinding():
                self._bind(_Binding(obj))
            case "RoleBinding", RoleBinding():
                self._bind(_Binding(obj))
            case _:
                raise InvariantBroken(f"not a {kind} that RBAC knows: {type(obj).__name__}")

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Remove an object; `namespace` is empty for cluster-scoped kinds."""
        self._answers.clear()
        match kind:
            case "ClusterRole":
                self._cluster_roles.pop(name, None)
            case "Role":
                self._roles.pop((namespace, name), None)
            case "ClusterRoleBinding":
                self._unbind("", name)
            case "RoleBinding":
                self._unbind(namespace, name)
            case _:
                invariant(False, f"RBAC knows no kind {kind}")

    def _bind(self, binding: _Binding) -> None:
        self._unbind(binding.namespace, binding.name)
        self._bindings[binding.namespace, binding.name] = binding
        for subject, _ in binding.subjects:
            self._by_subject.setdefault((binding.namespace, subject), {})[binding.name] = None

    def _unbind(self, namespace: str, name: str) -> None:
        binding = self._bindings.pop((namespace, name), None)
        if binding is None:
            return
        for subject, _ in binding.subjects:
            names = self._by_subject.get((namespace, subject))
            if names is not None:
                names.pop(name, None)
                if not names:
                    del self._by_subject[namespace, subject]

    # Asking.

    def authorize(self, attributes: Attributes) -> Authorization:
        """Return ALLOW with the binding that grants it, or NO_OPINION (with the roles that were not found)."""
        user = attributes.user
        key: tuple[object, ...]
        if attributes.is_resource_request:
            key = (
                user.name,
                user.groups,
                attributes.verb,
                attributes.resource,
                attributes.subresource,
                attributes.group,
                attributes.namespace,
            )
        else:
            key = (user.name, user.groups, attributes.verb, attributes.path, attributes.namespace)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._find(attributes)
            if _length(key) <= LONGEST_REMEMBERED:
                if len(self._answers) >= REMEMBERED:
                    self._answers.clear()
                self._answers[key] = answer
        decision, by_name = answer
        return decision if by_name is None else by_name.get(attributes.name, decision)

    def _find(self, attributes: Attributes) -> _Answer:
        by_name: dict[str, Authorization] = {}
        missing: list[str] = []
        for source, rule in self._visit(attributes.user, attributes.namespace, missing):
            if not verb_matches(rule, attributes.verb):
                continue
            if attributes.is_resource_request:
                is_granted = (
                    ALL in rule.api_groups or attributes.group in rule.api_groups
                ) and resource_matches(rule, attributes.resource, attributes.subresource)
            else:
                is_granted = path_matches(rule, attributes.path)
            if not is_granted:
                continue
            allowed = Authorization(
                AuthorizerDecision.ALLOW, f"RBAC: allowed by {source[0].describe(source[1])}"
            )
            if not rule.resource_names or not attributes.is_resource_request:
                return allowed, by_name or None
            for name in rule.resource_names:
                by_name.setdefault(name, allowed)
        return self._refusal(missing), by_name or None

    @staticmethod
    def _refusal(missing: list[str]) -> Authorization:
        if not missing:
            return NO_OPINION
        texts = list(dict.fromkeys(missing))
        text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        return Authorization(AuthorizerDecision.NO_OPINION, f"RBAC: {text}")

    def rules_for(self, user: User, namespace: str) -> tuple[list[PolicyRule], list[str]]:
        """Return every rule granted to `user` in `namespace` (cluster-wide ones too), and unresolved roles."""
        missing: list[str] = []
        rules = [rule for _, rule in self._visit(user, namespace, missing)]
        return rules, missing

    def role_rules(self, role_ref: RoleRef, namespace: str) -> list[PolicyRule] | None:
        """Return the rules of the role a binding in `namespace` refers to; None: no such role."""
        if role_ref.kind == "ClusterRole":
            return self._cluster_roles.get(role_ref.name)
        return self._roles.get((namespace, role_ref.name)) if role_ref.kind == "Role" else None

    def _visit(
        self, user: User, namespace: str, missing: list[str]
    ) -> Iterator[tuple[tuple[_Binding, str], PolicyRule]]:
        """Iterate over rules with their binding: cluster-wide bindings first, each kind ordered by name."""
        subjects: list[_Key] = [("User", user.name), *(("Group", group) for group in user.groups)]
        for scope in ("", namespace) if namespace else ("",):
            names = {name for subject in subjects for name in self._by_subject.get((scope, subject), ())}
            for name in sorted(names):
                binding = self._bindings[scope, name]
                rules = self.role_rules(binding.role_ref, scope)
                if rules is None:
                    missing.append(_not_found(binding.role_ref))
                    continue
                described = next(text for subject, text in binding.subjects if subject in subjects)
                for rule in rules:
                    yield (binding, described), rule


def _not_found(role_ref: RoleRef) -> str:
    if role_ref.kind not in ("ClusterRole", "Role"):
        return f"unsupported role reference kind: {quote(role_ref.kind)}"
    return f"{role_ref.kind.lower()}.rbac.authorization.k8s.io {quote(role_ref.name)} not found"


def _length(key: Iterable[object]) -> int:
    """Return how many characters a question has."""
    return sum(
        len(part) if isinstance(part, str) else _length(part) for part in key if isinstance(part, str | tuple)
    )
