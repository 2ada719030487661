"""Keys for service-account tokens: PEM in, signatures and JSON Web Keys out. Used by `tokens.py` and `oidc.py`.

RSA keys sign with RS256, elliptic ones with ES256, ES384 or ES512 after their curve. A key's id is a digest of its
public half. `cryptography` is imported when the first key is read.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nodeward.base.errors import ConfigError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    _Private: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
    _Public: TypeAlias = rsa.RSAPublicKey | ec.EllipticCurvePublicKey

#: Curve: algorithm, its digest, the name of the curve in a JWK, bytes of a coordinate.
_CURVES: Final = {
    "secp256r1": ("ES256", "SHA256", "P-256", 32),
    "secp384r1": ("ES384", "SHA384", "P-384", 48),
    "secp521r1": ("ES512", "SHA512", "P-521", 66),
}


def b64(data: bytes) -> str:
    """Encode as URL-safe base64 without padding, as all of JOSE does."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def unb64(text: str) -> bytes:
    """Decode URL-safe base64; raises ValueError."""
    if not text.isascii() or "+" in text or "/" in text or "=" in text:
        raise ValueError("not URL-safe base64 without padding")
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


class TokenKey:
    """One key: verifies signatures, and signs if the private half is known."""

    __slots__ = ("_digest", "_private", "_public", "_size", "algorithm", "jwk", "key_id")

    def __init__(self, public: _Public, private: _Private | None = None) -> None:
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import rsa

        self._public, self._private = public, private
        der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self.key_id: Final = b64(hashlib.sha256(der).digest())
        if isinstance(public, rsa.RSAPublicKey):
            self.algorithm, self._digest, self._size = "RS256", hashes.SHA256(), 0
            numbers = public.public_numbers()
            shape: dict[str, str] = {"kty": "RSA", "n": _number(numbers.n), "e": _number(numbers.e)}
        else:
            if public.curve.name not in _CURVES:
                raise ConfigError("unknown private key curve, must be 256, 384, or 521")
            self.algorithm, digest, curve, self._size = _CURVES[public.curve.name]
            self._digest = getattr(hashes, digest)()
            point = public.public_numbers()
            x, y = (b64(axis.to_bytes(self._size, "big")) for axis in (point.x, point.y))
            shape = {"kty": "EC", "crv": curve, "x": x, "y": y}
        #: The public half, as /openid/v1/jwks shows it.
        self.jwk: Final[dict[str, str]] = {
            "use": "sig",
            "kty": shape.pop("kty"),
            "kid": self.key_id,
            "alg": self.algorithm,
            **shape,
        }

    @property
    def can_sign(self) -> bool:
        return self._private is not None

    def sign(self, data: bytes) -> bytes:
        """Return the signature in the form a token carries."""
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

        key = self._private
        if isinstance(key, rsa.RSAPrivateKey):
            return key.sign(data, padding.PKCS1v15(), self._digest)
        if key is None:
            raise ConfigError("this service-account key can only verify: it has no private half")
        r, s = utils.decode_dss_signature(key.sign(data, ec.ECDSA(self._digest)))
        return r.to_bytes(self._size, "big") + s.to_bytes(self._size, "big")

    def verifies(self, signature: bytes, data: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

        try:
            if isinstance(self._public, rsa.RSAPublicKey):
                self._public.verify(signature, data, padding.PKCS1v15(), self._digest)
                return True
            if len(signature) != 2 * self._size:
                return False
            r = int.from_bytes(signature[: self._size], "big")
            s = int.from_bytes(signature[self._size :], "big")
            self._public.verify(utils.encode_dss_signature(r, s), data, ec.ECDSA(self._digest))
        except InvalidSignature:
            return False
        return True


def _number(value: int) -> str:
    return b64(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def load_key(pem: bytes, source: str = "the service-account key") -> TokenKey:
    """Load a private or a public key from PEM. `source` names the file in the error."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    key: Any
    try:
        if b"PRIVATE KEY-----" in pem:
            key = serialization.load_pem_private_key(pem, None)
        else:
            key = serialization.load_pem_public_key(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ConfigError(f"{source}: not a PEM encoded RSA or EC key: {error}") from error
    if isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
        return TokenKey(key.public_key(), key)
    if isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
        return TokenKey(key)
    raise ConfigError(f"{source}: must be an RSA or EC key, not {type(key).__name__}")
