"""Policy rules as sets of permissions: whether a rule allows a request, and whether rules cover other rules.

`covers` is behind the escalation checks and the reconciliation of default roles: a rule is broken into atoms (one
group, resource, verb and name each) and every atom must be granted by a single owner rule.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

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


def covers(owner_rules: Iterable[PolicyRule], servant_rules: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Return the atoms of `servant_rules` that no single owner rule grants; empty when all are covered.

    A rule of 40 groups, resources, verbs and names each has millions of atoms: they are not made one by one. What an
    owner rule grants of a block of atoms is a block again, so the rest is a few blocks. Of uncovered atoms at most
    `MOST_UNCOVERED` are returned. If it takes more than `MOST_BLOCKS` or `MOST_LOOKUPS` to tell, nothing is covered.
    """
    owners = [_Owner(rule) for rule in owner_rules]
    return [atom for servant in servant_rules for atom in _uncovered(servant, owners)]


#: A block of atoms: positions in a rule's groups, resources, verbs and names, or in its paths and verbs.
_Block = tuple[tuple[int, ...], ...]
#: Stands for the names of a rule that has none; no object is called so.
_ANY_NAME = "\0"
MOST_BLOCKS = 5_000
MOST_LOOKUPS = 1_000_000
MOST_UNCOVERED = 1_000


def _uncovered(rule: PolicyRule, owners: Sequence[_Owner]) -> list[PolicyRule]:
    names = rule.resource_names or [_ANY_NAME]
    resources = (rule.api_groups, rule.resources, rule.verbs, names)
    atoms = [
        PolicyRule(
            api_groups=[group],
            resources=[resource],
            verbs=[verb],
            resource_names=[] if name is _ANY_NAME else [name],
        )
        for group, resource, verb, name in _left(resources, [owner.resource_tests() for owner in owners])
    ]
    paths = (rule.non_resource_urls, rule.verbs)
    atoms += [
        PolicyRule(non_resource_urls=[path], verbs=[verb])
        for path, verb in _left(paths, [owner.path_tests() for owner in owners])
    ]
    return atoms


def _left(lists: Sequence[Sequence[str]], owners: Iterable[_Tests]) -> list[tuple[str, ...]]:
    """Return the combinations of one item of each list that no owner grants, in the order of the lists."""
    everything = tuple(tuple(range(len(items))) for items in lists)
    blocks: list[_Block] = [everything] if all(everything) else []
    looked = 0
    for tests in owners:
        if not blocks:
            return []
        granted: list[frozenset[int]] = []
        for items, holds in zip(lists, tests, strict=True):
            looked += len(items)
            granted.append(frozenset(position for position, item in enumerate(items) if holds(item)))
            if not granted[-1]:
                break
        else:
            blocks = [rest for block in blocks for rest in _without(block, granted)]
        if len(blocks) > MOST_BLOCKS or looked > MOST_LOOKUPS:
            blocks = [everything]
            break
    found: list[tuple[int, ...]] = []
    for block in blocks:
        found += itertools.islice(itertools.product(*block), MOST_UNCOVERED - len(found))
    return [tuple(items[at] for items, at in zip(lists, place, strict=True)) for place in sorted(found)]


def _without(block: _Block, granted: Sequence[frozenset[int]]) -> Iterator[_Block]:
    """Return a block less what is granted of it, as blocks that have nothing in common."""
    for dimension, positions in enumerate(block):
        inside = tuple(each for each in positions if each in granted[dimension])
        outside = tuple(each for each in positions if each not in granted[dimension])
        if outside:
            yield (*block[:dimension], outside, *block[dimension + 1 :])
        if not inside:
            return
        block = (*block[:dimension], inside, *block[dimension + 1 :])


#: For each list of a block, whether an owner grants an item of it.
_Tests = tuple[Callable[[str], bool], ...]


class _Owner:
    """A rule with its lists as sets, for many lookups."""

    __slots__ = ("_groups", "_names", "_paths", "_resources", "_verbs")

    def __init__(self, rule: PolicyRule) -> None:
        self._verbs = frozenset(rule.verbs)
        self._groups = frozenset(rule.api_groups)
        self._resources = frozenset(rule.resources)
        self._names = frozenset(rule.resource_names)
        self._paths = rule.non_resource_urls

    def resource_tests(self) -> _Tests:
        return self._has_group, self._has_resource, self._has_verb, self._has_name

    def path_tests(self) -> _Tests:
        return self._has_path, self._has_verb

    def _has_verb(self, verb: str) -> bool:
        return ALL in self._verbs or verb in self._verbs

    def _has_group(self, group: str) -> bool:
        return ALL in self._groups or group in self._groups

    def _has_name(self, name: str) -> bool:
        return not self._names or name in self._names

    def _has_path(self, path: str) -> bool:
        # A rule limited to names grants no paths.
        return not self._names and any(_path_covers(pattern, path) for pattern in self._paths)

    def _has_resource(self, resource: str) -> bool:
        if ALL in self._resources or resource in self._resources:
            return True
        _, slash, subresource = resource.partition("/")
        return bool(slash) and f"*/{subresource}" in self._resources


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
