"""`nodeward features`: ask the library of declared features (KEP-5328) from the command line.

* `discover`: what a kubelet of a version, with some gates and settings, declares
* `infer`: what a pod needs to be placed, or a change of a pod to be made
* `match`: whether nodes have what a pod needs
* `requirements`: what a node must have to declare a feature

Results go to standard output, one per line or as JSON; everything else goes to standard error.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import ResourceClaim
from nodeward.base.errors import ConfigError, NodewardError
from nodeward.cli.manifests import objects, some
from nodeward.features import FRAMEWORK, Feature, Gates, NodeConfiguration, PodInfo, Version
from nodeward.kubelet.node.abilities import KUBELET_ABILITIES


def run(args: argparse.Namespace) -> int:
    """Answer one question. 1 means that a node does not match, so errors are 2, as with grep and diff."""
    try:
        return _QUESTIONS[args.question](args)
    except NodewardError as error:
        print(f"nodeward: {error}", file=sys.stderr)
        return 2


def _discover(args: argparse.Namespace) -> int:
    gates = Gates.of(args.kubernetes_version, args.feature_gates)
    for warning in gates.warnings:
        print(f"nodeward: {warning}", file=sys.stderr)
    version = Version.parse(args.kubernetes_version)
    settings = {**KUBELET_ABILITIES, **_settings(args.config)}
    names = FRAMEWORK.discover_node_features(NodeConfiguration(version, gates, settings))
    _answer(args, {"declaredFeatures": names}, names, "such a node declares nothing")
    return 0


def _infer(args: argparse.Namespace) -> int:
    version = Version.parse(args.kubernetes_version)
    pod = _pod(args.pod)
    if args.old:
        needed = FRAMEWORK.infer_for_pod_update(_pod(args.old), pod, version).names()
    else:
        needed = FRAMEWORK.infer_for_pod_scheduling(pod, version).names()
    _answer(args, {"requiredFeatures": needed}, needed, "nothing is needed: any node will do")
    return 0


def _match(args: argparse.Namespace) -> int:
    version = Version.parse(args.kubernetes_version)
    required = FRAMEWORK.infer_for_pod_scheduling(_pod(args.pod), version)
    found: list[dict[str, Any]] = []
    lines: list[str] = []
    for node in (each for path in args.node for each in some(path, Node)):
        result = FRAMEWORK.match_node(required, node)
        name = node.metadata.name or "(a node without a name)"
        found.append({"name": name, "isMatch": result.is_match, "unsatisfied": result.unsatisfied})
        lines.append(f"{name}: " + ("match" if result.is_match else f"lacks {', '.join(result.unsatisfied)}"))
    _answer(args, {"requiredFeatures": required.names(), "nodes": found}, lines)
    return 0 if all(node["isMatch"] for node in found) else 1


def _requirements(args: argparse.Namespace) -> int:
    if args.name:
        FRAMEWORK.get_feature_requirements(args.name)  # says what is wrong with a name nobody knows
    chosen = [each for each in FRAMEWORK.features if args.name in ("", each.name)]
    trees = [
        {
            "name": feature.name,
            "featureGates": feature.requirements.gates,
            "staticConfig": dict(feature.requirements.static_config),
            "maxVersion": str(feature.max_version) if feature.max_version is not None else None,
            "neededFor": _needed_for(feature),
            "directConsumer": feature.direct_consumer,
        }
        for feature in chosen
    ]
    lines = [line for feature in chosen for line in _described(feature)]
    _answer(args, trees[0] if args.name else trees, lines)
    return 0


_QUESTIONS: Final[dict[str, Callable[[argparse.Namespace], int]]] = {
    "discover": _discover,
    "infer": _infer,
    "match": _match,
    "requirements": _requirements,
}


def _needed_for(feature: Feature) -> list[str]:
    rules = (("scheduling", feature.scheduling_rule), ("update", feature.update_rule))
    return [what for what, rule in rules if rule is not None]


def _described(feature: Feature) -> list[str]:
    wanted = feature.requirements
    lines = [feature.name, f"  feature gates: {', '.join(f'{gate}=true' for gate in wanted.gates)}"]
    if wanted.static_config:
        settings = ", ".join(f"{key}={value}" for key, value in wanted.static_config.items())
        lines.append(f"  configuration: {settings}")
    if needed := _needed_for(feature):
        lines.append(f"  needed by pods for: {', '.join(needed)}")
    if feature.direct_consumer:
        lines.append(f"  read by: {feature.direct_consumer}")
    lines.append(
        f"  matters: {f'up to {feature.max_version}' if feature.max_version else 'in every version'}"
    )
    return lines


def _pod(path: str) -> PodInfo:
    """Return the one pod of a file, with the claims that stand beside it."""
    found = objects(path, Pod, ResourceClaim)
    pods = [each for each in found if isinstance(each, Pod)]
    if len(pods) != 1:
        count = "no Pod" if not pods else f"{len(pods)} Pods"
        raise ConfigError(f"{path}: {count} in it, want one")
    claims = [each for each in found if isinstance(each, ResourceClaim)]
    return PodInfo(pods[0].spec, pods[0].status, claims)


def _settings(given: Sequence[str]) -> dict[str, str]:
    known = sorted({key for each in FRAMEWORK.features for key in each.requirements.static_config})
    settings: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--config {text}: want KEY=VALUE")
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
            raise ConfigError(f"--config {key}: no feature asks for it ({hint})")
        settings[key] = value
    return settings


def _answer(args: argparse.Namespace, tree: Any, lines: Sequence[str], empty: str = "") -> None:
    if args.output == "json":
        print(msgspec.json.format(msgspec.json.encode(tree)).decode())
    elif lines:
        print("\n".join(lines))
    elif empty:
        print(empty, file=sys.stderr)
