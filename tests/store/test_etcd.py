"""What is particular to the etcd store: several members, TLS, limits, a cluster that is not there."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from nodeward.base.errors import ConfigError
from nodeward.store.etcd import EtcdStore
from nodeward.store.etcd_wire.members import EtcdTls
from nodeward.store.interface import Compacted, OutcomeUnknown, Store, StoreUnavailable, ValueTooLarge
from nodeward.store.opening import parse
from tests.contracts.cut_line import CutLine
from tests.contracts.store_etcd_server import EtcdServer, free_port, running, running_cluster, running_etcd
from tests.contracts.store_grounds import next_batch, read_events


def play(store: Store, scenario: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await store.open()
        try:
            await scenario()
        finally:
            await store.close()

    asyncio.run(run())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    with running_etcd(tmp_path_factory.mktemp("etcd")) as server:
        yield server


def test_an_endpoint_that_is_dead_is_passed_over(server: EtcdServer) -> None:
    store = EtcdStore([f"127.0.0.1:{free_port()}", server.endpoint], root="/dead")

    async def scenario() -> None:
        result = await store.put("/a", b"", expected=0)
        assert result.succeeded
        watch = store.watch("/", after=result.revision - 1)
        assert [event.key for event in await read_events(watch, 1)] == ["/a"]
        await watch.aclose()

    play(store, scenario)


def test_roots_do_not_see_each_other(server: EtcdServer) -> None:
    one = EtcdStore([server.endpoint], root="/one")
    two = EtcdStore([server.endpoint], root="/two")

    async def scenario() -> None:
        await two.open()
        before = await one.revision()
        watch = two.watch("", after=before)
        await one.put("/a", b"1", expected=0)
        await two.put("/a", b"2", expected=0)
        assert [(item.key, item.value) for item in (await one.range("")).items] == [("/a", b"1")]
        assert [event.value for event in await read_events(watch, 1)] == [b"2"]
        await watch.aclose()
        await two.close()

    play(one, scenario)


def test_a_value_larger_than_etcd_takes_is_refused_for_good(server: EtcdServer) -> None:
    store = EtcdStore([server.endpoint], root="/large")

    async def scenario() -> None:
        with pytest.raises(ValueTooLarge):
            await store.put("/a", bytes(4 << 20), expected=0)
        assert await store.get("/a") is None

    play(store, scenario)


def test_watches_hear_of_what_other_servers_write(server: EtcdServer) -> None:
    store = EtcdStore([server.endpoint], root="/shared")
    other = EtcdStore([server.endpoint], root="/shared")

    async def scenario() -> None:
        await other.open()
        watch = store.watch("/", after=await store.revision())
        await other.put("/a", b"theirs", expected=0)
        assert [event.value for event in await read_events(watch, 1)] == [b"theirs"]
        await watch.request_progress()
        assert await next_batch(watch) == []
        assert watch.revision >= await other.revision()
        await watch.aclose()
        await other.close()

    play(store, scenario)


def test_ranges_longer_than_one_answer_are_put_together(
    server: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodeward.store.etcd._PAGE_KEYS", 7)
    store = EtcdStore([server.endpoint], root="/pages")

    async def scenario() -> None:
        await asyncio.gather(*(store.put(f"/{n:02}", b"", expected=0) for n in range(30)))
        assert [item.key for item in (await store.range("/")).items] == [f"/{n:02}" for n in range(30)]
        page = await store.range("/", limit=16)
        assert (len(page.items), page.remaining) == (16, 14)

    play(store, scenario)


def test_a_range_of_the_newest_state_survives_a_compaction_between_its_pages(
    server: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodeward.store.etcd._PAGE_KEYS", 1)
    store = EtcdStore([server.endpoint], root="/compacted-pages")

    async def scenario() -> None:
        await asyncio.gather(*(store.put(f"/{n:03}", b"", expected=0) for n in range(400)))
        reading = asyncio.create_task(store.range("/"))
        added = await store.put("/new", b"", expected=0)
        await store.compact(added.revision)
        assert not reading.done()
        page = await reading
        assert [item.key for item in page.items] == [*(f"/{n:03}" for n in range(400)), "/new"]
        assert page.revision >= added.revision

    play(store, scenario)


def test_compaction_by_another_server_while_the_line_is_cut_ends_the_watches_that_lost_events(
    server: EtcdServer,
) -> None:
    other = EtcdStore([server.endpoint], root="/cut")

    async def scenario() -> None:
        line = CutLine(server.endpoint)
        await line.mend()
        store = EtcdStore([line.endpoint], root="/cut")
        await store.open()
        try:
            watch = store.watch("/", after=await other.revision())
            first = await other.put("/a", b"", expected=0)
            assert [event.revision for event in await read_events(watch, 1)] == [first.revision]
            await line.cut()
            await other.put("/b", b"", expected=0)
            await other.delete("/a", expected=first.revision)
            await other.compact(await other.revision())
            await line.mend()
            with pytest.raises(Compacted) as caught:
                await next_batch(watch)
            assert caught.value.compacted == await other.revision()
            await watch.aclose()
            page = await store.range("/")
            assert [item.key for item in page.items] == ["/b"]
            fresh = store.watch("/", after=page.revision)
            third = await other.put("/c", b"", expected=0)
            assert [event.revision for event in await read_events(fresh, 1)] == [third.revision]
            await fresh.aclose()
        finally:
            await store.close()
            await line.cut()

    play(other, scenario)


def test_a_write_that_went_unanswered_is_called_unknown(server: EtcdServer) -> None:
    async def scenario() -> None:
        line = CutLine(server.endpoint)
        await line.mend()
        store = EtcdStore([line.endpoint], root="/unanswered", call_seconds=0.3)
        await store.open()
        await line.cut()
        try:
            with pytest.raises(OutcomeUnknown):
                await store.put("/a", b"", expected=0)
        finally:
            await store.close()
        with pytest.raises(StoreUnavailable) as closed:
            await store.put("/a", b"", expected=0)
        assert not isinstance(closed.value, OutcomeUnknown)

    asyncio.run(scenario())


@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_named(tmp_path: Path) -> None:
    endpoint = f"127.0.0.1:{free_port()}"
    store = EtcdStore([endpoint])
    with pytest.raises(StoreUnavailable, match=endpoint):
        asyncio.run(store.open())


@pytest.mark.slow
def test_any_member_of_a_cluster_may_die_and_come_back(tmp_path: Path) -> None:
    with running_cluster(tmp_path, 3) as servers:
        store = EtcdStore([server.endpoint for server in servers])

        async def scenario() -> None:
            watch = store.watch("/", after=await store.revision())
            expected = 0
            for server in servers:
                server.kill()
                for _ in range(20):
                    result = await store.put("/a", b"%d" % expected, expected=expected)
                    assert result.succeeded
                    expected = result.revision
                server.start()
                # The next one may die only when this one is back, or there is no majority.
                back = EtcdStore([server.endpoint])
                await back.open()
                assert (await back.get("/a")) is not None
                await back.close()
            assert len(await read_events(watch, 60)) == 60
            await watch.aclose()

        play(store, scenario)


def test_a_tls_cluster_is_reached_with_the_right_files_only(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    server = EtcdServer(
        tmp_path,
        scheme="https",
        options=[
            f"--cert-file={tmp_path / 'node.pem'}",
            f"--key-file={tmp_path / 'node.key'}",
            f"--trusted-ca-file={tmp_path / 'ca.pem'}",
            "--client-cert-auth",
        ],
    )
    files = f"ca={tmp_path / 'ca.pem'}&cert={tmp_path / 'node.pem'}&key={tmp_path / 'node.key'}"
    with running(server):
        store = parse(f"etcds://{server.endpoint}?{files}")

        async def scenario() -> None:
            assert (await store.put("/a", b"", expected=0)).succeeded

        play(store, scenario)


def test_a_missing_certificate_file_is_named(tmp_path: Path) -> None:
    store = EtcdStore(["127.0.0.1:1"], tls=EtcdTls(ca=tmp_path / "nowhere.pem"))
    with pytest.raises(ConfigError, match=r"nowhere\.pem"):
        asyncio.run(store.open())


def make_certificates(directory: Path) -> None:
    """A certificate authority (ca.pem) and one certificate for server and client (node.pem, node.key)."""
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    end = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)

    def certificate(
        name: str, key: ec.EllipticCurvePrivateKey, issuer: str, issuer_key: ec.EllipticCurvePrivateKey
    ) -> x509.Certificate:
        is_authority = name == issuer
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
            .public_key(key.public_key())
            .serial_number(2 if is_authority else 3)
            .not_valid_before(start)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(names, critical=False)
            .sign(issuer_key, hashes.SHA256())
        )

    authority_key, node_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = certificate("authority", authority_key, "authority", authority_key)
    node = certificate("node", node_key, "authority", authority_key)
    (directory / "ca.pem").write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    (directory / "node.pem").write_bytes(node.public_bytes(serialization.Encoding.PEM))
    (directory / "node.key").write_bytes(
        node_key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
