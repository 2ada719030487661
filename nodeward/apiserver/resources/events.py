"""Events written as events.k8s.io/v1: stored like any event, but held to the stricter rules of that form."""

from __future__ import annotations

from typing import ClassVar

from nodeward.api.core_v1.cluster import Event
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.resources.event_view import core_to_new
from nodeward.apiserver.resources.strategy import Strategy
from nodeward.base.fielderror import FieldError
from nodeward.validation.core.event import EVENT


class ViewedEvents(Strategy):
    """`kind` is that of the stored form, which is the form of the objects given here."""

    creates_on_update: ClassVar[bool] = True
    has_dependents: ClassVar[bool] = False

    def validate_create(self, obj: Event, env: Environment) -> list[FieldError]:
        return EVENT.create(core_to_new(obj), env.context)

    def validate_update(self, new: Event, old: Event, env: Environment) -> list[FieldError]:
        return EVENT.update(core_to_new(new), core_to_new(old), env.context)
