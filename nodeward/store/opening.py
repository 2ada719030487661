"""From the text of a flag to a store.

In: `memory`, `sqlite:PATH`, `etcd://HOST:PORT[,HOST:PORT...]` or `etcds://...` (TLS), the last two with
options such as `?ca=FILE&cert=FILE&key=FILE&root=/prefix`. Out: a store, not opened yet, or a `ConfigError`
that says what would be right. Only the store that is named is imported: gRPC alone takes longer than
everything else at start-up.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

from nodeward.base.errors import ConfigError
from nodeward.store.interface import Store

_FORMS: Final = "memory, sqlite:PATH, etcd://HOST:PORT[,HOST:PORT...] or etcds://HOST:PORT[,...]?ca=FILE"
_TLS_OPTIONS: Final = ("ca", "cert", "key")


def parse(text: str, *, hold: Callable[[], AbstractContextManager[None]] = nullcontext) -> Store:
    """Return the store that `text` names. `hold` is for stores that hand work to threads (see `SqliteStore`)."""
    if text == "memory":
        from nodeward.store.memory import MemoryStore

        return MemoryStore()
    kind, _, rest = text.partition(":")
    if kind == "sqlite":
        if not rest:
            raise ConfigError(
                f"store {text!r} names no file; write sqlite:PATH, for example sqlite:/var/lib/nodeward.db"
            )
        from nodeward.store.sqlite import SqliteStore

        return SqliteStore(rest, hold=hold)
    if kind in ("etcd", "etcds") and rest.startswith("//"):
        return _etcd(text, rest[2:], is_secure=kind == "etcds")
    near = difflib.get_close_matches(kind, ("memory", "sqlite", "etcd", "etcds"), 1)
    hint = f"; did you mean {near[0]}?" if near and near[0] != kind else ""
    raise ConfigError(f"store {text!r} is none that is known{hint} (known: {_FORMS})")


def _etcd(text: str, rest: str, *, is_secure: bool) -> Store:
    places, _, query = rest.partition("?")
    endpoints = places.rstrip("/").split(",")
    for endpoint in endpoints:
        host, _, port = endpoint.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ConfigError(f"store {text!r}: {endpoint!r} is no HOST:PORT, for example 10.0.0.1:2379")
        if ":" in host and not (host.startswith("[") and host.endswith("]")):
            raise ConfigError(f"store {text!r}: write an IPv6 address in brackets, for example [::1]:2379")
    known = ("root", *_TLS_OPTIONS) if is_secure else ("root",)
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name, value in options.items():
        if name in _TLS_OPTIONS and not is_secure:
            raise ConfigError(f"store {text!r}: {name} is for TLS; write etcds:// instead of etcd://")
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"store {text!r}: unknown option {name!r}{hint} (known: {', '.join(known)})")
        if not value:
            raise ConfigError(f"store {text!r}: option {name} has no value")
    if ("cert" in options) != ("key" in options):
        raise ConfigError(f"store {text!r}: cert and key go together; one of them is missing")
    from nodeward.store.etcd import EtcdStore
    from nodeward.store.etcd_wire.members import EtcdTls

    tls = (
        EtcdTls(**{name: Path(options[name]) for name in _TLS_OPTIONS if name in options})
        if is_secure
        else None
    )
    return EtcdStore(endpoints, root=options.get("root", ""), tls=tls)
