"""Where the API server is and who we are there: kubeconfig files, or what a pod finds in its file system.

In go an environment and, if given, a file and a context; out comes a `ConnectionConfig` with everything `connect`
needs. Nothing is read behind the caller's back: the environment is an argument.

What must stay true: files named in a kubeconfig are relative to that kubeconfig; of several files the first that
says something wins; an error names the file, the entry, what is wrong and what would be right.

Called by the command line and `connecting`.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from nodeward.base.errors import ConfigError

N = TypeVar("N", bound="_Named")

_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_EXEC_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


@dataclass(frozen=True, slots=True)
class ExecConfig:
    """A program that prints credentials."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    api_version: str = _EXEC_VERSIONS[0]
    install_hint: str = ""
    provide_cluster_info: bool = False


@dataclass(frozen=True, slots=True)
class ConnectionConfig:
    """How to reach a server and how to say who we are. Certificates and keys are PEM."""

    server: str
    #: where this was read, for messages
    origin: str = ""
    ca: bytes | None = None
    insecure: bool = False
    server_name: str = ""
    client_certificate: bytes | None = field(default=None, repr=False)
    client_key: bytes | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    exec: ExecConfig | None = None
    impersonate_user: str = ""
    impersonate_group: str = ""
    impersonate_uid: str = ""
    #: the namespace meant when none is said
    namespace: str = "default"
    accept_gzip: bool = True


def load_config(environment: Mapping[str, str], *, path: str = "", context: str = "") -> ConnectionConfig:
    """Load as kubectl does: the given file, $KUBECONFIG, ~/.kube/config, or, in a pod, its service account."""
    if path:
        return load_kubeconfig([Path(path)], context=context, must_exist=True)
    if listed := environment.get("KUBECONFIG"):
        files = [Path(part) for part in listed.split(os.pathsep) if part]
        return load_kubeconfig(files, context=context)
    home = Path(environment.get("HOME", "/")) / ".kube" / "config"
    if home.exists():
        return load_kubeconfig([home], context=context)
    if "KUBERNETES_SERVICE_HOST" in environment:
        return in_cluster_config(environment)
    raise ConfigError(
        f"no cluster to connect to: $KUBECONFIG is not set, {home} does not exist, and this is not a pod "
        "($KUBERNETES_SERVICE_HOST is not set); give a kubeconfig file"
    )


def in_cluster_config(environment: Mapping[str, str], directory: Path = _SERVICE_ACCOUNT) -> ConnectionConfig:
    """Return what Kubernetes puts into every pod."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ConfigError("not in a pod: $KUBERNETES_SERVICE_HOST and $KUBERNETES_SERVICE_PORT must be set")
    token_file = directory / "token"
    _read(token_file, "in-cluster configuration")
    namespace = directory / "namespace"
    return ConnectionConfig(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        origin=str(directory),
        ca=_read(directory / "ca.crt", "in-cluster configuration"),
        token_file=token_file,
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
    )


# -- the file ---------------------------------------------------------------------------------------------------------


class _Struct(msgspec.Struct, rename="kebab", kw_only=True):
    pass


class _Named(_Struct):
    name: str


class _Cluster(_Struct):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False


class _EnvVar(_Struct):
    name: str
    value: str


class _Exec(msgspec.Struct, rename="camel", kw_only=True):
    command: str
    args: list[str] | None = None
    env: list[_EnvVar] | None = None
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False


class _User(_Struct):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    as_: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] | None = None
    username: str = ""
    password: str = ""
    auth_provider: Any = None
    exec: _Exec | None = None


class _Context(_Struct):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(_Named):
    cluster: _Cluster = msgspec.field(default_factory=_Cluster)


class _NamedUser(_Named):
    user: _User = msgspec.field(default_factory=_User)


class _NamedContext(_Named):
    context: _Context = msgspec.field(default_factory=_Context)


class _File(_Struct):
    kind: str = "Config"
    current_context: str = ""
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


def load_kubeconfig(
    files: Sequence[Path], *, context: str = "", must_exist: bool = False
) -> ConnectionConfig:
    """Load one connection from kubeconfig files; files that do not exist are passed over."""
    read = [(path, _parse(path)) for path in files if must_exist or path.exists()]
    shown = ", ".join(map(str, files))
    if not read:
        raise ConfigError(f"{shown}: no such kubeconfig file")
    chosen = context or next((file.current_context for _, file in read if file.current_context), "")
    if not chosen:
        raise ConfigError(f"{shown}: current-context is not set; set it, or name a context")
    _, entry = _find(((path, file.contexts) for path, file in read), "context", chosen, shown)
    wanted = entry.context
    if not wanted.cluster:
        raise ConfigError(f"{shown}: context {chosen!r} names no cluster")
    cluster_file, cluster = _find(
        ((path, file.clusters) for path, file in read), "cluster", wanted.cluster, shown
    )
    if wanted.user:
        user_file, user = _find(((path, file.users) for path, file in read), "user", wanted.user, shown)
    else:
        user_file, user = cluster_file, _NamedUser(name="")
    return _resolve(cluster_file, cluster, user_file, user, wanted.namespace)


def _parse(path: Path) -> _File:
    import yaml  # not needed by processes that never read a kubeconfig

    try:
        with path.open("rb") as file:
            tree = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark is not None else str(path)
        raise ConfigError(f"{where}: not YAML: {getattr(error, 'problem', None) or error}") from error
    try:
        parsed = msgspec.convert(_without_nulls(tree), _File)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: not a kubeconfig: {error}") from error
    if parsed.kind != "Config":
        raise ConfigError(f"{path}: not a kubeconfig: kind is {parsed.kind!r}, want 'Config'")
    return parsed


def _without_nulls(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _without_nulls(value) for key, value in tree.items() if value is not None}
    if isinstance(tree, list):
        return [_without_nulls(item) for item in tree]
    return {} if tree is None else tree


def _find(files: Iterable[tuple[Path, list[N] | None]], what: str, name: str, shown: str) -> tuple[Path, N]:
    known: dict[str, None] = {}
    for path, entries in files:
        for entry in entries or ():
            if entry.name == name:
                return path, entry
            known[entry.name] = None
    listed = ", ".join(known) or "none"
    raise ConfigError(f"{shown}: there is no {what} {name!r}; there are: {listed}")


def _resolve(
    cluster_file: Path, named_cluster: _NamedCluster, user_file: Path, named_user: _NamedUser, namespace: str
) -> ConnectionConfig:
    cluster, user = named_cluster.cluster, named_user.user
    at_cluster = f"{cluster_file}: cluster {named_cluster.name!r}"
    at_user = f"{user_file}: user {named_user.name!r}"
    if not cluster.server:
        raise ConfigError(f"{at_cluster}: server is missing; want https://HOST:PORT")
    if cluster.proxy_url:
        raise ConfigError(f"{at_cluster}: proxy-url is not supported; reach the server directly")
    if user.auth_provider is not None:
        raise ConfigError(f"{at_user}: auth-provider no longer exists in Kubernetes; use exec")
    if len(user.as_groups or ()) > 1:
        raise ConfigError(f"{at_user}: as-groups: one group at most is supported")
    ca = _pem(cluster_file, at_cluster, "certificate-authority", cluster.certificate_authority,
              cluster.certificate_authority_data)  # fmt: skip
    if cluster.insecure_skip_tls_verify and ca is not None:
        raise ConfigError(f"{at_cluster}: insecure-skip-tls-verify makes no sense with certificate-authority")
    certificate = _pem(user_file, at_user, "client-certificate", user.client_certificate,
                       user.client_certificate_data)  # fmt: skip
    key = _pem(user_file, at_user, "client-key", user.client_key, user.client_key_data)
    if (certificate is None) != (key is None):
        raise ConfigError(f"{at_user}: client-certificate and client-key need each other")
    return ConnectionConfig(
        server=cluster.server,
        origin=str(cluster_file),
        ca=ca,
        insecure=cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
        client_certificate=certificate,
        client_key=key,
        token=user.token,
        token_file=user_file.parent / user.token_file if user.token_file else None,
        username=user.username,
        password=user.password,
        exec=_exec(user_file, at_user, user.exec) if user.exec is not None else None,
        impersonate_user=user.as_,
        impersonate_group=(user.as_groups or [""])[0],
        impersonate_uid=user.as_uid,
        namespace=namespace or "default",
        accept_gzip=not cluster.disable_compression,
    )


def _exec(file: Path, at: str, plugin: _Exec) -> ExecConfig:
    if plugin.api_version not in _EXEC_VERSIONS:
        raise ConfigError(
            f"{at}: exec: apiVersion {plugin.api_version!r} is not known; want {' or '.join(_EXEC_VERSIONS)}"
        )
    command = plugin.command
    if os.sep in command:
        command = str(file.parent.absolute() / command)
    return ExecConfig(
        command=command,
        args=tuple(plugin.args or ()),
        env=tuple((item.name, item.value) for item in plugin.env or ()),
        api_version=plugin.api_version,
        install_hint=plugin.install_hint,
        provide_cluster_info=plugin.provide_cluster_info,
    )


def _pem(file: Path, at: str, what: str, path: str, data: str) -> bytes | None:
    """Read PEM from `what-data` if given, else from the file that `what` names."""
    if data:
        try:
            return base64.b64decode(data, validate=False)
        except binascii.Error as error:
            raise ConfigError(f"{at}: {what}-data is not base64: {error}") from error
    return _read(file.parent / path, f"{at}: {what}") if path else None


def _read(path: Path, at: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{at}: {path} cannot be read: {error.strerror}") from error
