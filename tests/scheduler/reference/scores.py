"""The scores of every shipped plugin, for all nodes that fit: from 0 to 100, before their weight."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.scheduler.reference import pods_together
from tests.scheduler.reference.amounts import Amounts, amounts, requests
from tests.scheduler.reference.cluster import Cluster
from tests.scheduler.reference.matching import term_holds, tolerates

Tree = dict[str, Any]
#: None: the plugin has nothing to say about the pod
Score = Callable[[Tree, Sequence[Tree], Cluster, Tree], list[int] | None]

MB = 1024 * 1024
DEFAULT_RESOURCES = [{"name": "cpu"}, {"name": "memory"}]
BUILT_IN = ("cpu", "memory", "ephemeral-storage")


def taints(pod: Tree, nodes: Sequence[Tree], cluster: Cluster, arguments: Tree) -> list[int]:
    """Tolerations that speak of no effect, or of PreferNoSchedule, count."""
    counts = [
        sum(
            each["effect"] == "PreferNoSchedule" and not tolerates(pod, each)
            for each in node["spec"].get("taints", ())
        )
        for node in nodes
    ]
    most = max(counts)
    return [100 - (100 * each // most if most else 0) for each in counts]


def affinity(pod: Tree, nodes: Sequence[Tree], cluster: Cluster, arguments: Tree) -> list[int]:
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    terms = [
        *arguments.get("addedAffinity", {}).get(preferred, ()),
        *((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(preferred, ()),
    ]
    sums = [sum(each["weight"] for each in terms if term_holds(each["preference"], node)) for node in nodes]
    most = max(sums)
    return [100 * each // most if most else 0 for each in sums]


def _cells(
    resources: Sequence[Tree], wanted: Amounts, node: Tree, used: Amounts
) -> list[tuple[int, int, int, int]]:
    """(weight, used, wanted, there) of the resources that count."""
    there = amounts(node["status"]["allocatable"])
    return [
        (each.get("weight", 1), used.get(each["name"], 0), wanted.get(each["name"], 0), there[each["name"]])
        for each in resources
        if there.get(each["name"]) and (each["name"] in BUILT_IN or wanted.get(each["name"]))
    ]


def fit(pod: Tree, nodes: Sequence[Tree], cluster: Cluster, arguments: Tree) -> list[int]:
    strategy = arguments.get("scoringStrategy", {"type": "LeastAllocated"})
    resources = strategy.get("resources", DEFAULT_RESOURCES)
    wanted = requests(pod, is_placed=False, fill=True)
    scores: list[int] = []
    for node in nodes:
        cells = _cells(resources, wanted, node, cluster.counted(node["metadata"]["name"]))
        each = [(weight, _filled(strategy, used + more, there)) for weight, used, more, there in cells]
        if strategy["type"] == "RequestedToCapacityRatio":
            each = [pair for pair in each if pair[1] > 0]
        total, weights = sum(weight * score for weight, score in each), sum(weight for weight, _ in each)
        if not weights:
            scores.append(0)
        elif strategy["type"] == "RequestedToCapacityRatio":
            scores.append(math.floor(total / weights + 0.5))
        else:
            scores.append(total // weights)
    return scores


def _filled(strategy: Tree, used: int, there: int) -> int:
    if strategy["type"] == "LeastAllocated":
        return 0 if used > there else (there - used) * 100 // there
    percent = 100 if used > there else used * 100 // there
    if strategy["type"] == "MostAllocated":
        return percent
    points = [
        (each["utilization"], each["score"] * 10) for each in strategy["requestedToCapacityRatio"]["shape"]
    ]
    for number, (utilization, score) in enumerate(points):
        if percent <= utilization:
            if not number:
                return int(score)
            before, low = points[number - 1]
            return int(low + math.trunc((score - low) * (percent - before) / (utilization - before)))
    return int(points[-1][1])


def balanced(pod: Tree, nodes: Sequence[Tree], cluster: Cluster, arguments: Tree) -> list[int] | None:
    resources = arguments.get("resources", DEFAULT_RESOURCES)
    wanted = requests(pod, is_placed=False)
    if not any(wanted.get(each["name"]) for each in resources):
        return None
    scores: list[int] = []
    for node in nodes:
        cells = _cells(resources, wanted, node, cluster.taken(node["metadata"]["name"]))
        before = _evenness([min(used / there, 1.0) for _, used, _, there in cells])
        after = _evenness([min((used + more) / there, 1.0) for _, used, more, there in cells])
        scores.append(50 + (50 + after - before) // 2)
    return scores


def _evenness(shares: Sequence[float]) -> int:
    deviation = 0.0
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        mean = sum(shares) / len(shares)
        deviation = math.sqrt(sum((share - mean) ** 2 for share in shares) / len(shares))
    return int((1 - deviation) * 100)


def images(pod: Tree, nodes: Sequence[Tree], cluster: Cluster, arguments: Tree) -> list[int]:
    wanted = [each["image"] for each in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])]
    wanted += [each["image"]["reference"] for each in pod["spec"].get("volumes", ()) if "image" in each]
    wanted = [each if ":" in each.rpartition("/")[2] else f"{each}:latest" for each in wanted]
    scores: list[int] = []
    for node in nodes:
        total = 0
        for name in wanted:
            here = [each for each in node["status"].get("images", ()) if name in each["names"]]
            holders = sum(
                any(name in each["names"] for each in other["status"].get("images", ()))
                for other in cluster.nodes.values()
            )
            if here:
                total += int(here[0]["sizeBytes"] * (holders / len(cluster.nodes)))
        least, most = 23 * MB, 1000 * MB * len(wanted)
        scores.append(100 * (min(max(total, least), most) - least) // (most - least))
    return scores


SCORES: Mapping[str, Score] = {
    "TaintToleration": taints,
    "NodeAffinity": affinity,
    "NodeResourcesFit": fit,
    "PodTopologySpread": pods_together.spread_scores,
    "InterPodAffinity": pods_together.affinity_scores,
    "NodeResourcesBalancedAllocation": balanced,
    "ImageLocality": images,
}
