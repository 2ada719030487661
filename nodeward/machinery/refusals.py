"""Error answers: HTTP answers that are not 2xx, as `ApiError`, and whether to retry.

A Kubernetes server explains itself with a `Status`; something in front of it (a proxy, a load balancer) answers with
its own page, and then the code alone must do. The texts for those are the ones kubectl users know.

Called by `client`; calls `transport`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from nodeward.api.errors import ApiError
from nodeward.api.meta import Status, StatusCause, StatusDetails
from nodeward.base.fielderror import quote
from nodeward.machinery.transport import Request, Response

_STATUS: Final = msgspec.json.Decoder(Status)
#: Of a page that is not a Status, this much is worth repeating.
_MAX_TEXT: Final = 2048

#: code: (reason, message); an empty message means: repeat what the server said.
_PLAIN: Final = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    403: ("Forbidden", ""),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    406: (
        "NotAcceptable",
        "the server was unable to respond with a content type that the client supports",
    ),
    409: ("Conflict", "the server reported a conflict"),
    410: ("Expired", ""),
    415: ("UnsupportedMediaType", ""),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: (
        "TooManyRequests",
        "the server has received too many requests and has asked us to try again later",
    ),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be processing the request",
    ),
}


def refusal(request: Request, response: Response) -> ApiError:
    """Return the error an answer that is not 2xx stands for."""
    body = response.body or b""
    retry_after = retry_after_seconds(response) or 0
    if body[:1] == b"{":
        try:
            status = _STATUS.decode(body)
        except msgspec.DecodeError:
            status = Status()
        if status.kind == "Status" and status.status != "Success":
            status.code = status.code or response.status
            return ApiError(status)
    text = body[:_MAX_TEXT].decode("utf-8", "replace").strip() or "unknown"
    reason, message = _PLAIN.get(response.status, ("", ""))
    if response.status == 409 and request.method == "POST":
        reason = "AlreadyExists"
    elif not reason and response.status >= 500:
        reason = "InternalError"
        message = f"an error on the server ({quote(text)}) has prevented the request from succeeding"
    elif not reason:
        message = (
            f"the server responded with the status code {response.status} but did not return more information"
        )
    return ApiError(
        Status(
            kind="Status",
            api_version="v1",
            status="Failure",
            message=f"{message or text} ({request.method.lower()} {request.path})",
            reason=reason,
            details=StatusDetails(
                causes=[StatusCause(reason="UnexpectedServerResponse", message=text)],
                retry_after_seconds=retry_after,
            ),
            code=response.status,
        )
    )


def retry_after_seconds(response: Response) -> int | None:
    """Return what the server asked for in Retry-After; None if it did not, or not in seconds."""
    text = response.headers.get("retry-after", "")
    return int(text) if text.isascii() and text.isdecimal() else None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Try again when the server was too busy to look at a request and said when to come back."""

    max_retries: int = 10
    #: Longer waits are left to the caller.
    max_wait_seconds: int = 60

    def wait_seconds(self, response: Response, retries: int) -> int | None:
        """Return how long to wait before the next try; None: this answer stands."""
        if retries >= self.max_retries or (response.status != 429 and response.status < 500):
            return None
        wait = retry_after_seconds(response)
        return wait if wait is not None and wait <= self.max_wait_seconds else None
