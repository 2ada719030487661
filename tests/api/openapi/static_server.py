"""A server that knows discovery, OpenAPI and perhaps one object, for `kubectl` to talk to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import urlsplit

import msgspec

from nodeward.api.discovery_docs import (
    DiscoveryDocument,
    aggregated_core,
    aggregated_groups,
    api_group_list,
    api_resource_list,
    api_versions,
    version_info,
)
from nodeward.api.openapi import OpenApi, OpenApiDocument
from nodeward.api.scheme import SCHEME


@dataclass
class Desk:
    """What a running server knows and has seen."""

    has_v3: bool = True
    #: path -> object
    objects: dict[str, Any] = field(default_factory=dict)
    #: (path, Accept header) of every read
    read: list[tuple[str, str]] = field(default_factory=list)
    #: (content type, patch) of every change
    patches: list[tuple[str, Any]] = field(default_factory=list)
    #: (path, content type, body) of every creation
    created: list[tuple[str, str, bytes]] = field(default_factory=list)
    url: str = ""


class _Handler(BaseHTTPRequestHandler):
    open_api: ClassVar[OpenApi] = OpenApi(SCHEME, "1.37")
    desk: ClassVar[Desk]

    def do_GET(self) -> None:
        path, accept = urlsplit(self.path).path, self.headers.get("Accept", "")
        self.desk.read.append((path, accept))
        document = self._find(path, accept)
        if document is None:
            self.send_error(404)
        else:
            self._answer(document)

    def do_PATCH(self) -> None:
        """The patch is noted down and the object stays as it is."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.desk.patches.append((self.headers["Content-Type"], json.loads(body)))
        self._answer(DiscoveryDocument(msgspec.json.encode(self.desk.objects[urlsplit(self.path).path])))

    def do_POST(self) -> None:
        """What should be created is noted down, and turned away."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.desk.created.append((urlsplit(self.path).path, self.headers["Content-Type"], body))
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": "noted down",
            "code": 403,
        }
        self._answer(DiscoveryDocument(msgspec.json.encode(status)), 403)

    def _answer(self, document: DiscoveryDocument | OpenApiDocument, code: int = 200) -> None:
        self.send_response(code)
        self.send_header("Content-Type", document.content_type)
        self.send_header("Content-Length", str(len(document.body)))
        self.end_headers()
        self.wfile.write(document.body)

    def _find(self, path: str, accept: str) -> DiscoveryDocument | OpenApiDocument | None:
        if path in self.desk.objects:
            return DiscoveryDocument(msgspec.json.encode(self.desk.objects[path]))
        match path.strip("/").split("/"):
            case ["version"]:
                return DiscoveryDocument(msgspec.json.encode(version_info("1.37")))
            case ["api"]:
                return aggregated_core(SCHEME) if "apidiscovery" in accept else api_versions("x:1")
            case ["apis"]:
                return aggregated_groups(SCHEME) if "apidiscovery" in accept else api_group_list(SCHEME)
            case ["api", version]:
                return api_resource_list(SCHEME, "", version)
            case ["apis", group, version]:
                return api_resource_list(SCHEME, group, version)
            case ["openapi", "v3"] if self.desk.has_v3:
                return self.open_api.index_v3
            case ["openapi", "v3", *rest] if self.desk.has_v3:
                return self.open_api.v3("/".join(rest))
            case ["openapi", "v2"]:
                return self.open_api.v2_protobuf if "protobuf" in accept else self.open_api.v2
            case _:
                return None

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Quiet."""


@contextmanager
def serving(desk: Desk) -> Iterator[None]:
    """A server runs at `desk.url`."""
    handler = type("Handler", (_Handler,), {"desk": desk})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    desk.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
