"""Answers that are not objects: discovery, OpenAPI, version, health, metrics, OpenID discovery.

Called by `app.py` for paths outside resources. Documents are made when first asked for and kept; only health and
metrics change while the server runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nodeward.api import discovery_docs as discovery
from nodeward.api.codec import encode
from nodeward.api.errors import method_not_allowed
from nodeward.api.openapi import OpenApi
from nodeward.api.openapi.documents import OpenApiDocument
from nodeward.apiserver.auth.oidc import json_web_keys, openid_configuration
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.metrics import ApiServerMetrics
from nodeward.apiserver.request import Call
from nodeward.apiserver.security import TokenSettings
from nodeward.machinery.serving.answer import TEXT, Answer, failure

_NOT_FOUND = Answer(404, b"404 page not found\n", TEXT)
_PROTOBUF_V2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_HEALTH = ("/healthz", "/livez", "/readyz")

#: A health check: its name, and whether it holds.
Check = tuple[str, Callable[[], bool]]


class Documents:
    """The documents of one API server."""

    def __init__(
        self,
        env: Environment,
        metrics: ApiServerMetrics,
        *,
        kubernetes_version: str,
        address: str,
        checks: list[Check],
        readiness_checks: list[Check],
        tokens: TokenSettings | None,
        measure: Callable[[], Awaitable[None]],
    ) -> None:
        self._env = env
        self._metrics = metrics
        self._version = kubernetes_version
        self._address = address
        self._checks = checks
        self._tokens = tokens
        self._measure = measure
        self._openapi = OpenApi(env.scheme, kubernetes_version)
        self.is_shutting_down = False
        self._readiness_checks = [*readiness_checks, ("shutdown", lambda: not self.is_shutting_down)]

    async def serve(self, call: Call) -> Answer:
        """Return the document at a path; 404 if there is none."""
        if "//" in call.path:
            return _NOT_FOUND
        path = call.path.rstrip("/") or "/"
        if call.request.method not in ("GET", "HEAD"):
            return failure(method_not_allowed()) if self._find(call, path) is not _NOT_FOUND else _NOT_FOUND
        if path == "/metrics":
            await self._measure()
        return self._find(call, path)

    def _find(self, call: Call, path: str) -> Answer:
        if path == "/version":
            return Answer(200, encode(discovery.version_info(self._version)))
        for prefix in _HEALTH:
            if path == prefix or path.startswith(f"{prefix}/"):
                return self._health(call, prefix, path[len(prefix) + 1 :])
        if path == "/metrics":
            return Answer(200, self._metrics.text(), "text/plain; version=0.0.4; charset=utf-8")
        if path in ("/api", "/apis"):
            return self._discovery(call, path)
        if path.startswith(("/api/", "/apis/")):
            return self._group(path)
        if path.startswith("/openapi/"):
            return self._open_api(call, path)
        if path == "/":
            return Answer(200, encode({"paths": self._paths()}))
        if self._tokens is not None:
            return self._openid(path, self._tokens)
        return _NOT_FOUND

    # -- discovery

    def _discovery(self, call: Call, path: str) -> Answer:
        accept = call.request.headers.get("accept", "")
        for clause in accept.split(","):
            if "as=APIGroupDiscoveryList" in clause and "protobuf" not in clause:
                for version in ("v2", "v2beta1"):
                    if f"v={version};" in f"{clause.strip()};":
                        make = discovery.aggregated_core if path == "/api" else discovery.aggregated_groups
                        return _document(make(self._env.scheme, version), call)
            elif clause.split(";")[0].strip() in ("application/json", "*/*") and "as=" not in clause:
                break
        if path == "/api":
            return _document(discovery.api_versions(self._address), call)
        return _document(discovery.api_group_list(self._env.scheme), call)

    def _group(self, path: str) -> Answer:
        parts = path.strip("/").split("/")
        found = None
        if parts[0] == "api" and len(parts) == 2:
            found = discovery.api_resource_list(self._env.scheme, "", parts[1])
        elif parts[0] == "apis" and len(parts) == 2:
            found = discovery.api_group(self._env.scheme, parts[1])
        elif parts[0] == "apis" and len(parts) == 3:
            found = discovery.api_resource_list(self._env.scheme, parts[1], parts[2])
        return _NOT_FOUND if found is None else Answer(200, found.body, found.content_type)

    def _paths(self) -> list[str]:
        kinds = [kind for kind in self._env.scheme.kinds if kind.group]
        groups = {f"/apis/{kind.group}": None for kind in kinds}
        apis = [*groups, *{f"/apis/{kind.api_version}": None for kind in kinds}]
        others = ["/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
        return sorted(["/api", "/api/v1", "/apis", *apis, *others])

    # -- OpenAPI

    def _open_api(self, call: Call, path: str) -> Answer:
        if path == "/openapi/v2":
            accept = call.request.headers.get("accept", "")
            wants_protobuf = _PROTOBUF_V2 in accept and not accept.startswith("application/json")
            return _open_api_document(self._openapi.v2_protobuf if wants_protobuf else self._openapi.v2, call)
        if path == "/openapi/v3":
            return _open_api_document(self._openapi.index_v3, call)
        found = self._openapi.v3(path.removeprefix("/openapi/v3/"))
        return _NOT_FOUND if found is None else _open_api_document(found, call)

    # -- health

    def _health(self, call: Call, prefix: str, name: str) -> Answer:
        checks = self._checks + self._readiness_checks * (prefix == "/readyz")
        if name:
            checks = [check for check in checks if check[0] == name]
            if not checks:
                return _NOT_FOUND
        excluded = set(call.query.all("exclude"))
        lines: list[str] = []
        is_well = True
        for check, holds in checks:
            if check in excluded:
                lines.append(f"[+]{check} excluded: ok")
            elif holds():
                lines.append(f"[+]{check} ok")
            else:
                is_well = False
                lines.append(f"[-]{check} failed: reason withheld")
        word = prefix.strip("/")
        if not is_well:
            return Answer(500, "\n".join((*lines, f"{word} check failed", "")).encode(), TEXT)
        if call.query.flag("verbose") and not name:
            return Answer(200, "\n".join((*lines, f"{word} check passed", "")).encode(), TEXT)
        return Answer(200, b"ok", TEXT)

    # -- OpenID

    def _openid(self, path: str, tokens: TokenSettings) -> Answer:
        if path == "/.well-known/openid-configuration":
            uri = f"https://{self._address}/openid/v1/jwks"
            return Answer(200, openid_configuration(tokens.issuer, tokens.keys, jwks_uri=uri))
        if path == "/openid/v1/jwks":
            return Answer(200, json_web_keys(tokens.keys), "application/jwk-set+json")
        return _NOT_FOUND


def _document(document: discovery.DiscoveryDocument, call: Call) -> Answer:
    headers = {"ETag": document.etag, "Vary": "Accept"} if document.etag else {}
    if document.etag and call.request.headers.get("if-none-match") == document.etag:
        return Answer(304, b"", document.content_type, headers)
    return Answer(200, document.body, document.content_type, headers)


def _open_api_document(document: OpenApiDocument, call: Call) -> Answer:
    headers = {"ETag": document.etag, "Vary": "Accept"}
    if call.request.headers.get("if-none-match") == document.etag:
        return Answer(304, b"", document.content_type, headers)
    return Answer(200, document.body, document.content_type, headers)
