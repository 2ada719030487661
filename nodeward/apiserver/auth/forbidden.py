"""The 403 of authorization, in the words kubectl prints."""

from __future__ import annotations

from nodeward.api import errors
from nodeward.api.errors import ApiError
from nodeward.apiserver.auth.user import Attributes
from nodeward.base.fielderror import quote

#: An error must not look like HTML to a browser.
_HARMLESS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def forbidden_message(attributes: Attributes) -> str:
    """Return `User "jane" cannot list resource "pods" in API group "" in the namespace "default"`."""
    who = quote(attributes.user.name)
    if not attributes.is_resource_request:
        return f"User {who} cannot {attributes.verb} path {quote(attributes.path)}"
    resource = attributes.resource
    if attributes.subresource:
        resource = f"{resource}/{attributes.subresource}"
    what = f"{attributes.verb} resource {quote(resource)} in API group {quote(attributes.group)}"
    where = (
        f"in the namespace {quote(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    )
    return f"User {who} cannot {what} {where}"


def forbidden(attributes: Attributes, reason: str = "") -> ApiError:
    """Make the error for a request that no authorizer allowed."""
    message = forbidden_message(attributes).translate(_HARMLESS)
    if reason:
        message = f"{message}: {reason}"
    return errors.forbidden(attributes.group, attributes.resource, attributes.name, message)
