"""Saying who we are: tokens that change while we run, and programs that print credentials.

A `Credentials` gives the headers for the next request; `CredentialTransport` puts them on. When the server says that
it does not know us (401), credentials that can be renewed are renewed and the request is sent once more.

What must stay true: a credential program runs once for all who wait for it, and not again before what it printed
has expired; secrets appear in no message.

Called by `cli.account_tokens` and `connecting`; calls `kubeconfig` and `transport`.
"""

from __future__ import annotations

import asyncio
import base64
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

import msgspec

from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.base.timestamp import TimestampError, parse_rfc3339
from nodeward.machinery.clock import Clock
from nodeward.machinery.kubeconfig import ConnectionConfig, ExecConfig
from nodeward.machinery.transport import Request, Response, Transport

#: Tokens in files are replaced now and then (a pod's every hour or so); they are read again this often.
_TOKEN_FILE_SECONDS: Final = 60.0
#: Of what a failing program says, this much is repeated.
_MAX_TEXT: Final = 1000


class CredentialsUnavailable(WorldError):
    """There is nothing to show the server now: a token file is gone, a credential program failed."""


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """What to show the server: headers, and perhaps a certificate (PEM)."""

    headers: Mapping[str, str] = field(repr=False)
    certificate: bytes | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)


class Credentials(Protocol):
    """Where identities come from."""

    async def identity(self) -> ClientIdentity:
        """Return the identity that is valid now; the same object until something changes."""
        ...

    def reject(self, identity: ClientIdentity) -> bool:
        """Return the server did not accept it. Returns whether asking again may give another one."""
        ...


class FixedCredentials:
    """The same headers for ever."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._identity = ClientIdentity(headers)

    async def identity(self) -> ClientIdentity:
        return self._identity

    def reject(self, identity: ClientIdentity) -> bool:
        return False


class TokenFile:
    """A token in a file that somebody else keeps fresh."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._identity: ClientIdentity | None = None
        self._read_at_ns = 0

    async def identity(self) -> ClientIdentity:
        now_ns = self._clock.monotonic_ns()
        if self._identity is None or now_ns - self._read_at_ns > _TOKEN_FILE_SECONDS * SECOND_NS:
            self._read_at_ns = now_ns
            headers = bearer(self._read())
            if self._identity is None or headers != self._identity.headers:
                self._identity = ClientIdentity(headers)
        return self._identity

    def reject(self, identity: ClientIdentity) -> bool:
        if identity is not self._identity:
            return True
        if bearer(self._read()) == identity.headers:
            return False
        self._identity = None
        return True

    def _read(self) -> str:
        try:
            token = self._path.read_text().strip()
        except OSError as error:
            raise CredentialsUnavailable(
                f"{self._path}: the token cannot be read: {error.strerror}"
            ) from error
        if not token:
            raise CredentialsUnavailable(f"{self._path}: the token is empty")
        return token


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def basic(username: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()}


class _ExecStatus(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _ExecStatus | None = None


class ExecCredentials:
    """Credentials from a program, run with exactly the given environment."""

    def __init__(
        self, plugin: ExecConfig, config: ConnectionConfig, clock: Clock, environment: Mapping[str, str]
    ) -> None:
        self._plugin = plugin
        self._config = config
        self._clock = clock
        self._environment = environment
        self._identity: ClientIdentity | None = None
        self._expires_ns: int | None = None
        self._lock = asyncio.Lock()

    async def identity(self) -> ClientIdentity:
        async with self._lock:
            expired = self._expires_ns is not None and self._clock.now_ns() > self._expires_ns
            if self._identity is None or expired:
                status = self._check(await self._run())
                self._identity = ClientIdentity(
                    bearer(status.token) if status.token else {},
                    status.client_certificate_data.encode() or None,
                    status.client_key_data.encode() or None,
                )
            return self._identity

    def reject(self, identity: ClientIdentity) -> bool:
        if identity is self._identity:
            self._identity = None
        return True

    async def _run(self) -> bytes:
        plugin = self._plugin
        environment = {**self._environment, **dict(plugin.env), "KUBERNETES_EXEC_INFO": self._request()}
        program = shutil.which(plugin.command, path=environment.get("PATH"))
        if program is None:
            raise self._error(f"there is no such program. {plugin.install_hint}".rstrip(". "))
        try:
            # Another process is at work: virtual time must not run away meanwhile.
            with self._clock.hold(f"credential program {plugin.command}"):
                process = await asyncio.create_subprocess_exec(
                    program,
                    *plugin.args,
                    env=environment,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                )
                try:
                    out, err = await process.communicate()
                except asyncio.CancelledError:
                    process.kill()
                    await process.wait()
                    raise
        except OSError as error:
            raise self._error(f"cannot be run: {error.strerror}") from error
        if process.returncode:
            said = err.decode("utf-8", "replace").strip()[-_MAX_TEXT:]
            raise self._error(f"failed with exit code {process.returncode}: {said}")
        return out

    def _request(self) -> str:
        """Return what the program is told about what is wanted."""
        spec: dict[str, object] = {"interactive": False}
        if self._plugin.provide_cluster_info:
            cluster: dict[str, object] = {"server": self._config.server}
            if self._config.server_name:
                cluster["tls-server-name"] = self._config.server_name
            if self._config.insecure:
                cluster["insecure-skip-tls-verify"] = True
            if self._config.ca:
                cluster["certificate-authority-data"] = base64.b64encode(self._config.ca).decode()
            spec["cluster"] = cluster
        request = {"kind": "ExecCredential", "apiVersion": self._plugin.api_version, "spec": spec}
        return msgspec.json.encode(request).decode()

    def _check(self, out: bytes) -> _ExecStatus:
        try:
            answer = msgspec.json.decode(out, type=_ExecCredential)
        except msgspec.DecodeError as error:
            raise self._error(f"did not print an ExecCredential: {error}") from error
        if answer.api_version != self._plugin.api_version:
            raise self._error(
                f"printed version {answer.api_version!r}, the kubeconfig says {self._plugin.api_version!r}"
            )
        status = answer.status
        if status is None or not (status.token or status.client_certificate_data or status.client_key_data):
            raise self._error("printed no token and no certificate")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._error("printed a certificate or a key, but not both")
        try:
            self._expires_ns = (
                parse_rfc3339(status.expiration_timestamp) if status.expiration_timestamp else None
            )
        except TimestampError as error:
            raise self._error(f"printed an expirationTimestamp that is none: {error}") from error
        return status

    def _error(self, what: str) -> CredentialsUnavailable:
        return CredentialsUnavailable(
            f"{self._config.origin}: credential program {self._plugin.command}: {what}"
        )


class CredentialTransport:
    """A transport that says who we are. `open_` makes the transport for a certificate (PEM, or None)."""

    def __init__(self, credentials: Credentials, open_: Callable[[ClientIdentity], Transport]) -> None:
        self._credentials = credentials
        self._open = open_
        self._inner: Transport | None = None
        self._certificate: tuple[bytes | None, bytes | None] = (None, None)

    async def send(self, request: Request, *, stream: bool = False) -> Response:
        identity = await self._credentials.identity()
        response = await self._send_as(identity, request, stream)
        if response.status == 401 and self._credentials.reject(identity):
            renewed = await self._credentials.identity()
            if renewed != identity:
                response = await self._send_as(renewed, request, stream)
        return response

    async def _send_as(self, identity: ClientIdentity, request: Request, stream: bool) -> Response:
        inner = await self._transport_for(identity)
        if "authorization" not in request.headers:
            request = replace(request, headers={**request.headers, **identity.headers})
        return await inner.send(request, stream=stream)

    async def _transport_for(self, identity: ClientIdentity) -> Transport:
        certificate = (identity.certificate, identity.key)
        if self._inner is not None and certificate == self._certificate:
            return self._inner
        # Connections made with the old certificate would go on as whoever we were.
        old, self._inner = self._inner, self._open(identity)
        self._certificate = certificate
        inner = self._inner
        if old is not None:
            await old.aclose()
        return inner

    async def aclose(self) -> None:
        inner, self._inner = self._inner, None
        if inner is not None:
            await inner.aclose()
