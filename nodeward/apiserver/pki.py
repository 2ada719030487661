"""The certificates of a cluster: created on the first start, kept in one directory, renewed before they expire.

Called by the command line; creates them with `certificates.py`. The directory holds the cluster's certificate
authority, the server's certificate, the administrator's client certificate and the key that signs service-account
tokens. Keys are ECDSA on P-256.

What must stay true: files are 0600 and appear whole or not at all; whenever a start is killed, the next one succeeds.
Valid certificates are used as they are; one that expires soon, has the wrong host names or was signed by another
authority is created again with the same authority. A file that cannot be read is an error that names it and is never
overwritten: it may be the only copy. `cryptography` is imported on first use; the time is an argument.
"""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nodeward.apiserver.certificates import (
    CertificateSpec,
    certificate_pem,
    is_good,
    key_pem,
    load_certificate,
    load_key,
    new_key,
    sign,
)
from nodeward.apiserver.kubelet_access import KUBELET_CLIENT
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import ConfigError, WorldError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

SERVICE_ADDRESS: Final = "10.96.0.1"
SERVER_NAMES: Final = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "127.0.0.1",
    "::1",
)
#: what a kubeconfig calls the cluster
CLUSTER: Final = "nodeward"
ADMIN: Final = ("kubernetes-admin", ("system:masters",))


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key, as PEM, and their files (None if they are not kept)."""

    certificate: bytes
    key: bytes
    certificate_path: Path | None = None
    key_path: Path | None = None


class Pki:
    """The certificates in one directory. Reads and writes files when called, never in the background."""

    __slots__ = ("_authority", "_directory", "_now")

    def __init__(self, directory: Path, now_ns: int) -> None:
        """Open the directory; create it and its certificate authority if they do not exist."""
        self._directory = directory
        self._now = datetime.fromtimestamp(now_ns // SECOND_NS, UTC)
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise WorldError(
                f"cannot make the certificate directory {directory}: {error.strerror}"
            ) from error
        self._authority = self._open_authority()

    @property
    def authority_certificate(self) -> bytes:
        """The certificate of the authority, PEM, which clients and the server trust."""
        return self._authority.pair.certificate

    @property
    def authority_path(self) -> Path:
        return self._directory / "ca.crt"

    def serving(self, hostname: str, extra_names: Sequence[str] = ()) -> KeyPair:
        """Return the server's certificate for `hostname`, `extra_names` and the names every cluster has."""
        names = dict.fromkeys((*SERVER_NAMES, hostname, SERVICE_ADDRESS, *extra_names))
        return self._kept(
            "apiserver", CertificateSpec("kube-apiserver", (), tuple(name for name in names if name))
        )

    def admin(self) -> KeyPair:
        """Return the administrator's client certificate."""
        return self._kept("admin", CertificateSpec(*ADMIN))

    def kubelet_serving(self, names: Sequence[str]) -> KeyPair:
        """Return the serving certificate of kubelets that listen under these names."""
        return self._kept(
            "kubelet", CertificateSpec("system:nodes", ("system:nodes",), tuple(dict.fromkeys(names)))
        )

    def kubelet_client(self) -> KeyPair:
        """Return the client certificate the API server shows to kubelets."""
        return self._kept("apiserver-kubelet-client", CertificateSpec(KUBELET_CLIENT))

    def client(self, file_name: str, common_name: str, organisations: Sequence[str] = ()) -> KeyPair:
        """Return a client certificate that is kept as `<file_name>.crt` and `.key`: for a scheduler, a node, ..."""
        return self._kept(file_name, CertificateSpec(common_name, tuple(organisations)))

    def client_certificate(self, common_name: str, organisations: Sequence[str] = ()) -> KeyPair:
        """Create a client certificate that is not kept here."""
        return self._made(CertificateSpec(common_name, tuple(organisations)))

    def service_account_key(self) -> bytes:
        """Return the private key, PEM, that signs service-account tokens. Never replaced: old tokens need it."""
        path = self._directory / "sa.key"
        pem = _read(path)
        if pem is None:
            pem = key_pem(new_key())
            write_private(path, pem)
        load_key(pem, path)
        return pem

    def _open_authority(self) -> _Authority:
        certificate_path, key_path = self.authority_path, self._directory / "ca.key"
        certificate, key = _read(certificate_path), _read(key_path)
        if certificate is not None and key is None:
            raise ConfigError(
                f"{certificate_path} is there but {key_path} is not: put it back, or remove both to start anew"
            )
        if key is None:
            key = key_pem(new_key())
            write_private(key_path, key)
        if certificate is None:
            # A start was killed between the two, or the certificate was lost: what the key has signed stays good.
            made = load_key(key, key_path)
            signed = sign(CertificateSpec("kubernetes", is_authority=True), made, made, None, self._now)
            certificate = certificate_pem(signed)
            write_private(certificate_path, certificate)
        authority = _Authority(
            KeyPair(certificate, key, certificate_path, key_path),
            load_certificate(certificate, certificate_path),
            load_key(key, key_path),
        )
        if authority.certificate.public_key() != authority.key.public_key():
            raise ConfigError(f"{certificate_path} and {key_path} do not belong together")
        if authority.certificate.not_valid_after_utc <= self._now:
            # All trust depends on the authority, so replacing it is the administrator's decision.
            when = authority.certificate.not_valid_after_utc.isoformat()
            raise ConfigError(f"{certificate_path} expired on {when}: remove {self._directory} to start anew")
        return authority

    def _kept(self, name: str, wanted: CertificateSpec) -> KeyPair:
        certificate_path, key_path = self._directory / f"{name}.crt", self._directory / f"{name}.key"
        certificate, key = _read(certificate_path), _read(key_path)
        if certificate is not None and key is not None:
            loaded, private = load_certificate(certificate, certificate_path), load_key(key, key_path)
            if loaded.public_key() == private.public_key() and is_good(
                loaded, wanted, self._authority.certificate, self._now
            ):
                return KeyPair(certificate, key, certificate_path, key_path)
        made = self._made(wanted)
        # The key first: if we stop between the two, they do not match and are made again.
        write_private(key_path, made.key)
        write_private(certificate_path, made.certificate)
        return KeyPair(made.certificate, made.key, certificate_path, key_path)

    def _made(self, wanted: CertificateSpec) -> KeyPair:
        key = new_key()
        signed = sign(wanted, key, self._authority.key, self._authority.certificate, self._now)
        return KeyPair(certificate_pem(signed), key_pem(key))


@dataclass(frozen=True, slots=True)
class _Authority:
    pair: KeyPair
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WorldError(f"cannot read {path}: {error.strerror}") from error


def write_private(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, readable by the owner only, and synced to disk."""
    part = ""
    try:
        handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        if part:
            Path(part).unlink(missing_ok=True)
        raise WorldError(f"cannot write {path}: {error.strerror}") from error


def kubeconfig(
    server: str,
    authority: bytes,
    pair: KeyPair,
    *,
    cluster: str = CLUSTER,
    user: str = "",
    namespace: str = "",
) -> str:
    """Return a kubeconfig, YAML, that needs no other file."""
    import yaml

    def encoded(data: bytes) -> str:
        return base64.b64encode(data).decode("ascii")

    user = user or ADMIN[0]
    context = f"{user}@{cluster}"
    where = {"cluster": cluster, "user": user}
    if namespace:
        where["namespace"] = namespace
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": cluster, "cluster": {"certificate-authority-data": encoded(authority), "server": server}}
        ],
        "contexts": [{"name": context, "context": where}],
        "current-context": context,
        "preferences": {},
        "users": [
            {
                "name": user,
                "user": {
                    "client-certificate-data": encoded(pair.certificate),
                    "client-key-data": encoded(pair.key),
                },
            }
        ],
    }
    return yaml.safe_dump(document, sort_keys=False, width=2**20)


def server_context(serving: KeyPair, authority_path: Path) -> ssl.SSLContext:
    """Make the server's TLS context: TLS 1.2 and up, HTTP/1.1, client certificates optional but of the authority."""
    if serving.certificate_path is None or serving.key_path is None:
        raise ConfigError("the serving certificate must be in a file")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.verify_mode = ssl.CERT_OPTIONAL
    try:
        context.load_cert_chain(serving.certificate_path, serving.key_path)
        context.load_verify_locations(authority_path)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"cannot serve with {serving.certificate_path}: {error}") from error
    return context
