"""The pages every component has beside its work: /healthz, /livez, /readyz and /metrics.

Checks are functions by name; a page is `ok` while all of them hold, else 500 with the list, as Kubernetes' components
answer. `?verbose` shows the list in any case.

Called by `cli.pages`, `cli.report_readiness` and `kubelet.server.application`; calls `answer` and `connection`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import parse_qs

from nodeward.machinery.metrics import Metrics
from nodeward.machinery.serving.answer import TEXT, Answer
from nodeward.machinery.serving.connection import Peer
from nodeward.machinery.transport import Request

_HEALTH: Final = ("/healthz", "/livez", "/readyz")
_PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"


class HealthPages:
    """The application of a component that serves nothing else. `checks` hold for as long as it is healthy."""

    def __init__(self, metrics: Metrics, checks: Mapping[str, Callable[[], bool]]) -> None:
        self._metrics = metrics
        self._checks = {"ping": lambda: True, **checks}

    async def handle(self, request: Request, peer: Peer) -> Answer:
        return self.answer(request) or Answer(404, b"404 page not found\n", TEXT)

    def answer(self, request: Request) -> Answer | None:
        """Return the page asked for; None if it is none of these."""
        path = request.path
        if path == "/metrics":
            return Answer(200, self._metrics.text(), _PROMETHEUS)
        for page in _HEALTH:
            if path == page:
                return self._health(page[1:], "verbose" in parse_qs(request.query, keep_blank_values=True))
            if path.startswith(f"{page}/"):
                check = self._checks.get(path[len(page) + 1 :])
                if check is not None:
                    return Answer(200, b"ok", TEXT) if check() else Answer(500, b"not ok\n", TEXT)
        return None

    def _health(self, page: str, is_verbose: bool) -> Answer:
        found = {name: check() for name, check in self._checks.items()}
        lines = "".join(
            f"[+]{name} ok\n" if is_ok else f"[-]{name} failed: reason withheld\n"
            for name, is_ok in found.items()
        )
        if not all(found.values()):
            return Answer(500, f"{lines}{page} check failed\n".encode(), TEXT)
        return Answer(200, f"{lines}{page} check passed\n".encode() if is_verbose else b"ok", TEXT)
