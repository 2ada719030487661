"""Flags become stores, and bad ones become errors that say what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeward.base.errors import ConfigError
from nodeward.store.etcd import EtcdStore
from nodeward.store.memory import MemoryStore
from nodeward.store.opening import parse
from nodeward.store.sqlite import SqliteStore


def test_every_form_gives_its_store(tmp_path: Path) -> None:
    assert isinstance(parse("memory"), MemoryStore)
    assert isinstance(parse(f"sqlite:{tmp_path / 'a b.db'}"), SqliteStore)
    assert isinstance(parse("etcd://127.0.0.1:2379,[::1]:2379"), EtcdStore)
    assert isinstance(parse("etcds://etcd.example:2379?root=/x&ca=ca.pem&cert=c.pem&key=k.pem"), EtcdStore)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "known: memory, sqlite:PATH"),
        ("memroy", "did you mean memory?"),
        ("sqlit:/tmp/x", "did you mean sqlite?"),
        ("sqlite", "sqlite:PATH"),
        ("sqlite:", "sqlite:PATH"),
        ("etcd:127.0.0.1:2379", "etcd://HOST:PORT"),
        ("etcd://", "no HOST:PORT"),
        ("etcd://localhost", "no HOST:PORT"),
        ("etcd://localhost:port", "no HOST:PORT"),
        ("etcd://localhost:70000", "no HOST:PORT"),
        ("etcd://a:1,,b:2", "no HOST:PORT"),
        ("etcd://::1:2379", "in brackets"),
        ("etcd://a:1?ca=x", "etcds://"),
        ("etcd://a:1?rot=/x", "did you mean root?"),
        ("etcds://a:1?ca=", "no value"),
        ("etcds://a:1?cert=c.pem", "go together"),
    ],
)
def test_a_bad_store_is_refused_with_what_would_be_right(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert expected in str(caught.value)
    assert repr(text) in str(caught.value)
