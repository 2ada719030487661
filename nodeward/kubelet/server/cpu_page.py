"""/debug/cpus: which CPUs a node has, who owns each, and what is held in a scale-down delay, as JSON.

The kubelet's server calls `cpu_page`; `nodeward cpus` reads the answer through the API server. `?node=NAME` says which
node is meant, where one server stands for several.

What must stay true: reading changes nothing; a node with CPU manager policy none says so and nothing more.
"""

from __future__ import annotations

import json
from typing import Any, Final

from nodeward.base.duration import SECOND_NS, format_duration
from nodeward.base.timestamp import rfc3339_micro
from nodeward.kubelet.agent import Agent
from nodeward.kubelet.cpu.cpu_map import ContainerCPUs, CPUMap
from nodeward.kubelet.server.finding import Hosts, Refused
from nodeward.machinery.clock import Clock
from nodeward.machinery.serving.answer import JSON, Answer

_MOST_NAMED: Final = 5


def cpu_page(hosts: Hosts, clock: Clock, name: str) -> Answer:
    """Answer with the map of the node `name`; "": of the only one there is."""
    agent = _agent(hosts, name)
    found = agent.container_manager.cpu_map(clock.monotonic_ns())
    page: dict[str, Any] = {"node": agent.name, "policy": agent.specification.settings.cpu_policy}
    if found is not None:
        page |= _page(agent, found, clock.now_ns())
    return Answer(200, json.dumps(page).encode() + b"\n", JSON)


def _agent(hosts: Hosts, name: str) -> Agent:
    agents = {each.name: each for host in hosts() for each in host.nodes.agents.values()}
    if not name and len(agents) == 1:
        return next(iter(agents.values()))
    if not name:
        some = ", ".join(sorted(agents)[:_MOST_NAMED])
        more = f" and {len(agents) - _MOST_NAMED} more" if len(agents) > _MOST_NAMED else ""
        raise Refused(
            400, f"this server stands for {len(agents)} nodes: say ?node=NAME; there are {some}{more}"
        )
    if name not in agents:
        raise Refused(404, f"no kubelet of node {name!r} runs here")
    return agents[name]


def _page(agent: Agent, found: CPUMap, now_ns: int) -> dict[str, Any]:
    topology = found.topology
    return {
        "options": dict(found.options or {}),
        "scaleDelay": format_duration(found.scale_delay_ns),
        "reserved": str(found.reserved),
        "shared": str(found.shared),
        "cpus": [
            {
                "cpu": cpu,
                "socket": info.socket,
                "numaNode": info.numa_node,
                "uncoreCache": info.uncore_cache,
                "core": info.core,
            }
            for cpu, info in topology.details.items()
        ],
        "containers": [_container(agent, each, now_ns) for each in found.containers],
    }


def _container(agent: Agent, cpus: ContainerCPUs, now_ns: int) -> dict[str, Any]:
    managed = agent.pods.get(cpus.uid)
    meta = managed.life.pod.metadata if managed is not None else None
    shown: dict[str, Any] = {
        "namespace": meta.namespace if meta is not None else "",
        "pod": meta.name if meta is not None else "",
        "uid": cpus.uid,
        "container": cpus.container,
        "assigned": str(cpus.assigned),
    }
    if cpus.applied is not None:
        shown["applied"] = str(cpus.applied)
    if cpus.pending is not None:
        shown |= {
            "pending": str(cpus.pending.cpus),
            "held": str(cpus.held),
            "heldSeconds": round(cpus.pending.left_ns / SECOND_NS, 3),
            "heldUntil": rfc3339_micro(now_ns + cpus.pending.left_ns),
        }
    return shown
