"""Connecting with what a configuration says: TLS, tokens, certificates, credential programs."""

from __future__ import annotations

import asyncio
import ssl
import stat
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from nodeward.api.errors import ApiError
from nodeward.base.errors import ConfigError
from nodeward.machinery.client import Client
from nodeward.machinery.clock import RealClock, VirtualClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.credentials import CredentialsUnavailable, TokenFile
from nodeward.machinery.kubeconfig import ConnectionConfig, ExecConfig
from nodeward.machinery.transport import ConnectionFailed
from nodeward.machinery.virtual_loop import run_virtual
from tests.machinery.certificates import self_signed, server_certificate
from tests.machinery.scripted_server import Connection, Script, plain_answer, scripted_server
from tests.patience import PATIENCE_SECONDS

V1 = "client.authentication.k8s.io/v1"


def authorization(request: bytes) -> str:
    for line in request.decode().split("\r\n"):
        if line.startswith("authorization: "):
            return line.removeprefix("authorization: ")
    return ""


class Door:
    """A server that lets in whoever shows an accepted authorization."""

    def __init__(self, *accepted: str) -> None:
        self.accepted = list(accepted)
        self.seen: list[str] = []
        self.requests: list[bytes] = []

    async def script(self, connection: Connection) -> None:
        while True:
            request = await connection.request()
            self.requests.append(request)
            shown = authorization(request)
            self.seen.append(shown)
            if shown in self.accepted:
                await connection.answer(plain_answer(b"{}"))
            else:
                await connection.answer(plain_answer(b"", "401 Unauthorized"))


def run(program: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def guarded() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await program()

    asyncio.run(guarded())


async def visit(client: Client, times: int = 1) -> None:
    try:
        for _ in range(times):
            await client.raw("GET", "/version")
    finally:
        await client.aclose()


def client_for(config: ConnectionConfig, **environment: str) -> Client:
    return connect(config, clock=RealClock(), environment=environment)


def test_a_token_or_a_password_is_shown() -> None:
    async def program() -> None:
        door = Door("Bearer t", "Basic bWU6cGFzcw==")
        async with scripted_server(door.script) as server:
            await visit(client_for(ConnectionConfig(server.url, token="t", username="me", password="pass")))
            await visit(client_for(ConnectionConfig(server.url, username="me", password="pass")))
        assert door.seen == ["Bearer t", "Basic bWU6cGFzcw=="]

    run(program)


def test_wrong_credentials_are_the_callers_error() -> None:
    async def program() -> None:
        door = Door()
        async with scripted_server(door.script) as server:
            with pytest.raises(ApiError) as caught:
                await visit(client_for(ConnectionConfig(server.url, token="t")))
        assert caught.value.code == 401
        assert len(door.seen) == 1

    run(program)


def test_impersonation_goes_with_every_request() -> None:
    async def program() -> None:
        door = Door("Bearer t")
        async with scripted_server(door.script) as server:
            config = ConnectionConfig(
                server.url, token="t", impersonate_user="jane", impersonate_group="devs", impersonate_uid="7"
            )
            await visit(client_for(config).as_component("other"))
        for header in (b"impersonate-user: jane", b"impersonate-group: devs", b"impersonate-uid: 7"):
            assert header in door.requests[0]

    run(program)


def test_a_token_file_is_read_again_when_its_token_is_refused(tmp_path: Path) -> None:
    async def program() -> None:
        door = Door("Bearer old")
        token = tmp_path / "token"
        token.write_text("old\n")
        async with scripted_server(door.script) as server:
            client = client_for(ConnectionConfig(server.url, token_file=token))
            await client.raw("GET", "/version")
            door.accepted = ["Bearer new"]
            token.write_text("new\n")
            await client.raw("GET", "/version")
            door.accepted = []
            with pytest.raises(ApiError):
                await client.raw("GET", "/version")
            await client.aclose()
        assert door.seen == ["Bearer old", "Bearer old", "Bearer new", "Bearer new"]

    run(program)


def test_a_token_file_is_read_again_every_minute(tmp_path: Path) -> None:
    token = tmp_path / "token"

    async def program(clock: VirtualClock) -> None:
        token.write_text("one")
        credentials = TokenFile(token, clock)
        first = await credentials.identity()
        token.write_text("two")
        await clock.sleep(59)
        assert await credentials.identity() is first
        await clock.sleep(2)
        assert (await credentials.identity()).headers == {"authorization": "Bearer two"}
        token.write_text("")
        await clock.sleep(61)
        with pytest.raises(CredentialsUnavailable, match="the token is empty"):
            await credentials.identity()
        token.unlink()
        with pytest.raises(CredentialsUnavailable, match="cannot be read"):
            await TokenFile(token, clock).identity()

    run_virtual(program)


# -- credential programs ----------------------------------------------------------------------------------------------


def program_file(directory: Path, body: str) -> ExecConfig:
    """A credential program; `runs` counts how often it ran."""
    script = directory / "login"
    script.write_text(
        f"#!{sys.executable}\n"
        "import json, os, pathlib, sys\n"
        "here = pathlib.Path(__file__).parent\n"
        "runs = here / 'runs'\n"
        "number = int(runs.read_text()) + 1 if runs.exists() else 1\n"
        "runs.write_text(str(number))\n"
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        f"{body}\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return ExecConfig(command=str(script), args=("arg",), env=(("EXTRA", "yes"),), api_version=V1)


def prints(status: str, version: str = V1) -> str:
    return f"print(json.dumps({{'apiVersion': '{version}', 'kind': 'ExecCredential', 'status': {status}}}))"


def runs_of(directory: Path) -> int:
    return int((directory / "runs").read_text())


def test_a_program_runs_once_for_everybody_with_what_it_was_promised(tmp_path: Path) -> None:
    async def program() -> None:
        plugin = program_file(
            tmp_path,
            "(here / 'seen').write_text(json.dumps([sys.argv[1:], os.environ['EXTRA'], os.environ['OUTER'], info]))\n"
            + prints("{'token': 'made'}"),
        )
        door = Door("Bearer made")
        async with scripted_server(door.script) as server:
            client = client_for(ConnectionConfig(server.url, exec=plugin), OUTER="too")
            await asyncio.gather(*(client.raw("GET", "/version") for _ in range(5)))
            await client.aclose()
        assert runs_of(tmp_path) == 1
        assert (tmp_path / "seen").read_text() == (
            '[["arg"], "yes", "too", {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", '
            '"spec": {"interactive": false}}]'
        )

    run(program)


def test_a_refused_or_expired_credential_is_made_anew(tmp_path: Path) -> None:
    async def program() -> None:
        plugin = program_file(tmp_path, prints("{'token': f'made-{number}'}"))
        door = Door("Bearer made-1")
        async with scripted_server(door.script) as server:
            client = client_for(ConnectionConfig(server.url, exec=plugin))
            await client.raw("GET", "/version")
            door.accepted = ["Bearer made-2"]
            await client.raw("GET", "/version")
            await client.aclose()
        assert door.seen == ["Bearer made-1", "Bearer made-1", "Bearer made-2"]

    run(program)


def test_an_expired_credential_is_not_shown(tmp_path: Path) -> None:
    plugin = program_file(
        tmp_path,
        "at = {1: '2026-01-01T01:00:00Z', 2: '2026-01-01T09:00:00Z'}[number]\n"
        + prints("{'token': f'made-{number}', 'expirationTimestamp': at}"),
    )

    async def program(clock: VirtualClock) -> None:
        door = Door("Bearer made-1", "Bearer made-2")
        async with scripted_server(door.script) as server:
            client = connect(ConnectionConfig(server.url, exec=plugin), clock=clock, environment={})
            await client.raw("GET", "/version")
            await clock.sleep(3590)
            await client.raw("GET", "/version")
            await clock.sleep(20)
            await client.raw("GET", "/version")
            await client.aclose()
        assert door.seen == ["Bearer made-1", "Bearer made-1", "Bearer made-2"]

    run_virtual(program)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.exit('no login for you')", "failed with exit code 1: no login for you"),
        ("print('hello')", "did not print an ExecCredential"),
        (prints("None"), "printed no token and no certificate"),
        (prints("{'clientKeyData': 'x'}"), "printed a certificate or a key, but not both"),
        (
            prints("{'token': 'x'}", "client.authentication.k8s.io/v1beta1"),
            "printed version 'client.authentication.k8s.io/v1beta1', the kubeconfig says '"
            "client.authentication.k8s.io/v1'",
        ),
        (prints("{'token': 'x', 'expirationTimestamp': 'soon'}"), "an expirationTimestamp that is none"),
    ],
)
def test_a_program_that_does_not_deliver_is_named_with_what_it_did(
    tmp_path: Path, body: str, message: str
) -> None:
    async def program() -> None:
        config = ConnectionConfig(
            "http://127.0.0.1:1", origin="the-config", exec=program_file(tmp_path, body)
        )
        with pytest.raises(CredentialsUnavailable) as caught:
            await visit(client_for(config))
        assert message in str(caught.value)
        assert str(caught.value).startswith("the-config: credential program ")

    run(program)


def test_a_missing_program_comes_with_its_install_hint() -> None:
    async def program() -> None:
        plugin = ExecConfig("no-such-login", install_hint="Install it from example.com.")
        with pytest.raises(CredentialsUnavailable, match=r"no such program\. Install it from example\.com"):
            await visit(client_for(ConnectionConfig("http://127.0.0.1:1", exec=plugin), PATH="/nowhere"))

    run(program)


# -- TLS --------------------------------------------------------------------------------------------------------------


async def says_who(connection: Connection) -> None:
    """Answers with the certificate's common name."""
    await connection.request()
    peer = connection.writer.get_extra_info("peercert") or {}
    names = [value for part in peer.get("subject", ()) for key, value in part if key == "commonName"]
    await connection.answer(plain_answer(b"{}", headers=f"x-name: {','.join(names)}\r\n"))
    await connection.until_closed()


def tls_server_that_knows(directory: Path, *names: str) -> tuple[Path, ssl.SSLContext]:
    authority, context = server_certificate(directory)
    context.verify_mode = ssl.CERT_OPTIONAL
    for name in names:
        context.load_verify_locations(directory / f"{name}.crt")
    return authority, context


def test_a_client_certificate_is_shown_and_the_server_verified(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path, "alice")
    authority, context = tls_server_that_knows(tmp_path, "alice")
    script: Script = says_who

    async def program() -> None:
        async with scripted_server(script, context) as server:
            config = ConnectionConfig(
                server.url,
                ca=authority.read_bytes(),
                client_certificate=certificate.read_bytes(),
                client_key=key.read_bytes(),
            )
            client = client_for(config)
            assert (await client.raw("GET", "/version")).headers["x-name"] == "alice"
            await client.aclose()

            for trusting in (
                ConnectionConfig(server.url, insecure=True),
                ConnectionConfig(server.url, ca=authority.read_bytes(), server_name="kubernetes.test"),
            ):
                client = client_for(trusting)
                assert (await client.raw("GET", "/version")).headers["x-name"] == ""
                await client.aclose()

            with pytest.raises(ConnectionFailed, match="cannot be verified"):
                await visit(client_for(ConnectionConfig(server.url, ca=certificate.read_bytes())))

    run(program)


def test_a_certificate_from_a_program_replaces_the_connection(tmp_path: Path) -> None:
    self_signed(tmp_path, "first")
    self_signed(tmp_path, "second")
    authority, context = tls_server_that_knows(tmp_path, "first", "second")
    plugin = program_file(
        tmp_path,
        "who = 'first' if number == 1 else 'second'\n"
        + prints(
            "{'clientCertificateData': (here / f'{who}.crt').read_text(), "
            "'clientKeyData': (here / f'{who}.key').read_text(), "
            "'expirationTimestamp': '2000-01-01T00:00:00Z' if number == 1 else '2100-01-01T00:00:00Z'}"
        ),
    )

    async def program() -> None:
        async with scripted_server(says_who, context) as server:
            client = client_for(ConnectionConfig(server.url, ca=authority.read_bytes(), exec=plugin))
            assert (await client.raw("GET", "/version")).headers["x-name"] == "first"
            assert (await client.raw("GET", "/version")).headers["x-name"] == "second"
            await client.aclose()
        assert runs_of(tmp_path) == 2

    run(program)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"ca": b"not pem"}, "certificate-authority is not PEM"),
        (
            {"client_certificate": b"not pem", "client_key": b"nor this"},
            "client-certificate and client-key are not a PEM pair",
        ),
    ],
)
def test_pem_that_is_none_is_said_before_anything_is_sent(facts: dict[str, Any], message: str) -> None:
    async def program() -> None:
        with pytest.raises(ConfigError, match=message):
            await visit(client_for(ConnectionConfig("https://127.0.0.1:1", origin="f", **facts)))

    run(program)
