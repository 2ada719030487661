"""Creation and validation of X.509 certificates: ECDSA on P-256, signed by an authority, for a server or a client.

Called by `pki.py`, which keeps the files; here PEM and objects of `cryptography` go in and out, no files are touched
and the time is an argument. `cryptography` is imported on first use: a server with certificates of its own never needs
it here.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nodeward.base.errors import ConfigError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

AUTHORITY_LIFE: Final = timedelta(days=3650)
CERTIFICATE_LIFE: Final = timedelta(days=365)
#: A certificate is renewed when it has less than this left.
RENEW_BEFORE: Final = timedelta(days=30)
#: Certificates are valid from a little before now, for peers whose clocks are behind.
BACKDATE: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class CertificateSpec:
    """What a certificate shall contain. With host names it is for a server, otherwise for a client."""

    common_name: str
    organisations: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    is_authority: bool = False


def subject_of(wanted: CertificateSpec) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in wanted.organisations]
    return x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, wanted.common_name)])


def alternatives(names: Sequence[str]) -> list[x509.GeneralName]:
    from cryptography import x509

    found: list[x509.GeneralName] = []
    for name in names:
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            try:
                found.append(x509.DNSName(name))
            except ValueError as error:
                raise ConfigError(f"{name!r} cannot stand in a certificate: {error}") from error
    return found


def sign(
    wanted: CertificateSpec,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    now: datetime,
) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID

    subject = subject_of(wanted)
    ends = now + (AUTHORITY_LIFE if wanted.is_authority else CERTIFICATE_LIFE)
    if issuer is not None:
        ends = min(ends, issuer.not_valid_after_utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(ends)
        .add_extension(x509.BasicConstraints(ca=wanted.is_authority, path_length=None), critical=True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                key_cert_sign=wanted.is_authority,
                crl_sign=wanted.is_authority,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    if not wanted.is_authority:
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if wanted.names else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    if wanted.names:
        hosts = x509.SubjectAlternativeName(alternatives(wanted.names))
        builder = builder.add_extension(hosts, critical=False)
    return builder.sign(signer, hashes.SHA256())


def is_good(
    certificate: x509.Certificate, wanted: CertificateSpec, authority: x509.Certificate, now: datetime
) -> bool:
    """Tell whether `certificate` matches the spec, is signed by `authority` and does not expire soon."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    # A certificate cannot outlive its authority, so one that ends with it is not renewed.
    last = certificate.not_valid_after_utc
    if last < authority.not_valid_after_utc:
        last -= RENEW_BEFORE
    if not certificate.not_valid_before_utc <= now <= last or certificate.subject != subject_of(wanted):
        return False
    try:
        certificate.verify_directly_issued_by(authority)
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, InvalidSignature):
        return False
    except x509.ExtensionNotFound:
        return not wanted.names
    return sorted(map(repr, found)) == sorted(repr(name) for name in alternatives(wanted.names))


def new_key() -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def certificate_pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return certificate.public_bytes(serialization.Encoding.PEM)


def load_certificate(pem: bytes, path: Path) -> x509.Certificate:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise _unreadable(path, "a PEM certificate") from error


def load_key(pem: bytes, path: Path) -> ec.EllipticCurvePrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        key = serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _unreadable(path, "a PEM private key") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigError(f"{path} must be an EC private key: move it away and a new one is made")
    return key


def _unreadable(path: Path, what: str) -> ConfigError:
    return ConfigError(
        f"{path} is not {what}: the file was left as it is; restore it, or move it away and a new one is made"
    )
