"""Service-account tokens: issued, checked, refused."""

from __future__ import annotations

import json
from functools import lru_cache

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from nodeward.api.authentication_v1 import BoundObjectReference, TokenRequest, TokenRequestSpec
from nodeward.api.errors import ApiError
from nodeward.api.meta import ObjectMeta
from nodeward.apiserver.auth import tokens as tokens_module
from nodeward.apiserver.auth.oidc import json_web_keys, openid_configuration
from nodeward.apiserver.auth.token_keys import TokenKey, b64, load_key, unb64
from nodeward.apiserver.auth.token_request import TokenIssuer
from nodeward.apiserver.auth.tokens import BoundObject, TokenRefused, TokenSigner, TokenVerifier, Verified
from nodeward.apiserver.auth.user import User
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import ConfigError

NOW = 1_767_225_600 * SECOND_NS
ISSUER = "https://kubernetes.default.svc.cluster.local"


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def key(kind: str = "P-256") -> TokenKey:
    return _made(kind)


@lru_cache
def _made(kind: str) -> TokenKey:
    if kind == "RSA":
        return load_key(pem(rsa.generate_private_key(65537, 2048)))
    curve = {
        "P-256": ec.SECP256R1(),
        "P-384": ec.SECP384R1(),
        "P-521": ec.SECP521R1(),
        "other": ec.SECP256R1(),
    }[kind]
    return load_key(pem(ec.generate_private_key(curve)))


class World:
    """The objects that tokens are bound to."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], BoundObject] = {
            ("ServiceAccount", "ns", "bot"): BoundObject("sa-uid"),
            ("Pod", "ns", "p"): BoundObject("pod-uid", service_account="bot", node="n1"),
            ("Pod", "ns", "stranger"): BoundObject("x", service_account="other"),
            ("Node", "", "n1"): BoundObject("node-uid"),
            ("Secret", "ns", "s"): BoundObject("secret-uid"),
        }

    def find(self, kind: str, namespace: str, name: str) -> BoundObject | None:
        return self.objects.get((kind, namespace, name))


def issuer(world: World, kind: str = "P-256", max_seconds: int = 0) -> TokenIssuer:
    return TokenIssuer(TokenSigner(ISSUER, key(kind)), [ISSUER], world.find, max_seconds=max_seconds)


def verifier(world: World, *kinds: str) -> TokenVerifier:
    return TokenVerifier([ISSUER], [key(kind) for kind in kinds or ("P-256",)], [ISSUER], world.find)


def request(
    ref: tuple[str, str, str] | None = None, seconds: int | None = None, audiences: tuple[str, ...] = ()
) -> TokenRequest:
    bound = None
    if ref is not None:
        bound = BoundObjectReference(kind=ref[0], api_version="v1", name=ref[1], uid=ref[2])
    spec = TokenRequestSpec(audiences=list(audiences), expiration_seconds=seconds, bound_object_ref=bound)
    return TokenRequest(spec=spec)


def token(world: World, asked: TokenRequest | None = None, kind: str = "P-256") -> str:
    out, _ = issuer(world, kind).issue(asked or request(), "ns", "bot", now_ns=NOW, token_id="id-1")
    return out.status.token


def claims(text: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(unb64(text.split(".")[1]))
    return found


def refusal(
    check: TokenVerifier, text: str, now_ns: int = NOW, audiences: tuple[str, ...] | None = None
) -> str:
    with pytest.raises(TokenRefused) as refused:
        check.verify(text, now_ns=now_ns, audiences=audiences)
    return str(refused.value)


@pytest.mark.parametrize("kind", ["RSA", "P-256", "P-384", "P-521"])
def test_a_token_signed_with_any_usual_key_verifies(kind: str) -> None:
    world = World()
    verified = verifier(world, "other", kind).verify(token(world, kind=kind), now_ns=NOW)
    assert verified is not None
    assert verified.user.name == "system:serviceaccount:ns:bot"


def test_the_claims_are_those_of_kubernetes() -> None:
    text = token(World(), request(("Pod", "p", "pod-uid"), 1200, ("vault",)))
    assert json.loads(unb64(text.split(".")[0])) == {"alg": "ES256", "kid": key().key_id}
    assert claims(text) == {
        "aud": ["vault"],
        "exp": NOW // SECOND_NS + 1200,
        "iat": NOW // SECOND_NS,
        "iss": ISSUER,
        "jti": "id-1",
        "kubernetes.io": {
            "namespace": "ns",
            "node": {"name": "n1", "uid": "node-uid"},
            "pod": {"name": "p", "uid": "pod-uid"},
            "serviceaccount": {"name": "bot", "uid": "sa-uid"},
        },
        "nbf": NOW // SECOND_NS,
        "sub": "system:serviceaccount:ns:bot",
    }


def test_the_user_of_a_pods_token_knows_its_pod_and_node() -> None:
    world = World()
    assert verifier(world).verify(token(world, request(("Pod", "p", ""))), now_ns=NOW) == Verified(
        User(
            "system:serviceaccount:ns:bot",
            "sa-uid",
            ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
            {
                "authentication.kubernetes.io/credential-id": ("JTI=id-1",),
                "authentication.kubernetes.io/node-name": ("n1",),
                "authentication.kubernetes.io/node-uid": ("node-uid",),
                "authentication.kubernetes.io/pod-name": ("p",),
                "authentication.kubernetes.io/pod-uid": ("pod-uid",),
            },
        ),
        (ISSUER,),
    )


def test_a_token_is_good_from_a_minute_before_until_a_minute_after_its_time() -> None:
    world = World()
    check, text = verifier(world), token(world, request(seconds=600))
    assert check.verify(text, now_ns=NOW - 60 * SECOND_NS)
    assert check.verify(text, now_ns=NOW + 660 * SECOND_NS)
    assert refusal(check, text, NOW - 61 * SECOND_NS) == "service account token is not valid yet"
    assert refusal(check, text, NOW + 661 * SECOND_NS) == "service account token has expired"
    assert check.verify(text, now_ns=NOW)


def test_a_token_for_another_audience_is_refused_here_and_accepted_there() -> None:
    world = World()
    check, text = verifier(world), token(world, request(audiences=("vault", "db")))
    assert refusal(check, text) == (
        f'token audiences ["vault" "db"] is invalid for the target audiences ["{ISSUER}"]'
    )
    verified = check.verify(text, now_ns=NOW, audiences=("db", "web"))
    assert verified is not None
    assert verified.audiences == ("db",)


def test_a_changed_token_is_refused() -> None:
    world = World()
    check = verifier(world)
    head, body, signature = token(world).split(".")
    forged = claims(f".{body}.")
    forged["kubernetes.io"] = {"namespace": "ns", "serviceaccount": {"name": "admin", "uid": "sa-uid"}}
    bad = "go-jose/go-jose: error in cryptographic primitive"
    assert refusal(check, f"{head}.{b64(json.dumps(forged).encode())}.{signature}") == bad
    assert refusal(check, f"{head}.{body}.{b64(b'x' * 64)}") == bad
    assert refusal(check, f"{head}.{body}.{b64(b'short')}") == bad
    unsigned = b64(json.dumps({"alg": "none", "kid": key().key_id}).encode())
    assert refusal(check, f"{unsigned}.{body}.{signature}") == bad
    assert refusal(verifier(world, "other"), token(world)) == "invalid signature, no keys found"


def test_what_is_not_our_token_at_all_is_left_to_others() -> None:
    world = World()
    check = verifier(world)
    stranger = TokenSigner("https://elsewhere", key())
    theirs = stranger.sign(tokens_module.TokenClaims(sub="x"))
    for text in ("", "abc", "a.b.c", "..", "{}", theirs, f"!.{b64(b'{}')}.!", "\udcff.\udcff.\udcff"):
        assert check.verify(text, now_ns=NOW) is None


def test_a_token_dies_with_its_service_account_even_when_it_was_seen_before() -> None:
    world = World()
    check, text = verifier(world), token(world)
    assert check.verify(text, now_ns=NOW)
    world.objects["ServiceAccount", "ns", "bot"] = BoundObject("new-uid")
    assert refusal(check, text) == "service account UID (new-uid) does not match claim (sa-uid)"
    world.objects["ServiceAccount", "ns", "bot"] = BoundObject("sa-uid", deleted_ns=NOW - 61 * SECOND_NS)
    assert refusal(check, text) == "service account ns/bot has been deleted"
    world.objects["ServiceAccount", "ns", "bot"] = BoundObject("sa-uid", deleted_ns=NOW - 59 * SECOND_NS)
    assert check.verify(text, now_ns=NOW)
    del world.objects["ServiceAccount", "ns", "bot"]
    assert refusal(check, text) == 'serviceaccounts "bot" not found'


@pytest.mark.parametrize(
    ("kind", "namespace", "name"), [("Pod", "ns", "p"), ("Secret", "ns", "s"), ("Node", "", "n1")]
)
def test_a_token_dies_with_the_object_it_is_bound_to(kind: str, namespace: str, name: str) -> None:
    world = World()
    check, text = verifier(world), token(world, request((kind, name, "")))
    assert check.verify(text, now_ns=NOW)
    old = world.objects[kind, namespace, name]
    world.objects[kind, namespace, name] = BoundObject("new")
    what = kind.lower()
    assert (
        refusal(check, text)
        == f"{what} UID (new) does not match service account {what} ref claim ({old.uid})"
    )
    world.objects[kind, namespace, name] = BoundObject(old.uid, deleted_ns=NOW - 61 * SECOND_NS)
    assert refusal(check, text) == "service account token has been invalidated"
    del world.objects[kind, namespace, name]
    assert refusal(check, text) == "service account token has been invalidated"


def test_a_pods_token_outlives_its_node() -> None:
    world = World()
    check, text = verifier(world), token(world, request(("Pod", "p", "")))
    del world.objects["Node", "", "n1"]
    assert check.verify(text, now_ns=NOW)
    lost = token(world, request(("Pod", "p", "")))
    bound = claims(lost)["kubernetes.io"]
    assert isinstance(bound, dict)
    assert bound["node"] == {"name": "n1"}


def test_remembered_tokens_are_bounded_and_share_their_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens_module, "REMEMBERED", 3)
    world = World()
    check = verifier(world)
    for i in range(8):
        made, _ = issuer(world).issue(request(), "ns", "bot", now_ns=NOW, token_id=f"id-{i}")
        first = check.verify(made.status.token, now_ns=NOW)
        second = check.verify(made.status.token, now_ns=NOW)
        assert first is not None
        assert second is not None
        assert first.user is second.user
        assert len(check._remembered) <= 3


def test_a_request_is_answered_with_its_token_and_expiry() -> None:
    asked = request()
    out, warnings = issuer(World()).issue(asked, "ns", "bot", now_ns=NOW, token_id="i")
    assert warnings == []
    assert asked == request()
    assert (out.metadata.name, out.metadata.namespace, out.metadata.uid) == ("bot", "ns", "sa-uid")
    assert out.metadata.creation_timestamp == "2026-01-01T00:00:00Z"
    assert out.spec.audiences == [ISSUER]
    assert out.spec.expiration_seconds == 3600
    assert out.status.expiration_timestamp == "2026-01-01T01:00:00Z"


def test_a_lifetime_is_between_ten_minutes_and_two_to_the_32_seconds() -> None:
    def fault(seconds: int) -> str:
        with pytest.raises(ApiError) as refused:
            issuer(World()).issue(request(seconds=seconds), "ns", "bot", now_ns=NOW, token_id="i")
        assert refused.value.code == 422
        return str(refused.value)

    assert fault(599) == (
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: '
        "may not specify a duration less than 10 minutes"
    )
    assert fault(2**32 + 1).endswith("4294967297: may not specify a duration larger than 2^32 seconds")
    issuer(World()).issue(request(seconds=2**32), "ns", "bot", now_ns=NOW, token_id="i")


def test_a_cap_shortens_the_lifetime_and_warns() -> None:
    out, warnings = issuer(World(), max_seconds=900).issue(request(), "ns", "bot", now_ns=NOW, token_id="i")
    assert warnings == ["requested expiration of 3600 seconds shortened to 900 seconds"]
    assert claims(out.status.token)["exp"] == NOW // SECOND_NS + 900
    assert out.spec.expiration_seconds == 900


def test_the_usual_token_of_a_pod_lasts_a_year_but_says_an_hour() -> None:
    asked = request(("Pod", "p", ""), 3607)
    out, _ = issuer(World()).issue(asked, "ns", "bot", now_ns=NOW, token_id="i")
    said = claims(out.status.token)
    assert said["exp"] == NOW // SECOND_NS + 365 * 24 * 3600
    assert out.status.expiration_timestamp == "2026-01-01T01:00:07Z"
    bound = said["kubernetes.io"]
    assert isinstance(bound, dict)
    assert bound["warnafter"] == NOW // SECOND_NS + 3607
    for other in (request(None, 3607), request(("Pod", "p", ""), 3607, ("vault",))):
        made, _ = issuer(World()).issue(other, "ns", "bot", now_ns=NOW, token_id="i")
        assert claims(made.status.token)["exp"] == NOW // SECOND_NS + 3607


def test_bad_requests_are_refused_in_kubernetes_words() -> None:
    def refused(asked: TokenRequest, name: str = "bot") -> tuple[int, str]:
        with pytest.raises(ApiError) as error:
            issuer(World()).issue(asked, "ns", name, now_ns=NOW, token_id="i")
        return error.value.code, str(error.value)

    assert refused(request(), "nobody") == (404, 'serviceaccounts "nobody" not found')
    assert refused(request(("Pod", "gone", ""))) == (404, 'pods "gone" not found')
    assert refused(request(("Node", "gone", ""))) == (404, 'nodes "gone" not found')
    assert refused(request(("ConfigMap", "c", ""))) == (
        400,
        "cannot bind token to object of type /v1, Kind=ConfigMap",
    )
    assert refused(request(("Pod", "stranger", ""))) == (
        400,
        'cannot bind token for serviceaccount "bot" to pod running with different serviceaccount name.',
    )
    assert refused(request(("Pod", "p", "old"))) == (
        409,
        'Operation cannot be fulfilled on Pod "p": the UID in the bound object reference (old) does not match '
        "the UID in record. The object might have been deleted and then recreated",
    )
    assert refused(TokenRequest(metadata=ObjectMeta(uid="old")))[0] == 409
    assert refused(TokenRequest(metadata=ObjectMeta(name="joe"))) == (
        422,
        'TokenRequest.authentication.k8s.io "bot" is invalid: metadata.name: Invalid value: "joe": '
        "must match the service account name if specified",
    )
    assert refused(TokenRequest(metadata=ObjectMeta(namespace="x")))[0] == 422


def test_a_public_key_verifies_and_cannot_sign() -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    public = load_key(
        private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    whole = load_key(pem(private))
    assert public.key_id == whole.key_id
    assert public.verifies(whole.sign(b"data"), b"data")
    assert not public.verifies(whole.sign(b"data"), b"other")
    with pytest.raises(ConfigError, match="no private half"):
        TokenSigner(ISSUER, public)
    with pytest.raises(ConfigError, match="no private half"):
        public.sign(b"data")


def test_a_key_that_is_no_rsa_or_ec_key_is_a_clear_error() -> None:
    with pytest.raises(ConfigError, match=r"^sa.key: not a PEM encoded RSA or EC key"):
        load_key(b"nonsense", "sa.key")
    with pytest.raises(ConfigError, match=r"^sa.key: must be an RSA or EC key"):
        load_key(pem(ed25519.Ed25519PrivateKey.generate()), "sa.key")
    with pytest.raises(ConfigError, match="unknown private key curve, must be 256, 384, or 521"):
        load_key(pem(ec.generate_private_key(ec.SECP256K1())))


def test_discovery_tells_others_how_to_check_tokens() -> None:
    document = json.loads(
        openid_configuration(ISSUER, [key("RSA"), key()], jwks_uri="https://10.0.0.1:6443/openid/v1/jwks")
    )
    assert document == {
        "issuer": ISSUER,
        "jwks_uri": "https://10.0.0.1:6443/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256", "RS256"],
    }
    keys = json.loads(json_web_keys([key("RSA"), key()]))["keys"]
    assert [(k["use"], k["kty"], k["alg"]) for k in keys] == [("sig", "RSA", "RS256"), ("sig", "EC", "ES256")]
    assert keys[0]["e"] == "AQAB"
    assert len(unb64(keys[1]["x"])) == len(unb64(keys[1]["y"])) == 32
    for issuer_url in ("http://x", "https://x?y=z", "https://x#y"):
        with pytest.raises(ConfigError):
            openid_configuration(issuer_url, [key()], jwks_uri="https://x")
    with pytest.raises(ConfigError):
        openid_configuration(ISSUER, [key()], jwks_uri="http://x")
