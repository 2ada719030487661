"""`nodeward why pod NAMESPACE/NAME`: why a pod is not scheduled, node by node and plugin by plugin.

An ordinary client of any cluster, a real kube-apiserver included: lists what the scheduler would know, and asks the
scheduler's plugins. Nothing in the cluster is changed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
from collections.abc import Mapping
from typing import NoReturn

import msgspec

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.api.errors import ApiError
from nodeward.api.meta import KubeObject
from nodeward.base.errors import ConfigError, WorldError
from nodeward.cli.listing import all_of, some_of
from nodeward.cli.why_page import SchedulingAnswer, as_json, as_text
from nodeward.features import Gates, Version
from nodeward.features.gates import parse
from nodeward.machinery.client import Client
from nodeward.machinery.clock import RealClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.kubeconfig import load_config
from nodeward.scheduler.config import load_scheduler_config
from nodeward.scheduler.explanation import explain_pod
from nodeward.scheduler.framework.context import looked_up
from nodeward.scheduler.framework.listers import FixedListers
from nodeward.scheduler.plugins import REGISTRY
from nodeward.scheduler.settings import ProfileSettings, default_profile

#: How a gate stands on the page of metrics of an API server.
_GATE = re.compile(r'^kubernetes_feature_enabled\{name="(\w+)"[^}]*\} ([01])(?:\.0)?$', re.MULTILINE)


class _ServerVersion(msgspec.Struct):
    major: str = ""
    minor: str = ""


def run(args: argparse.Namespace) -> int:
    """Explain the pod, and print the answer."""
    answer = asyncio.run(_ask(args))
    print(as_json(answer) if args.output == "json" else as_text(answer, every_node=args.all))
    return 0


async def _ask(args: argparse.Namespace) -> SchedulingAnswer:
    environment = dict(os.environ)
    config = load_config(environment, path=args.kubeconfig, context=args.context)
    namespace, name = _named(args, config.namespace)
    client = connect(config, clock=RealClock(), environment=environment, component="nodeward-why")
    try:
        version = args.kubernetes_version or await _server_version(client)
        gates = _gates(args, version, await _server_gates(client, version))
        profiles = load_scheduler_config(args.config, gates).profiles if args.config else ()
        pod = await _pod(client, namespace, name)
        return await _explained(args, client, pod, gates, profiles or (default_profile(gates),))
    finally:
        await client.aclose()


async def _explained(
    args: argparse.Namespace, client: Client, pod: Pod, gates: Gates, profiles: tuple[ProfileSettings, ...]
) -> SchedulingAnswer:
    key = f"{pod.metadata.namespace}/{pod.metadata.name}"
    wanted = pod.spec.scheduler_name
    if pod.spec.node_name and not args.as_if_pending:
        return SchedulingAnswer(key, wanted, bound_to=pod.spec.node_name, phase=pod.status.phase)
    if is_terminal(pod) and not args.as_if_pending:
        return SchedulingAnswer(key, wanted, phase=pod.status.phase)
    profile = next((each for each in profiles if each.name == wanted), None)
    notes: list[str] = []
    if profile is None:
        profile = profiles[0]
        notes.append(
            f"the pod asks for the scheduler {wanted!r}, which is none of: "
            f"{', '.join(each.name for each in profiles)}; explained as {profile.name} would see it"
        )
    nodes = await all_of(client, Node)
    pods = await all_of(client, Pod)
    listers = FixedListers()
    for kind in _looked_up(profile):
        for obj in await some_of(client, kind, notes, "explained as if there were none"):
            listers.put(obj)
    explanation = explain_pod(pod, nodes, pods, listers, profile, gates, Version.parse(gates.version))
    return SchedulingAnswer(
        key, wanted, bound_to=pod.spec.node_name, explanation=explanation, notes=(*gates.warnings, *notes)
    )


# -- what was typed


def _named(args: argparse.Namespace, default: str) -> tuple[str, str]:
    namespace, slash, name = args.name.rpartition("/")
    if slash and args.namespace and namespace != args.namespace:
        raise ConfigError(f"{args.name} is in namespace {namespace!r}, but -n says {args.namespace!r}")
    if not name or (slash and not namespace) or "/" in namespace:
        raise ConfigError(
            f"{args.name!r} is no name of a pod; want NAMESPACE/NAME, or NAME with -n NAMESPACE"
        )
    return namespace or args.namespace or default, name


def _gates(args: argparse.Namespace, version: str, served: Mapping[str, bool]) -> Gates:
    """Return the scheduler's gates: those of the API server, unless the flags say otherwise."""
    try:
        Gates.of(version)
    except ConfigError as error:
        hint = "" if args.kubernetes_version else " (the server's; choose another with --kubernetes-version)"
        raise ConfigError(f"Kubernetes {version}{hint}: {error}") from None
    try:
        return Gates.of_mapping(version, {**served, **parse(args.feature_gates)})
    except ConfigError as error:
        raise ConfigError(f"--feature-gates: {error}") from None


# -- what the cluster says


async def _server_version(client: Client) -> str:
    response = await client.raw("GET", "/version")
    found = msgspec.json.decode(response.body or b"{}", type=_ServerVersion)
    digits = "".join(each for each in found.minor if each.isdecimal())  # some providers write 31+
    return f"{found.major}.{digits}"


async def _server_gates(client: Client, version: str) -> dict[str, bool]:
    """Return the API server's gates from its metrics, where they differ from the version's defaults."""
    try:
        page = (await client.raw("GET", "/metrics")).body or b""
    except (ApiError, WorldError):
        return {}  # not everybody may read them
    try:
        usual = {name: is_on for name, _, is_on in Gates.of(version)}
    except ConfigError:
        return {}  # told elsewhere
    found = {name: value == "1" for name, value in _GATE.findall(page.decode(errors="replace"))}
    return {name: is_on for name, is_on in found.items() if usual.get(name, is_on) is not is_on}


async def _pod(client: Client, namespace: str, name: str) -> Pod:
    try:
        return await client.get(Pod, name, namespace)
    except ApiError as error:
        if error.code != 404:
            raise
        await _not_found(client, namespace, name)


async def _not_found(client: Client, namespace: str, name: str) -> NoReturn:
    """Make the error for a pod that does not exist; names a pod with a similar name."""
    import difflib

    try:
        others = [pod.metadata.name for pod in (await client.list(Pod, namespace)).items]
    except ApiError:
        others = []
    near = difflib.get_close_matches(name, others, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ConfigError(f"there is no pod {name!r} in namespace {namespace!r}{hint}")


def _looked_up(profile: ProfileSettings) -> list[type[KubeObject]]:
    """Return the kinds the plugins of a profile read, each once."""
    used = {use.name for use in profile.plugins}
    return looked_up(REGISTRY, used)
