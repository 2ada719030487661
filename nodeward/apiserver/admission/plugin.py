"""The interface of admission plugins: `admit` may change the new object, `validate` may only refuse.

Called by the admission chain. A plugin raises `ApiError` (403 as a rule) to refuse. It sees every write, subresources
included, and decides itself whether it concerns it.

What must stay true: plugins are synchronous and read only the watch caches.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from nodeward.api.errors import ApiError, forbidden
from nodeward.api.scheme import Kind
from nodeward.apiserver.auth.user import User
from nodeward.apiserver.environment import Environment


@dataclass(slots=True)
class Write:
    """One write on its way to the store (upstream: admission attributes)."""

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
    #: texts for the client, from plugins that let the write pass
    warnings: list[str] = field(default_factory=list)

    def refuse(self, why: str) -> ApiError:
        return forbidden(self.kind.group, self.kind.resource, self.name, why)

    def is_about(self, resource: str, *subresources: str, group: str = "") -> bool:
        """Tell whether this writes `resource`, or one of `subresources` below it ("" is the resource itself)."""
        return (
            self.kind.resource == resource
            and self.kind.group == group
            and self.subresource in (subresources or ("",))
        )


class AdmissionPlugin:
    """One admission plugin. The name is the one in `--enable-admission-plugins`."""

    name: ClassVar[str] = ""

    def __init__(self, env: Environment) -> None:
        self.env = env

    def should_wait(self, write: Write) -> bool:
        """Tell whether a controller is about to create what the write lacks, so that waiting helps."""
        return False

    def admit(self, write: Write) -> None:
        """Change the new object, or refuse the write."""

    def validate(self, write: Write) -> None:
        """Refuse the write if it breaks the plugin's rule."""
