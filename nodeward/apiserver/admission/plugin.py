"""What an admission plugin is: `admit` may change the new object, `validate` may only refuse.

A plugin raises `ApiError` (403 as a rule) to refuse. It sees every write, subresources included, and says itself
whether it cares. Plugins are synchronous and read only the caches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from nodeward.api.errors import ApiError, forbidden
from nodeward.api.scheme import Kind
from nodeward.apiserver.auth.user import User
from nodeward.apiserver.environment import Environment


@dataclass(slots=True)
class Write:
    """One write on its way to the store."""

    operation: str  # CREATE, UPDATE, DELETE
    kind: Kind
    namespace: str
    name: str
    subresource: str
    user: User
    #: the object that would be stored; None for a delete
    new: Any
    #: the object that is stored; None for a create
    old: Any
    is_dry_run: bool = False
    #: what was sent to a subresource that is not the object itself (a Binding, an Eviction)
    sent: Any = None

    def refuse(self, why: str) -> ApiError:
        return forbidden(self.kind.group, self.kind.resource, self.name, why)

    def is_about(self, resource: str, *subresources: str, group: str = "") -> bool:
        """Whether this writes `resource` itself, or one of `subresources` below it ("" is the resource itself)."""
        return (
            self.kind.resource == resource
            and self.kind.group == group
            and self.subresource in (subresources or ("",))
        )


class Plugin:
    """One rule of admission. The name is what `--enable-admission-plugins` calls it."""

    name: ClassVar[str] = ""

    def __init__(self, env: Environment) -> None:
        self.env = env

    def is_early(self, write: Write) -> bool:
        """Whether what the write lacks is about to be made by somebody else, so that waiting a moment helps."""
        return False

    def admit(self, write: Write) -> None:
        """Fill in or refuse."""

    def validate(self, write: Write) -> None:
        """Refuse."""
