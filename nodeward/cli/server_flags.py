"""From the flags of `nodeward up` and `nodeward apiserver` to values, before anything is made or opened.

Turns parsed arguments into `ServerOptions`, for `cli/up.py`. Files named by flags are read here and nothing is written,
so that a wrong flag leaves no trace. Every mistake is a `ConfigError` that names the flag.
"""

from __future__ import annotations

import argparse
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from nodeward.apiserver.admission.plugins import chosen
from nodeward.apiserver.auth.token_file import read_token_file
from nodeward.apiserver.auth.user import User
from nodeward.apiserver.pki import CLUSTER
from nodeward.base.duration import SECOND_NS, parse_duration
from nodeward.base.errors import ConfigError
from nodeward.features import Gates
from nodeward.store.interface import Store
from nodeward.store.opening import parse

#: The smallest service range, as kube-apiserver's.
_FEWEST_ADDRESSES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """The configuration that the flags describe. The store is not opened."""

    home: Path
    kubeconfig: Path
    store: Store
    store_text: str
    gates: Gates
    static_tokens: Mapping[str, User]
    enable_admission: tuple[str, ...]
    disable_admission: tuple[str, ...]
    admission: tuple[str, ...]
    event_ttl_seconds: float
    service_cidr: str
    service_address: str
    #: warnings for the operator about accepted flags
    warnings: tuple[str, ...]


def read_flags(args: argparse.Namespace) -> ServerOptions:
    """Read everything the flags say; raise `ConfigError` for what is wrong."""
    home = Path(args.dir)
    gates = _gates(args)
    enable, disable = _enabled(args), _names(args.disable_admission_plugins)
    plugins = tuple(plugin.name for plugin in chosen(enable, disable))
    tokens, token_warnings = _static_tokens(args.token_auth_file)
    services = _service_range(args.service_cluster_ip_range)
    store_text = _store_text(args, home)
    return ServerOptions(
        home=home,
        kubeconfig=_kubeconfig(args.kubeconfig, home),
        store=parse(store_text),
        store_text=store_text,
        gates=gates,
        static_tokens=tokens,
        enable_admission=enable,
        disable_admission=disable,
        admission=plugins,
        event_ttl_seconds=_event_ttl(args.event_ttl),
        service_cidr=str(services),
        service_address=str(services[1]),
        warnings=(*gates.warnings, *token_warnings),
    )


def _event_ttl(text: str) -> float:
    try:
        found = parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"--event-ttl: {error}") from None
    if found < 0:
        raise ConfigError(f"--event-ttl: {text} is negative; give a duration such as 1h, or 0 to keep events")
    return found / SECOND_NS


def _gates(args: argparse.Namespace) -> Gates:
    try:
        Gates.of(args.kubernetes_version)
    except ConfigError as error:
        raise ConfigError(f"--kubernetes-version: {error}") from None
    try:
        return Gates.of(args.kubernetes_version, args.feature_gates)
    except ConfigError as error:
        raise ConfigError(f"--feature-gates: {error}") from None


def _service_range(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    flag = "--service-cluster-ip-range"
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        raise ConfigError(f"{flag}: {text!r} is no range, for example 10.96.0.0/16") from None
    if network.num_addresses < _FEWEST_ADDRESSES:
        raise ConfigError(f"{flag}: {text} must have at least {_FEWEST_ADDRESSES} addresses")
    return network


def _static_tokens(path: str) -> tuple[dict[str, User], list[str]]:
    if not path:
        return {}, []
    try:
        text = Path(path).read_text()
    except OSError as error:
        raise ConfigError(f"--token-auth-file: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"--token-auth-file: {path} is not a text file") from None
    return read_token_file(text, path)


def _kubeconfig(given: str, home: Path) -> Path:
    """Return where the kubeconfig is written. A file with other clusters in it is not overwritten."""
    if not given:
        return home / "kubeconfig"
    path = Path(given)
    if path.is_dir():
        raise ConfigError(f"--kubeconfig: {path} is a directory; name a file in it")
    try:
        found = path.read_bytes()
    except OSError:
        return path  # not there yet; whether it can be written shows when it is
    if found.strip() and not _is_ours(found):
        raise ConfigError(
            f"--kubeconfig: {path} has something else in it and is not written over; name another file "
            "(KUBECONFIG may list several, with colons)"
        )
    return path


def _is_ours(found: bytes) -> bool:
    import yaml

    try:
        tree: Any = yaml.safe_load(found)
    except (yaml.YAMLError, UnicodeDecodeError):
        return False
    clusters = tree.get("clusters") if isinstance(tree, dict) else None
    if not isinstance(clusters, list) or len(clusters) != 1:
        return False
    return isinstance(clusters[0], dict) and clusters[0].get("name") == CLUSTER


def _enabled(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the enabled admission plugins, with NodeRestriction: kubelets have their own certificates here."""
    asked = _names(args.enable_admission_plugins)
    is_off = "NodeRestriction" in _names(args.disable_admission_plugins)
    return asked if is_off or "NodeRestriction" in asked else (*asked, "NodeRestriction")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _store_text(args: argparse.Namespace, home: Path) -> str:
    embedded = f"sqlite:{home / 'state.db'}"
    if args.command == "apiserver":
        return _etcd_url(args, embedded)
    return embedded if args.store == "sqlite" else str(args.store)


def _etcd_url(args: argparse.Namespace, embedded: str) -> str:
    """Return kube-apiserver's etcd flags as the one URL the store reads."""
    files = {"ca": args.etcd_cafile, "cert": args.etcd_certfile, "key": args.etcd_keyfile}
    given = {name: path for name, path in files.items() if path}
    flags = ", ".join(f"--etcd-{name}file" for name in given)
    servers = _names(args.etcd_servers)
    if not servers:
        if given:
            raise ConfigError(f"{flags}: there is no --etcd-servers to use it for")
        return embedded
    places: list[str] = []
    schemes: set[str] = set()
    for server in servers:
        scheme, separator, place = server.partition("://")
        if not separator or scheme not in ("http", "https"):
            raise ConfigError(f"--etcd-servers: {server!r} is no URL, for example http://127.0.0.1:2379")
        schemes.add(scheme)
        places.append(place.rstrip("/"))
    if len(schemes) != 1:
        raise ConfigError("--etcd-servers: write either http:// or https:// for all endpoints")
    if given and schemes == {"http"}:
        raise ConfigError(f"{flags}: for TLS only; write https:// in --etcd-servers")
    url = f"etcd{'s' if schemes == {'https'} else ''}://{','.join(places)}"
    return f"{url}?{urlencode(given)}" if given else url
