"""The filters of every shipped plugin, one plain function each: a pod, a node, a cluster; out come reasons.

An answer is the reasons and whether evicting pods might help; no reasons: the node fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.scheduler.reference import pods_together
from tests.scheduler.reference.amounts import amounts
from tests.scheduler.reference.cluster import Cluster
from tests.scheduler.reference.matching import any_term_holds, bars, tolerates, wants

Tree = dict[str, Any]
Answer = tuple[tuple[str, ...], bool]
Filter = Callable[[Tree, Tree, Cluster, Tree], Answer]

FITS: Answer = ((), False)


def no(reason: str, *, may_help: bool = False) -> Answer:
    return (reason,), may_help


def name(pod: Tree, node: Tree, cluster: Cluster, arguments: Tree) -> Answer:
    wanted = pod["spec"].get("nodeName")
    is_other = wanted and wanted != node["metadata"]["name"]
    return no("node(s) didn't match the requested node name") if is_other else FITS


def unschedulable(pod: Tree, node: Tree, cluster: Cluster, arguments: Tree) -> Answer:
    cordon = {"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}
    if node["spec"].get("unschedulable") and not tolerates(pod, cordon):
        return no("node(s) were unschedulable")
    return FITS


def taints(pod: Tree, node: Tree, cluster: Cluster, arguments: Tree) -> Answer:
    return no("node(s) had untolerated taint(s)") if bars(pod, node) else FITS


def affinity(pod: Tree, node: Tree, cluster: Cluster, arguments: Tree) -> Answer:
    added = arguments.get("addedAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    if added is not None and not any_term_holds(added, node):
        return no("node(s) didn't match scheduler-enforced node affinity")
    return FITS if wants(pod, node) else no("node(s) didn't match Pod's node affinity/selector")


def ports(pod: Tree, node: Tree, cluster: Cluster, arguments: Tree) -> Answer:
    taken = [each for other in cluster.on(node["metadata"]["name"]) for each in _host_ports(other.tree)]
    for address, protocol, port in _host_ports(pod):
        for other_address, other_protocol, other_port in taken:
            meet = address == other_address or "0.0.0.0" in (address, other_address)
            if (protocol, port) == (other_protocol, other_port) and meet:
                return no("node(s) didn't have free ports for the requested pod ports", may_help=True)
    return FITS


def _host_ports(pod: Tree) -> list[tuple[str, str, int]]:
    sidecars = [c for c in pod["spec"].get("initContainers", ()) if c.get("restartPolicy") == "Always"]
    return [
        (each.get("hostIP") or "0.0.0.0", each.get("protocol") or "TCP", each["hostPort"])
        for container in (*pod["spec"]["containers"], *sidecars)
        for each in container.get("ports", ())
        if each.get("hostPort")
    ]


def fit(pod: Tree, node: Tree, cluster: Cluster, arguments: Tree) -> Answer:
    where = node["metadata"]["name"]
    there, taken = amounts(node["status"]["allocatable"]), cluster.taken(where)
    reasons: list[str] = []
    may_help = True
    if len(cluster.on(where)) + 1 > there.get("pods", 0):
        reasons.append("Too many pods")
    for resource, wanted in cluster.asked(pod).items():
        if not wanted or _is_ignored(resource, arguments):
            continue
        if wanted > there.get(resource, 0) - taken.get(resource, 0):
            reasons.append(f"Insufficient {resource}")
            may_help = may_help and wanted <= there.get(resource, 0)
    return (tuple(reasons), may_help) if reasons else FITS


def _is_ignored(resource: str, arguments: Tree) -> bool:
    if "/" not in resource:
        return False
    return resource in arguments.get("ignoredResources", ()) or (
        resource.split("/")[0] in arguments.get("ignoredResourceGroups", ())
    )


def features(pod: Tree, node: Tree, cluster: Cluster, arguments: Tree) -> Answer:
    """The needs this generator can give a pod."""
    containers = (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])
    needed: list[str] = []
    if any(
        rule["action"] == "RestartAllContainers"
        for c in containers
        for rule in c.get("restartPolicyRules", ())
    ):
        needed.append("RestartAllContainersOnContainerExits")
    if any(mount.get("bindMountOptions") for c in containers for mount in c.get("volumeMounts", ())):
        needed.append("VolumeBindMountOptions")
    missing = [each for each in needed if each not in node["status"].get("declaredFeatures", ())]
    return no(f"node(s) did not match node declared features: {', '.join(missing)}") if missing else FITS


def readiness(pod: Tree, node: Tree, cluster: Cluster, arguments: Tree) -> Answer:
    gates = node["spec"].get("readinessGates", ())
    owners = pod["metadata"].get("ownerReferences", ())
    if not gates or any(each["kind"] == "DaemonSet" and each["controller"] for each in owners):
        return FITS
    conditions = {each["type"]: each for each in node["status"].get("conditions", ())}
    waiting = [] if conditions.get("Ready", {}).get("status") == "True" else ["Ready"]
    for gate in gates:
        condition = conditions.get(gate["conditionType"], {})
        given_up = condition.get("status") == "Unknown" and condition.get("reason") == "TimeoutExceeded"
        mark = gate.get("readinessTaint")
        is_bypassed = gate.get("failureAction") == "BypassWithWarning" or mark is None
        if given_up and not is_bypassed:
            there = [(each["key"], each["effect"]) for each in node["spec"].get("taints", ())]
            if (mark["key"], mark["effect"]) not in there:
                shown = f"{mark['key']}:{mark['effect']}"
                waiting.append(f"{gate['conditionType']} (timed out, waiting for its taint {shown})")
        elif condition.get("status") != "True" and not given_up:
            waiting.append(gate["conditionType"])
    return no(f"node(s) had unsatisfied readiness gates: {', '.join(waiting)}") if waiting else FITS


FILTERS: Mapping[str, Filter] = {
    "NodeName": name,
    "NodeUnschedulable": unschedulable,
    "TaintToleration": taints,
    "NodeAffinity": affinity,
    "NodePorts": ports,
    "NodeResourcesFit": fit,
    "PodTopologySpread": pods_together.spread_filter,
    "InterPodAffinity": pods_together.affinity_filter,
    "NodeDeclaredFeatures": features,
    "NodeReadinessGates": readiness,
}
