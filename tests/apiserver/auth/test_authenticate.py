"""Who is asking."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from nodeward.apiserver.auth.authenticate import Authenticator, bearer_token, certificate_user
from nodeward.apiserver.auth.token_file import read_token_file
from nodeward.apiserver.auth.token_keys import TokenKey
from nodeward.apiserver.auth.tokens import Bound, BoundObject, Ref, TokenClaims, TokenSigner, TokenVerifier
from nodeward.apiserver.auth.user import User, split_node, split_service_account
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import ConfigError

NOW = 10**18
CERTIFICATE = {
    "subject": (
        (("countryName", "DE"),),
        (("organizationName", "system:masters"),),
        (("organizationName", "devs"),),
        (("commonName", "kubernetes-admin"),),
    )
}
TOKENS = {"s3cret": User("jane", "7", ("devs",))}


def bearer(text: str) -> list[tuple[bytes, bytes]]:
    return [(b"host", b"x"), (b"authorization", text.encode())]


def test_a_certificate_gives_the_common_name_and_organisations_as_groups() -> None:
    user = certificate_user(CERTIFICATE, b"der")
    assert user == User(
        "kubernetes-admin",
        "",
        ("system:masters", "devs", "system:authenticated"),
        {
            "authentication.kubernetes.io/credential-id": (
                "X509SHA256=5050d80d22ecd471ea55df7034042c1e041341ff4066e7f6ff38e20b720df8ea",
            )
        },
    )
    assert Authenticator().authenticate(peer_subject=user, headers=[], now_ns=NOW) is user


def test_a_certificate_may_carry_one_uid() -> None:
    uid = ("1.3.6.1.4.1.57683.2", "u1")
    name = ("commonName", "jane")
    found = certificate_user({"subject": ((name,), (uid,))})
    assert found is not None
    assert found.uid == "u1"
    assert certificate_user({"subject": ((name,), (uid,), (uid,))}) is None
    assert certificate_user({"subject": ((uid,),)}) is None
    assert certificate_user({}) is None


def test_a_certificate_wins_over_a_token() -> None:
    user = Authenticator(tokens=TOKENS).authenticate(
        peer_subject=CERTIFICATE, headers=bearer("Bearer s3cret"), now_ns=NOW
    )
    assert user is not None
    assert user.name == "kubernetes-admin"


def test_a_static_token_gives_its_user_and_the_group_of_the_authenticated() -> None:
    user = Authenticator(tokens=TOKENS).authenticate(
        peer_subject=None, headers=bearer("Bearer s3cret"), now_ns=NOW
    )
    assert user == User("jane", "7", ("devs", "system:authenticated"))


def test_who_shows_nothing_is_anonymous_unless_that_is_forbidden() -> None:
    assert Authenticator().authenticate(peer_subject=None, headers=[], now_ns=NOW) == User(
        "system:anonymous", "", ("system:unauthenticated",)
    )
    strict = Authenticator(allows_anonymous=False)
    assert strict.authenticate(peer_subject=None, headers=[], now_ns=NOW) is None


def test_who_shows_a_bad_token_is_turned_away_though_anonymous_is_allowed() -> None:
    lax = Authenticator(tokens=TOKENS)
    assert lax.authenticate(peer_subject=None, headers=bearer("Bearer wrong"), now_ns=NOW) is None


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bEARER abc", "abc"),
        ("  Bearer abc  ", "abc"),
        ("Bearer abc def", "abc"),
        ("Bearer  abc", None),
        ("Bearer", None),
        ("", None),
        ("Basic abc", None),
    ],
)
def test_only_the_bearer_scheme_is_read(header: str, token: str | None) -> None:
    assert bearer_token(bearer(header)) == token


def test_a_static_token_speaks_for_this_server_only() -> None:
    check = Authenticator(tokens=TOKENS, audiences=["api"])
    assert check.authenticate_token("s3cret", now_ns=NOW).audiences == ("api",)
    assert check.authenticate_token("s3cret", now_ns=NOW, audiences=["api", "x"]).audiences == ("api",)
    assert check.authenticate_token("s3cret", now_ns=NOW, audiences=["x"]).error == "invalid bearer token"


def test_a_service_account_token_is_checked_and_its_refusal_explained() -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    key = TokenKey(private.public_key(), private)
    objects = {("ServiceAccount", "ns", "bot"): BoundObject("u")}
    verifier = TokenVerifier(["iss"], [key], ["api"], lambda *which: objects.get(which))
    check = Authenticator(verifier=verifier, audiences=["api"])
    bound = Bound(namespace="ns", serviceaccount=Ref(name="bot", uid="u"))
    token = TokenSigner("iss", key).sign(TokenClaims(aud=["api"], exp=NOW // SECOND_NS, kubernetes=bound))
    user = check.authenticate(peer_subject=None, headers=bearer(f"Bearer {token}"), now_ns=NOW)
    assert user is not None
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
    late = check.authenticate_token(token, now_ns=NOW + 61 * SECOND_NS)
    assert late.user is None
    assert late.error == "[invalid bearer token, service account token has expired]"
    assert check.authenticate_token("nonsense", now_ns=NOW).error == "invalid bearer token"


def test_the_token_file_is_read_line_by_line() -> None:
    text = 't1,jane,7,"a,b"\nt2,joe,8\n,nobody,9\nt1,jim,10\n\n'
    tokens, warnings = read_token_file(text, "tokens.csv")
    assert tokens == {"t1": User("jim", "10"), "t2": User("joe", "8")}
    assert warnings == [
        "empty token has been found in token file 'tokens.csv', record number '3'",
        "duplicate token has been found in token file 'tokens.csv', record number '4'",
    ]
    assert read_token_file('t,u,i,"a,b"', "f")[0]["t"].groups == ("a", "b")


def test_a_token_file_with_too_few_columns_or_broken_quotes_is_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        read_token_file("t,u\n", "tokens.csv")
    assert str(refused.value) == (
        "token file 'tokens.csv' must have at least 3 columns (token, user name, user uid), found 2"
    )
    with pytest.raises(ConfigError, match=r"token file 'f', record 2: "):
        read_token_file('a,b,c\na,b,c,"d"e\n', "f")


def test_names_of_nodes_and_service_accounts_are_recognised_strictly() -> None:
    assert split_service_account("system:serviceaccount:ns:bot.x") == ("ns", "bot.x")
    for name in (
        "system:serviceaccount:ns",
        "system:serviceaccount::x",
        "system:serviceaccount:a:b:c",
        "jane",
    ):
        assert split_service_account(name) is None
    assert split_node("system:node:n1.example") == "n1.example"
    for name in ("system:node:", "system:node:N1", "n1"):
        assert split_node(name) is None
