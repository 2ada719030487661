"""Policy rules as sets of permissions: whether a rule allows a request, and whether rules cover other rules.

`covers` is behind the escalation checks and the reconciliation of default roles: a rule is broken into atoms (one
group, resource, verb and name each) and every atom must be granted by a single owner rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nodeward.api.meta import LabelSelector
from nodeward.api.rbac_v1 import ClusterRole, PolicyRule
from nodeward.apiserver.auth.user import Attributes
from nodeward.base.fielderror import quote

ALL = "*"


def rule_allows(rule: PolicyRule, attributes: Attributes) -> bool:
    """Tell whether `rule` alone allows the request."""
    if not attributes.is_resource_request:
        return verb_matches(rule, attributes.verb) and path_matches(rule, attributes.path)
    return (
        verb_matches(rule, attributes.verb)
        and (ALL in rule.api_groups or attributes.group in rule.api_groups)
        and resource_matches(rule, attributes.resource, attributes.subresource)
        and (not rule.resource_names or attributes.name in rule.resource_names)
    )


def verb_matches(rule: PolicyRule, verb: str) -> bool:
    return ALL in rule.verbs or verb in rule.verbs


def resource_matches(rule: PolicyRule, resource: str, subresource: str) -> bool:
    """Match a resource: `*` is everything; `*/status` is that subresource of every resource."""
    listed = rule.resources
    if not subresource:
        return ALL in listed or resource in listed
    return ALL in listed or f"{resource}/{subresource}" in listed or f"*/{subresource}" in listed


def path_matches(rule: PolicyRule, path: str) -> bool:
    return any(_path_covers(pattern, path) for pattern in rule.non_resource_urls)


def _path_covers(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith(ALL) and path.startswith(pattern.rstrip(ALL)))


def breakdown(rule: PolicyRule) -> list[PolicyRule]:
    """Break a rule into atoms."""
    names = [[name] for name in rule.resource_names] or [[]]
    atoms = [
        PolicyRule(api_groups=[group], resources=[resource], verbs=[verb], resource_names=list(name))
        for group in rule.api_groups
        for resource in rule.resources
        for verb in rule.verbs
        for name in names
    ]
    atoms += [
        PolicyRule(non_resource_urls=[path], verbs=[verb])
        for path in rule.non_resource_urls
        for verb in rule.verbs
    ]
    return atoms


def covers(owner_rules: Iterable[PolicyRule], servant_rules: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Return the atoms of `servant_rules` that no single owner rule grants; empty when all are covered."""
    owners = [_Owner(rule) for rule in owner_rules]
    return [
        atom
        for servant in servant_rules
        for atom in breakdown(servant)
        if not any(owner.covers(atom) for owner in owners)
    ]


class _Owner:
    """A rule with its lists as sets, for many lookups."""

    __slots__ = ("groups", "names", "paths", "resources", "verbs")

    def __init__(self, rule: PolicyRule) -> None:
        self.verbs = frozenset(rule.verbs)
        self.groups = frozenset(rule.api_groups)
        self.resources = frozenset(rule.resources)
        self.names = frozenset(rule.resource_names)
        self.paths = rule.non_resource_urls

    def covers(self, atom: PolicyRule) -> bool:
        if ALL not in self.verbs and atom.verbs[0] not in self.verbs:
            return False
        if atom.non_resource_urls:
            # A rule limited to names grants no paths.
            path = atom.non_resource_urls[0]
            return not self.names and any(_path_covers(pattern, path) for pattern in self.paths)
        if ALL not in self.groups and atom.api_groups[0] not in self.groups:
            return False
        if self.names and (not atom.resource_names or atom.resource_names[0] not in self.names):
            return False
        return self._covers_resource(atom.resources[0])

    def _covers_resource(self, resource: str) -> bool:
        if ALL in self.resources or resource in self.resources:
            return True
        _, slash, subresource = resource.partition("/")
        return bool(slash) and f"*/{subresource}" in self.resources


def compact(atoms: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Join atoms that differ only in their verb."""
    joined: dict[tuple[str, ...], PolicyRule] = {}
    rest: list[PolicyRule] = []
    for atom in atoms:
        if atom.non_resource_urls or len(atom.api_groups) != 1 or len(atom.resources) != 1:
            rest.append(atom)
            continue
        key = (atom.api_groups[0], atom.resources[0], *atom.resource_names)
        if key in joined:
            joined[key].verbs.extend(atom.verbs)
        else:
            joined[key] = PolicyRule(
                api_groups=list(atom.api_groups),
                resources=list(atom.resources),
                resource_names=list(atom.resource_names),
                verbs=list(atom.verbs),
            )
    return rest + list(joined.values())


def quote_list(items: Iterable[str]) -> str:
    """Format a list of names as messages show it: `["a" "b"]`."""
    return f"[{' '.join(quote(item) for item in items)}]"


def describe(rule: PolicyRule) -> str:
    """Format a rule: `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`, without empty parts."""
    parts = (
        ("APIGroups", rule.api_groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.non_resource_urls),
        ("ResourceNames", rule.resource_names),
        ("Verbs", rule.verbs),
    )
    return "{" + ", ".join(f"{name}:{quote_list(items)}" for name, items in parts if items) + "}"


def aggregate(cluster_roles: Iterable[ClusterRole]) -> list[ClusterRole]:
    """Return the aggregated roles whose rules are not the sum of the roles they select, with the right rules.

    Aggregated roles may feed each other (edit feeds admin), so this repeats until nothing changes. The inputs are not
    changed.
    """
    current = {
        role.metadata.name: role for role in sorted(cluster_roles, key=lambda role: role.metadata.name)
    }
    changed: dict[str, ClusterRole] = {}
    for _ in range(len(current) + 1):
        is_settled = True
        for name, role in current.items():
            if role.aggregation_rule is None:
                continue
            rules = _added_up(role, role.aggregation_rule.cluster_role_selectors, list(current.values()))
            if rules != role.rules:
                current[name] = changed[name] = _with_rules(role, rules)
                is_settled = False
        if is_settled:
            break
    return [changed[name] for name in sorted(changed)]


def _added_up(
    target: ClusterRole, selectors: Sequence[LabelSelector], roles: Sequence[ClusterRole]
) -> list[PolicyRule]:
    # A dict of printed rules: the first of equal rules stays, in order.
    rules: dict[str, PolicyRule] = {}
    for selector in selectors:
        for role in roles:
            if role.metadata.name != target.metadata.name and _selects(selector, role.metadata.labels):
                for rule in role.rules:
                    rules.setdefault(repr(rule), rule)
    return list(rules.values())


def _with_rules(role: ClusterRole, rules: list[PolicyRule]) -> ClusterRole:
    return ClusterRole(
        kind=role.kind,
        api_version=role.api_version,
        metadata=role.metadata,
        rules=rules,
        aggregation_rule=role.aggregation_rule,
    )


def _selects(selector: LabelSelector, labels: dict[str, str]) -> bool:
    """Tell whether a selector matches; an empty one selects everything."""
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    for requirement in selector.match_expressions:
        value = labels.get(requirement.key)
        match requirement.operator:
            case "In":
                holds = value is not None and value in requirement.values
            case "NotIn":
                holds = value is None or value not in requirement.values
            case "Exists":
                holds = value is not None
            case "DoesNotExist":
                holds = value is None
            case _:
                holds = False
        if not holds:
            return False
    return True
