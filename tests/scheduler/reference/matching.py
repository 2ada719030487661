"""Tolerations, label selectors and node selectors, on plain JSON."""

from __future__ import annotations

from typing import Any

Tree = dict[str, Any]


def _number(text: str) -> int | None:
    return int(text) if text.lstrip("-").isdecimal() else None


def tolerates(pod: Tree, taint: Tree) -> bool:
    return any(_matches(each, taint) for each in pod["spec"].get("tolerations", ()))


def _matches(toleration: Tree, taint: Tree) -> bool:
    if toleration.get("effect", "") not in ("", taint["effect"]):
        return False
    if toleration.get("key", "") not in ("", taint["key"]):
        return False
    operator = toleration.get("operator") or "Equal"
    mine, theirs = toleration.get("value", ""), taint.get("value", "")
    if operator == "Exists":
        return True
    if operator == "Equal":
        return bool(mine == theirs)
    left, right = _number(theirs), _number(mine)
    if left is None or right is None:
        return False
    return left < right if operator == "Lt" else left > right


def bars(pod: Tree, node: Tree) -> bool:
    """Whether a taint of the node keeps the pod off."""
    taints = node["spec"].get("taints", ())
    return any(each["effect"] in ("NoSchedule", "NoExecute") and not tolerates(pod, each) for each in taints)


def selects(selector: Tree | None, labels: dict[str, str]) -> bool:
    """A label selector; one that is not there selects nothing, an empty one everything."""
    if selector is None:
        return False
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    for each in selector.get("matchExpressions", ()):
        value, operator = labels.get(each["key"]), each["operator"]
        holds = {
            "In": value is not None and value in each.get("values", ()),
            "NotIn": value is None or value not in each.get("values", ()),
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }
        if not holds[operator]:
            return False
    return True


def is_empty(selector: Tree) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def _wish(wish: Tree, labels: dict[str, str]) -> bool:
    if wish["operator"] not in ("Gt", "Lt"):
        return selects({"matchExpressions": [wish]}, labels)
    value = labels.get(wish["key"])
    left, right = _number(value or "x"), _number(wish["values"][0])
    if left is None or right is None:
        return False
    return left > right if wish["operator"] == "Gt" else left < right


def term_holds(term: Tree, node: Tree) -> bool:
    wishes, fields = term.get("matchExpressions", ()), term.get("matchFields", ())
    if not wishes and not fields:
        return False
    named = {"metadata.name": node["metadata"]["name"]}
    return all(_wish(each, node["metadata"]["labels"]) for each in wishes) and all(
        _wish(each, named) for each in fields
    )


def any_term_holds(selector: Tree, node: Tree) -> bool:
    return any(term_holds(term, node) for term in selector.get("nodeSelectorTerms", ()))


def required(pod: Tree) -> Tree | None:
    """The required node affinity of a pod."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    found: Tree | None = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return found


def wants(pod: Tree, node: Tree) -> bool:
    """Whether node selector and required affinity allow the node."""
    for key, value in pod["spec"].get("nodeSelector", {}).items():
        if node["metadata"]["labels"].get(key) != value:
            return False
    selector = required(pod)
    return selector is None or any_term_holds(selector, node)


def named_nodes(pod: Tree) -> set[str] | None:
    """The only nodes the affinity can mean, if every term names nodes."""
    selector = required(pod)
    if selector is None or not selector.get("nodeSelectorTerms"):
        return None
    found: set[str] = set()
    for term in selector["nodeSelectorTerms"]:
        sets = [
            set(each["values"])
            for each in term.get("matchFields", ())
            if each["key"] == "metadata.name" and each["operator"] == "In"
        ]
        if not sets:
            return None
        found |= set.intersection(*sets)
    return found
