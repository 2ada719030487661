"""Kubeconfig files: what is found, what wins, and what errors say."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from nodeward.base.errors import ConfigError
from nodeward.machinery.kubeconfig import ConnectionConfig, in_cluster_config, load_config

SIMPLE = """
apiVersion: v1
kind: Config
current-context: main
clusters:
- name: c1
  cluster:
    server: https://one.example:6443
- name: c2
  cluster: {server: "https://two.example:6443", insecure-skip-tls-verify: true, tls-server-name: two.internal}
users:
- name: u1
  user: {token: secret-1}
- name: u2
  user: {username: me, password: pass}
contexts:
- name: main
  context: {cluster: c1, user: u1, namespace: shop}
- name: other
  context: {cluster: c2, user: u2}
preferences: {}
"""


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def load(tmp_path: Path, text: str, context: str = "") -> ConnectionConfig:
    return load_config({}, path=write(tmp_path / "config", text), context=context)


def with_user(user: str, cluster: str = "server: https://x:1") -> str:
    return f"""
current-context: x
clusters: [{{name: x, cluster: {{{cluster}}}}}]
users: [{{name: x, user: {{{user}}}}}]
contexts: [{{name: x, context: {{cluster: x, user: x}}}}]
"""


def refusal(tmp_path: Path, text: str, context: str = "") -> str:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text, context)
    return str(caught.value).replace(str(tmp_path), "DIR")


def test_the_current_context_decides_unless_another_is_named(tmp_path: Path) -> None:
    config = load(tmp_path, SIMPLE)
    assert (config.server, config.token, config.namespace) == ("https://one.example:6443", "secret-1", "shop")
    other = load(tmp_path, SIMPLE, "other")
    assert (other.server, other.server_name, other.insecure) == (
        "https://two.example:6443",
        "two.internal",
        True,
    )
    assert (other.username, other.password, other.namespace) == ("me", "pass", "default")


def test_secrets_do_not_show_in_print(tmp_path: Path) -> None:
    shown = repr(load(tmp_path, SIMPLE)) + repr(load(tmp_path, SIMPLE, "other"))
    assert "secret-1" not in shown
    assert "pass" not in shown.replace("password", "")


def test_of_several_files_the_first_that_says_something_wins(tmp_path: Path) -> None:
    first = write(tmp_path / "a" / "1", "users: [{name: u1, user: {token: first}}]")
    second = write(tmp_path / "b" / "2", SIMPLE)
    third = write(tmp_path / "3", SIMPLE.replace("secret-1", "third").replace("current-context: main", ""))
    listed = f"{tmp_path}/missing:{first}:{second}:{third}"
    config = load_config({"KUBECONFIG": listed})
    assert (config.server, config.token) == ("https://one.example:6443", "first")


def test_without_being_told_the_file_in_the_home_directory_is_read(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config", SIMPLE)
    assert load_config({"HOME": str(tmp_path)}).token == "secret-1"


def test_files_are_relative_to_the_kubeconfig_that_names_them(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        write(tmp_path / "pki" / name, f"PEM {name}")
    text = with_user(
        "client-certificate: pki/cert, client-key: pki/key, tokenFile: pki/token",
        "server: https://x, certificate-authority: pki/ca",
    )
    config = load(tmp_path, text)
    assert (config.ca, config.client_certificate, config.client_key) == (b"PEM ca", b"PEM cert", b"PEM key")
    assert config.token_file == tmp_path / "pki" / "token"


def test_data_goes_before_files(tmp_path: Path) -> None:
    data = base64.b64encode(b"PEM inline").decode()
    config = load(
        tmp_path,
        with_user(
            "token: t",
            f"server: https://x, certificate-authority: nowhere, certificate-authority-data: {data}",
        ),
    )
    assert config.ca == b"PEM inline"


def test_a_credential_program_is_described(tmp_path: Path) -> None:
    exec_ = (
        "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./bin/login, args: [a, b], "
        "env: [{name: N, value: V}], installHint: get it, provideClusterInfo: true, interactiveMode: Never}"
    )
    plugin = load(tmp_path, with_user(exec_)).exec
    assert plugin is not None
    assert Path(plugin.command) == tmp_path / "bin/login"
    assert (plugin.args, plugin.env) == (("a", "b"), (("N", "V"),))
    assert plugin.provide_cluster_info


def test_nulls_and_unknown_fields_are_passed_over(tmp_path: Path) -> None:
    text = SIMPLE.replace("preferences: {}", "preferences: null\nextensions: null\nfuture: [1]")
    text = text.replace("user: {token: secret-1}", "user: {token: secret-1, as: null, exec: null}")
    assert load(tmp_path, text).token == "secret-1"


@pytest.mark.parametrize(
    ("text", "context", "message"),
    [
        ("current-context: x", "", "DIR/config: there is no context 'x'; there are: none"),
        (SIMPLE, "mian", "DIR/config: there is no context 'mian'; there are: main, other"),
        (
            SIMPLE.replace("cluster: c1", "cluster: c9"),
            "",
            "DIR/config: there is no cluster 'c9'; there are: c1, c2",
        ),
        (SIMPLE.replace("user: u1", "user: u9"), "", "DIR/config: there is no user 'u9'; there are: u1, u2"),
        ("kind: Config", "", "DIR/config: current-context is not set; set it, or name a context"),
        ("kind: Pod", "", "DIR/config: not a kubeconfig: kind is 'Pod', want 'Config'"),
        ("a: 1\nb: @c\n", "", "DIR/config:2: not YAML: "),
        (
            "clusters: 7",
            "",
            "DIR/config: not a kubeconfig: Expected `array | null`, got `int` - at `$.clusters`",
        ),
        ("just text", "", "DIR/config: not a kubeconfig: Expected `object`, got `str`"),
        (with_user("token: t", ""), "", "DIR/config: cluster 'x': server is missing; want https://HOST:PORT"),
        (
            with_user("token: t", "server: https://x, certificate-authority-data: '%%%a'"),
            "",
            "DIR/config: cluster 'x': certificate-authority-data is not base64: ",
        ),
        (
            with_user("token: t", "server: https://x, certificate-authority: gone.crt"),
            "",
            "DIR/config: cluster 'x': certificate-authority: DIR/gone.crt cannot be read: No such file",
        ),
        (with_user("client-certificate-data: QQ=="), "", "client-certificate and client-key need each other"),
        (
            with_user("auth-provider: {name: gcp}"),
            "",
            "auth-provider no longer exists in Kubernetes; use exec",
        ),
        (with_user("as: x, as-groups: [a, b]"), "", "as-groups: one group at most is supported"),
        (with_user("token: t", "server: https://x, proxy-url: http://p"), "", "proxy-url is not supported"),
        (
            with_user(
                "token: t",
                "server: https://x, insecure-skip-tls-verify: true, certificate-authority-data: QQ==",
            ),
            "",
            "insecure-skip-tls-verify makes no sense with certificate-authority",
        ),
        (
            with_user("exec: {command: x, apiVersion: client.authentication.k8s.io/v1alpha1}"),
            "",
            "exec: apiVersion 'client.authentication.k8s.io/v1alpha1' is not known; "
            "want client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1",
        ),
    ],
)
def test_an_error_says_where_and_what_would_be_right(
    tmp_path: Path, text: str, context: str, message: str
) -> None:
    assert message in refusal(tmp_path, text, context)


def test_a_file_that_is_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_config({}, path=str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="no such kubeconfig file"):
        load_config({"KUBECONFIG": str(tmp_path / "none")})


def test_without_anything_the_error_lists_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"KUBECONFIG is not set, .*/\.kube/config does not exist, and this is not a pod"
    ):
        load_config({"HOME": str(tmp_path)})


def test_a_pod_finds_its_service_account(tmp_path: Path) -> None:
    write(tmp_path / "token", "tok")
    write(tmp_path / "ca.crt", "PEM")
    write(tmp_path / "namespace", "shop\n")
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    config = in_cluster_config(environment, tmp_path)
    assert (config.server, config.ca, config.namespace) == ("https://10.0.0.1:443", b"PEM", "shop")
    assert config.token_file == tmp_path / "token"
    six = in_cluster_config({**environment, "KUBERNETES_SERVICE_HOST": "fd00::1"}, tmp_path)
    assert six.server == "https://[fd00::1]:443"
    with pytest.raises(ConfigError, match="not in a pod"):
        in_cluster_config({}, tmp_path)
    (tmp_path / "token").unlink()
    with pytest.raises(ConfigError, match="token cannot be read"):
        in_cluster_config(environment, tmp_path)
