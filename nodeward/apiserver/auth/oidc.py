"""OIDC discovery: how others verify our service-account tokens. Returns documents as JSON bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

import msgspec

from nodeward.apiserver.auth.token_keys import TokenKey
from nodeward.base.errors import ConfigError

CONFIGURATION_PATH: Final = "/.well-known/openid-configuration"
KEYS_PATH: Final = "/openid/v1/jwks"
CONFIGURATION_TYPE: Final = "application/json"
KEYS_TYPE: Final = "application/jwk-set+json"
#: Both may be kept this long by whoever reads them.
CACHE_CONTROL: Final = "public, max-age=3600"


def openid_configuration(issuer: str, keys: Iterable[TokenKey], *, jwks_uri: str) -> bytes:
    """Return the discovery document. `jwks_uri` is usually https://HOST:PORT/openid/v1/jwks."""
    parts = urlsplit(issuer)
    if parts.scheme != "https":
        raise ConfigError(f"issuer URL must use https scheme, got: {issuer}")
    if parts.query:
        raise ConfigError(f"issuer URL may not include a query, got: {issuer}")
    if parts.fragment:
        raise ConfigError(f"issuer URL may not include a fragment, got: {issuer}")
    if urlsplit(jwks_uri).scheme != "https":
        raise ConfigError(f"jwksURI requires https scheme, parsed as: {jwks_uri}")
    return msgspec.json.encode(
        {
            "issuer": issuer,
            "jwks_uri": jwks_uri,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": sorted({key.algorithm for key in keys}),
        }
    )


def json_web_keys(keys: Iterable[TokenKey]) -> bytes:
    """Return the public keys as a JWKS document."""
    return msgspec.json.encode({"keys": [key.jwk for key in keys]})
