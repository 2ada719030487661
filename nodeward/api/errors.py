"""API errors: what was wrong with a request, as the `Status` Kubernetes answers with.

Handlers raise `ApiError`; the HTTP server turns it into an answer, the client raises it again on the other side. The
functions below make the usual ones; the texts are those kubectl users know.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from nodeward.api.go_form import go_form
from nodeward.api.meta import Status, StatusCause, StatusDetails
from nodeward.base.errors import NodewardError
from nodeward.base.fielderror import FieldError, aggregate, quote

#: Most characters of one message about an object's fields; a larger one is cut.
LONGEST_MESSAGE: Final = 200_000


class ApiError(NodewardError):
    """A request was refused; `status` says why and `status.code` is the HTTP code."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status

    @property
    def code(self) -> int:
        return self.status.code

    @property
    def reason(self) -> str:
        return self.status.reason


def _error(
    code: int, reason: str, message: str, details: StatusDetails | None = None, *, retry_after: int = 0
) -> ApiError:
    if retry_after:
        details = details or StatusDetails()
        details.retry_after_seconds = retry_after
    return ApiError(
        Status(
            kind="Status",
            api_version="v1",
            status="Failure",
            message=message,
            reason=reason,
            details=details,
            code=code,
        )
    )


def qualified(group: str, name: str) -> str:
    """Return a resource or kind with its group: `pods`, or `deployments.apps`."""
    return f"{name}.{group}" if group else name


def _about(group: str, kind: str, name: str) -> StatusDetails:
    return StatusDetails(name=name, group=group, kind=kind)


def not_found(group: str, resource: str, name: str) -> ApiError:
    message = f"{qualified(group, resource)} {quote(name)} not found"
    return _error(404, "NotFound", message, _about(group, resource, name))


def already_exists(group: str, resource: str, name: str) -> ApiError:
    message = f"{qualified(group, resource)} {quote(name)} already exists"
    return _error(409, "AlreadyExists", message, _about(group, resource, name))


def generate_name_conflict(group: str, resource: str, name: str) -> ApiError:
    message = (
        f"{qualified(group, resource)} {quote(name)} already exists, "
        "the server was not able to generate a unique name for the object"
    )
    return _error(409, "AlreadyExists", message, _about(group, resource, name), retry_after=1)


def conflict(group: str, resource: str, name: str, why: str) -> ApiError:
    message = f"Operation cannot be fulfilled on {qualified(group, resource)} {quote(name)}: {why}"
    return _error(409, "Conflict", message, _about(group, resource, name))


#: The reason given when an object changed between read and write.
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def apply_conflict(causes: Sequence[StatusCause], message: str) -> ApiError:
    return _error(409, "Conflict", message, StatusDetails(causes=list(causes)))


def cut(text: str) -> str:
    """Cut a message that shows more of a large object than anybody reads."""
    if len(text) <= LONGEST_MESSAGE:
        return text
    return f"{text[:LONGEST_MESSAGE]}... ({len(text) - LONGEST_MESSAGE} more characters)"


def invalid(group: str, kind: str, name: str, errors: Iterable[FieldError]) -> ApiError:
    listed = [replace(error, value=go_form(error.value)) for error in errors]
    causes = [StatusCause(reason=e.cause.reason, message=cut(e.body), field=e.field) for e in listed]
    message = f"{qualified(group, kind)} {quote(name)} is invalid"
    if listed:
        message += cut(f": {aggregate(listed)}")
    details = _about(group, kind, name)
    details.causes = causes
    return _error(422, "Invalid", message, details)


def bad_request(message: str) -> ApiError:
    return _error(400, "BadRequest", message)


def unauthorized() -> ApiError:
    return _error(401, "Unauthorized", "Unauthorized")


def forbidden(group: str, resource: str, name: str, why: str) -> ApiError:
    what = qualified(group, resource)
    if not what:
        message = f"forbidden: {why}"
    elif name:
        message = f"{what} {quote(name)} is forbidden: {why}"
    else:
        message = f"{what} is forbidden: {why}"
    return _error(403, "Forbidden", message, _about(group, resource, name))


def method_not_supported(group: str, resource: str, action: str) -> ApiError:
    message = f"{action} is not supported on resources of kind {quote(qualified(group, resource))}"
    return _error(405, "MethodNotAllowed", message, _about(group, resource, ""))


def method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return _error(405, "MethodNotAllowed", message, StatusDetails())


def page_not_found() -> ApiError:
    """Make the error for a resource a served group does not have."""
    return _error(404, "NotFound", "the server could not find the requested resource", StatusDetails())


def not_acceptable(message: str) -> ApiError:
    return _error(406, "NotAcceptable", message)


def unsupported_media_type(message: str) -> ApiError:
    return _error(415, "UnsupportedMediaType", message, StatusDetails())


def unprocessable(
    message: str = "the server rejected our request due to an error in our request",
) -> ApiError:
    return _error(422, "Invalid", message, StatusDetails())


def expired(message: str) -> ApiError:
    return _error(410, "Expired", message)


def gone(message: str) -> ApiError:
    return _error(410, "Gone", message)


def request_entity_too_large(message: str) -> ApiError:
    return _error(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


def too_many_requests(message: str, retry_after: int = 0) -> ApiError:
    return _error(429, "TooManyRequests", message, StatusDetails(), retry_after=retry_after)


def timeout(message: str, retry_after: int = 0) -> ApiError:
    return _error(504, "Timeout", f"Timeout: {message}", StatusDetails(), retry_after=retry_after)


def too_large_resource_version(requested: int, current: int) -> ApiError:
    """Make the error for a read at a revision that was not reached in time."""
    error = timeout(f"Too large resource version: {requested}, current: {current}", 1)
    if error.status.details is not None:
        error.status.details.causes = [
            StatusCause(reason="ResourceVersionTooLarge", message="Too large resource version")
        ]
    return error


def internal_error(message: str) -> ApiError:
    details = StatusDetails(causes=[StatusCause(message=message)])
    return _error(500, "InternalError", f"Internal error occurred: {message}", details)


def unavailable(message: str, retry_after: int = 0) -> ApiError:
    return _error(503, "ServiceUnavailable", message, retry_after=retry_after)
