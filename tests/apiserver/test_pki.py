"""Certificates: made once, kept, renewed, never overwritten by accident."""

from __future__ import annotations

import base64
import ssl
import stat
import timeit
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from nodeward.apiserver.auth.authenticate import certificate_user
from nodeward.apiserver.auth.token_keys import load_key
from nodeward.apiserver.pki import KeyPair, Pki, kubeconfig, server_context
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import ConfigError, WorldError
from nodeward.machinery.clock import RealClock

DAY = 24 * 3600 * SECOND_NS
NOW = 1_767_225_600 * SECOND_NS


def parsed(pair: KeyPair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate)


def names(pair: KeyPair) -> set[str]:
    found = parsed(pair).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in found}


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def everything(directory: Path, now_ns: int = NOW) -> Pki:
    pki = Pki(directory, now_ns)
    pki.serving("host-1")
    pki.admin()
    pki.service_account_key()
    return pki


def test_the_first_start_makes_everything_readable_by_the_owner_only(tmp_path: Path) -> None:
    directory = tmp_path / "deep" / "pki"
    everything(directory)
    assert sorted(contents(directory)) == [
        *("admin.crt", "admin.key", "apiserver.crt", "apiserver.key"),
        *("ca.crt", "ca.key", "sa.key"),
    ]
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}


def test_the_next_start_changes_nothing(tmp_path: Path) -> None:
    everything(tmp_path)
    before = contents(tmp_path)
    everything(tmp_path, NOW + 300 * DAY)
    assert contents(tmp_path) == before


def test_the_whole_takes_less_than_a_tenth_of_a_second(tmp_path: Path) -> None:
    everything(tmp_path / "warm")
    runs = iter(range(10))
    best = min(timeit.repeat(lambda: everything(tmp_path / str(next(runs))), number=1, repeat=5))
    assert best < 0.1


def test_the_server_is_good_for_all_its_names(tmp_path: Path) -> None:
    pair = Pki(tmp_path, NOW).serving("host-1", ["api.example.com", "192.0.2.7", "localhost"])
    assert names(pair) == {
        *("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"),
        *("kubernetes.default.svc.cluster.local", "127.0.0.1", "::1", "10.96.0.1"),
        *("host-1", "api.example.com", "192.0.2.7"),
    }
    certificate = parsed(pair)
    assert isinstance(certificate.public_key(), ec.EllipticCurvePublicKey)
    assert certificate.not_valid_before_utc == datetime(2025, 12, 31, 23, 55, tzinfo=UTC)
    assert certificate.not_valid_after_utc == datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=365)


def test_a_name_that_cannot_stand_in_a_certificate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'bücher' cannot stand in a certificate"):
        Pki(tmp_path, NOW).serving("host", ["bücher"])


def test_new_names_give_a_new_certificate_from_the_same_authority(tmp_path: Path) -> None:
    pki = Pki(tmp_path, NOW)
    authority = pki.authority_certificate
    first = pki.serving("host-1")
    assert pki.serving("host-1") == first
    second = pki.serving("host-1", ["more.example.com"])
    assert second.key != first.key
    assert "more.example.com" in names(second)
    assert Pki(tmp_path, NOW).authority_certificate == authority
    parsed(second).verify_directly_issued_by(x509.load_pem_x509_certificate(authority))


def test_a_certificate_about_to_expire_is_made_again(tmp_path: Path) -> None:
    first = Pki(tmp_path, NOW).admin()
    assert Pki(tmp_path, NOW + 334 * DAY).admin() == first
    second = Pki(tmp_path, NOW + 336 * DAY).admin()
    assert second.certificate != first.certificate
    assert parsed(second).not_valid_after_utc == datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=336 + 365)


def test_no_certificate_outlives_its_authority_nor_is_it_renewed_in_vain(tmp_path: Path) -> None:
    Pki(tmp_path, NOW)
    late = NOW + 3640 * DAY
    first = Pki(tmp_path, late).admin()
    assert parsed(first).not_valid_after_utc == datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=3650)
    assert Pki(tmp_path, late + DAY).admin() == first


def test_an_expired_authority_is_left_to_the_operator(tmp_path: Path) -> None:
    Pki(tmp_path, NOW)
    before = contents(tmp_path)
    with pytest.raises(ConfigError, match=r"ca.crt expired on 2035-12-30"):
        Pki(tmp_path, NOW + 3651 * DAY)
    assert contents(tmp_path) == before


def test_a_certificate_of_another_authority_is_made_again(tmp_path: Path) -> None:
    mine, theirs = Pki(tmp_path / "mine", NOW), Pki(tmp_path / "theirs", NOW)
    foreign = theirs.admin()
    (tmp_path / "mine" / "admin.crt").write_bytes(foreign.certificate)
    (tmp_path / "mine" / "admin.key").write_bytes(foreign.key)
    assert mine.admin().certificate != foreign.certificate


def test_a_key_without_its_certificate_after_a_crash_is_made_again(tmp_path: Path) -> None:
    first = Pki(tmp_path, NOW).admin()
    (tmp_path / "admin.crt").unlink()
    second = Pki(tmp_path, NOW).admin()
    assert second.key != first.key
    (tmp_path / "admin.key").write_bytes(first.key)
    assert Pki(tmp_path, NOW).admin().key not in (first.key, second.key)


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "apiserver.crt", "admin.key", "sa.key"])
def test_a_corrupt_file_is_named_and_kept(tmp_path: Path, name: str) -> None:
    everything(tmp_path)
    (tmp_path / name).write_bytes(b"-----BEGIN nonsense")
    before = contents(tmp_path)
    with pytest.raises(ConfigError) as refused:
        everything(tmp_path)
    assert str(refused.value).startswith(f"{tmp_path / name} is not a PEM ")
    assert contents(tmp_path) == before


def test_an_authority_without_its_key_is_refused(tmp_path: Path) -> None:
    everything(tmp_path)
    (tmp_path / "ca.key").unlink()
    with pytest.raises(ConfigError, match=rf"is there but {tmp_path / 'ca.key'} is not"):
        Pki(tmp_path, NOW)


def test_an_authority_without_its_certificate_signs_one_that_vouches_for_what_is_there(
    tmp_path: Path,
) -> None:
    everything(tmp_path)
    before = contents(tmp_path)
    (tmp_path / "ca.crt").unlink()
    everything(tmp_path)
    assert {name: data for name, data in contents(tmp_path).items() if before[name] != data}.keys() == {
        "ca.crt"
    }


def test_an_authority_whose_parts_do_not_belong_together_is_refused(tmp_path: Path) -> None:
    Pki(tmp_path / "a", NOW)
    Pki(tmp_path / "b", NOW)
    (tmp_path / "a" / "ca.key").write_bytes((tmp_path / "b" / "ca.key").read_bytes())
    with pytest.raises(ConfigError, match="do not belong together"):
        Pki(tmp_path / "a", NOW)


def test_a_directory_that_cannot_be_made_or_read_is_the_worlds_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(WorldError, match="cannot make the certificate directory"):
        Pki(tmp_path / "file" / "pki", NOW)
    (tmp_path / "pki" / "ca.crt").mkdir(parents=True)
    with pytest.raises(WorldError, match="cannot read"):
        Pki(tmp_path / "pki", NOW)


def test_client_certificates_on_demand_are_kept_only_under_a_name(tmp_path: Path) -> None:
    pki = Pki(tmp_path, NOW)
    kept = pki.client("scheduler", "system:kube-scheduler")
    assert pki.client("scheduler", "system:kube-scheduler") == kept
    before = contents(tmp_path)
    loose = pki.client_certificate("system:node:n1", ["system:nodes"])
    assert contents(tmp_path) == before
    assert parsed(loose).subject.rfc4514_string() == "CN=system:node:n1,O=system:nodes"
    usage = parsed(loose).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH]


def test_the_service_account_key_signs_and_is_never_replaced(tmp_path: Path) -> None:
    pem = Pki(tmp_path, NOW).service_account_key()
    assert Pki(tmp_path, NOW + 3000 * DAY).service_account_key() == pem
    assert load_key(pem).algorithm == "ES256"


def test_a_kubeconfig_holds_everything_a_client_needs(tmp_path: Path) -> None:
    pki = Pki(tmp_path, NOW)
    admin = pki.admin()
    text = kubeconfig("https://127.0.0.1:6443", pki.authority_certificate, admin, namespace="ns")
    document = yaml.safe_load(text)
    assert (document["apiVersion"], document["kind"]) == ("v1", "Config")
    assert document["current-context"] == "kubernetes-admin@nodeward"
    (context,) = document["contexts"]
    assert context["context"] == {"cluster": "nodeward", "user": "kubernetes-admin", "namespace": "ns"}
    (cluster,) = document["clusters"]
    assert cluster["cluster"]["server"] == "https://127.0.0.1:6443"
    assert base64.b64decode(cluster["cluster"]["certificate-authority-data"]) == pki.authority_certificate
    (user,) = document["users"]
    assert base64.b64decode(user["user"]["client-certificate-data"]) == admin.certificate
    assert base64.b64decode(user["user"]["client-key-data"]) == admin.key


class Handshake:
    """A client and a server that shake hands in memory."""

    def __init__(self, server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> None:
        up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = client.wrap_bio(down, up, server_hostname=name)
        self.server = server.wrap_bio(up, down, server_side=True)
        for _ in range(4):
            for side in (self.client, self.server):
                try:
                    side.do_handshake()
                except ssl.SSLWantReadError:
                    continue


def trusting(pki: Pki, pair: KeyPair | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=pki.authority_certificate.decode())
    context.set_alpn_protocols(["h2", "http/1.1"])
    if pair is not None:
        assert pair.certificate_path is not None
        context.load_cert_chain(pair.certificate_path, pair.key_path)
    return context


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "kubernetes.default.svc", "host-1"])
def test_clients_with_and_without_a_certificate_reach_the_server(tmp_path: Path, name: str) -> None:
    pki = Pki(tmp_path, RealClock().now_ns())
    server = server_context(pki.serving("host-1"), pki.authority_path)
    hands = Handshake(server, trusting(pki, pki.admin()), name)
    assert hands.server.selected_alpn_protocol() == "http/1.1"
    assert hands.server.version() == "TLSv1.3"
    certificate = hands.server.getpeercert()
    assert certificate is not None
    user = certificate_user(certificate, hands.server.getpeercert(True))
    assert user is not None
    assert (user.name, user.groups) == ("kubernetes-admin", ("system:masters", "system:authenticated"))
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")
    assert not Handshake(server, trusting(pki), name).server.getpeercert()


def test_a_foreign_or_misused_client_certificate_is_turned_away(tmp_path: Path) -> None:
    now = RealClock().now_ns()
    pki, stranger = Pki(tmp_path / "a", now), Pki(tmp_path / "b", now)
    serving = pki.serving("host-1")
    server = server_context(serving, pki.authority_path)
    for pair in (stranger.admin(), serving):
        with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
            Handshake(server, trusting(pki, pair), "localhost")


def test_old_tls_is_not_spoken(tmp_path: Path) -> None:
    pki = Pki(tmp_path, RealClock().now_ns())
    server = server_context(pki.serving("host-1"), pki.authority_path)
    assert server.minimum_version is ssl.TLSVersion.TLSv1_2
    with pytest.raises(ConfigError, match="must be in a file"):
        server_context(pki.client_certificate("x"), pki.authority_path)
    (tmp_path / "apiserver.crt").write_text("x")
    with pytest.raises(ConfigError, match="cannot serve with"):
        server_context(
            KeyPair(b"", b"", tmp_path / "apiserver.crt", tmp_path / "apiserver.key"), pki.authority_path
        )
