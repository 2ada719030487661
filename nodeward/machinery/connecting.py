"""From a configuration to a client: TLS, credentials and transport put together.

Called by benchmarks and the command line; calls `client`, `credentials`, `http_transport`, `kubeconfig` and
`transport`.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path

from nodeward.base.errors import ConfigError
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock
from nodeward.machinery.credentials import (
    ClientIdentity,
    Credentials,
    CredentialTransport,
    ExecCredentials,
    FixedCredentials,
    TokenFile,
    basic,
    bearer,
)
from nodeward.machinery.http_transport import MAX_CONNECTIONS, HttpTransport
from nodeward.machinery.kubeconfig import ConnectionConfig
from nodeward.machinery.transport import Transport


def connect(
    config: ConnectionConfig,
    *,
    clock: Clock,
    environment: Mapping[str, str],
    component: str = "nodeward",
    max_connections: int = MAX_CONNECTIONS,
    request_timeout: float | None = 60.0,
    credentials: Credentials | None = None,
) -> Client:
    """Return a client of the configured server. Nothing is sent yet; `environment` is for credential programs.

    `credentials` take the place of those the configuration names.
    """

    def open_transport(identity: ClientIdentity) -> Transport:
        return HttpTransport(
            config.server,
            clock=clock,
            ssl_context=tls_context(config, identity) if config.server.startswith("https:") else None,
            server_name=config.server_name,
            max_connections=max_connections,
            request_timeout=request_timeout,
            accept_gzip=config.accept_gzip,
        )

    shown = credentials or credentials_of(config, clock, environment)
    transport = CredentialTransport(shown, open_transport)
    return Client(transport, clock=clock, component=component, headers=_impersonation(config))


def credentials_of(config: ConnectionConfig, clock: Clock, environment: Mapping[str, str]) -> Credentials:
    """Return what the configuration says to show; a token goes before a name and password, both before a program."""
    if config.token_file is not None and not config.token:
        return TokenFile(config.token_file, clock)
    fixed = _fixed_headers(config)
    if config.exec is not None and "authorization" not in fixed and config.client_certificate is None:
        return ExecCredentials(config.exec, config, clock, environment)
    return FixedCredentials(fixed)


def _fixed_headers(config: ConnectionConfig) -> dict[str, str]:
    headers: dict[str, str] = {}
    if config.token:
        headers |= bearer(config.token)
    elif config.username:
        headers |= basic(config.username, config.password)
    return headers


def _impersonation(config: ConnectionConfig) -> dict[str, str]:
    headers = {
        "impersonate-user": config.impersonate_user,
        "impersonate-group": config.impersonate_group,
        "impersonate-uid": config.impersonate_uid,
    }
    return {name: value for name, value in headers.items() if value}


def tls_context(config: ConnectionConfig, identity: ClientIdentity) -> ssl.SSLContext:
    """Make the TLS context: whom to trust and which certificate to show."""
    if config.insecure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        try:
            context = ssl.create_default_context(cadata=config.ca.decode("ascii") if config.ca else None)
        except (ssl.SSLError, UnicodeDecodeError) as error:
            raise ConfigError(f"{config.origin}: certificate-authority is not PEM: {error}") from error
    certificate = identity.certificate or config.client_certificate
    key = identity.key or config.client_key
    if certificate is not None and key is not None:
        _load_certificate(context, certificate, key, config.origin)
    return context


def _load_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes, origin: str) -> None:
    # OpenSSL reads its own certificate only from files; these exist for a moment, for us alone.
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "identity.pem"
        file.touch(mode=0o600)
        file.write_bytes(certificate + b"\n" + key)
        try:
            # The empty password keeps OpenSSL from asking the terminal for one.
            context.load_cert_chain(file, password="")
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(
                f"{origin}: client-certificate and client-key are not a PEM pair: {error}"
            ) from error
