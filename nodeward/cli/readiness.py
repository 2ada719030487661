"""`nodeward readiness preview RULE.yaml`: what a readiness rule would do to a cluster, before it is created.

An ordinary client of any cluster, a real kube-apiserver included, with or without the CustomResourceDefinition: lists
nodes, pods and existing rules, and evaluates the rule as the controller does. Nothing in the cluster is changed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nodeward.api.context import Context
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.defaults import DEFAULTS
from nodeward.api.readiness_v1alpha1 import AffectedPod, NodeReadinessRule
from nodeward.base.errors import ConfigError
from nodeward.base.fielderror import aggregate
from nodeward.cli.listing import all_of, some_of
from nodeward.cli.manifests import some
from nodeward.features import Gates
from nodeward.machinery.clock import RealClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.kubeconfig import load_config
from nodeward.rules.readiness_preview import Forecast, NodeForecast, forecast
from nodeward.rules.readiness_rules import RuleAction, compiled, conflict
from nodeward.validation.registry import VALIDATORS

#: More lines than this of one sort are left out, unless all are asked for.
SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Preview:
    """The result for one rule."""

    rule: NodeReadinessRule
    forecast: Forecast
    #: what would keep the rule from being made, or must be known to trust the answer
    notes: tuple[str, ...] = ()


def run(args: argparse.Namespace) -> int:
    """Evaluate the rule, and print the result."""
    rules = [_checked(each, args.rule) for each in some(args.rule, NodeReadinessRule)]
    previews = asyncio.run(_ask(args, rules))
    if args.output == "json":
        print(msgspec.json.format(msgspec.json.encode([_tree(each) for each in previews])).decode())
    else:
        print("\n\n".join("\n".join(_lines(each, shown=None if args.all else SHOWN)) for each in previews))
    return 0


def _checked(rule: NodeReadinessRule, path: str) -> NodeReadinessRule:
    """Default and validate the rule as the API would, with the same errors."""
    DEFAULTS[NodeReadinessRule](rule)
    errors = VALIDATORS[NodeReadinessRule].create(rule, Context(Gates.of("1.37")))
    if errors:
        raise ConfigError(f"{path}: {rule.metadata.name or 'the rule'} is invalid: {aggregate(errors)}")
    return rule


async def _ask(args: argparse.Namespace, rules: Sequence[NodeReadinessRule]) -> list[Preview]:
    environment = dict(os.environ)
    config = load_config(environment, path=args.kubeconfig, context=args.context)
    client = connect(config, clock=RealClock(), environment=environment, component="nodeward-readiness")
    try:
        nodes, pods = await all_of(client, Node), await all_of(client, Pod)
        notes: list[str] = []
        others = await some_of(client, NodeReadinessRule, notes, "conflicts with other rules are not known")
    finally:
        await client.aclose()
    previews: list[Preview] = []
    for rule in rules:
        same = next((each for each in others if each.metadata.name == rule.metadata.name), None)
        if same is not None:
            # Nodes that passed the rule that is there stay passed.
            rule.metadata.uid = same.metadata.uid
        faults = [text for each in (*others, *rules) if (text := conflict(rule, each))]
        faults = [f"the API would refuse it: {text}" for text in dict.fromkeys(faults)]
        found = forecast(compiled(rule), nodes, pods, numeric=True)
        previews.append(Preview(rule, found, (*notes, *faults)))
    return previews


# -- the page

_DOING: Final = {
    RuleAction.ADD: "would be tainted",
    RuleAction.REMOVE: "would be released",
    RuleAction.COMPLETE: "passes",
}


def _lines(preview: Preview, shown: int | None) -> Iterator[str]:
    rule, found = preview.rule, preview.forecast
    taint = rule.spec.taint
    yield f"{rule.metadata.name}: {found.summary()}"
    yield f"  taint {taint.key}:{taint.effect}, {rule.spec.enforcement_mode}, {len(found.nodes)} nodes selected"
    for note in preview.notes:
        yield f"  note: {note}"
    # What changes first: that is what somebody looks for.
    nodes = sorted(found.nodes, key=lambda each: each.action is RuleAction.NOTHING)
    yield from _listed("nodes", [f"{each.name}  {_doing(each)}" for each in nodes], shown)
    yield from _listed("pods that would be evicted", [_gone(each) for each in found.evicted], shown)
    yield from _listed("pods that would be held", [_held(each) for each in found.held], shown)


def _listed(title: str, lines: Sequence[str], shown: int | None) -> Iterator[str]:
    if not lines:
        return
    yield f"{title} ({len(lines)}):"
    yield from (f"  {line}" for line in lines[:shown])
    if shown is not None and len(lines) > shown:
        yield f"  ... and {len(lines) - shown} more (--all lists them)"


def _doing(each: NodeForecast) -> str:
    finding = each.finding
    lacking = ", ".join(
        f"{one.type} is {one.current_status}, must be {one.required_status}"
        for one in finding.results
        if one.type in finding.unsatisfied
    )
    doing = _DOING.get(each.action) or ("stays tainted" if finding.has_taint else "stays open")
    return f"{doing}: {lacking}" if lacking else doing


def _gone(pod: AffectedPod) -> str:
    when = f"after {pod.after_seconds} s" if pod.after_seconds else "at once"
    return f"{pod.namespace}/{pod.name}  from {pod.node_name} {when}"


def _held(pod: AffectedPod) -> str:
    where = f"is on {pod.node_name}, could not return there" if pod.node_name else "waits for a node"
    return f"{pod.namespace}/{pod.name}  {where}"


def _tree(preview: Preview) -> dict[str, Any]:
    rule, found = preview.rule, preview.forecast
    return {
        "rule": rule.metadata.name,
        "summary": found.summary(),
        "notes": preview.notes,
        "taint": {
            "key": rule.spec.taint.key,
            "value": rule.spec.taint.value,
            "effect": rule.spec.taint.effect,
        },
        "nodes": [
            {
                "name": each.name,
                "action": each.action.value,
                "hasTaint": each.finding.has_taint,
                "isSatisfied": each.finding.is_satisfied,
                "conditionResults": each.finding.results,
            }
            for each in found.nodes
        ],
        "podsEvicted": found.evicted,
        "podsHeld": found.held,
    }
