"""Names and their members in the evaluation that counts costs.

Used by `tracking.py`. `a.b[c].d` is one attribute with three qualifiers: it costs one for the name and one for every
qualifier that was applied. A tracker keeps the cost and the stack of evaluated values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeward.cel.qualify import check_key, member_if_present, plain_member
from nodeward.cel.values import (
    COST_EXCEEDED,
    NONE,
    CostLimitExceeded,
    EvaluationAborted,
    EvaluationError,
    OptionalValue,
    Value,
    no_overload,
)


class Tracker:
    """The cost so far, and the values of evaluated nodes by number."""

    __slots__ = ("_latest", "_limit", "_stack", "cost")

    def __init__(self, limit: int) -> None:
        self.cost = 0
        self._limit = limit
        #: Number, value, and where the same number stood before (-1: nowhere).
        self._stack: list[tuple[int, Value, int]] = []
        self._latest: dict[int, int] = {}

    def push(self, number: int, value: Value) -> Value:
        latest = self._latest
        self._stack.append((number, value, latest.get(number, -1)))
        latest[number] = len(self._stack) - 1
        if self.cost > self._limit:
            raise CostLimitExceeded(COST_EXCEEDED)
        return value

    def require(self, cost: int) -> None:
        """Stop before work that would cost too much."""
        if self.cost + cost > self._limit:
            raise CostLimitExceeded(COST_EXCEEDED)

    def _cut(self, at: int) -> Value:
        """Remove this place and all that came after it; return its value."""
        stack, latest = self._stack, self._latest
        value: Value = None
        while len(stack) > at:
            number, value, before = stack.pop()
            latest[number] = before
        return value

    def drop(self, *numbers: int) -> None:
        """Remove each number's latest value and all that came after it."""
        for number in numbers:
            if (at := self._latest.get(number, -1)) >= 0:
                self._cut(at)

    def take(self, numbers: list[int]) -> list[Value] | None:
        """Remove and return the values of these nodes; None when one is missing."""
        found: list[Value] = []
        for number in reversed(numbers):
            at = self._latest.get(number, -1)
            if at < 0:
                return None
            found.append(self._cut(at))
        return found[::-1]


class Scope:
    """The variables an evaluation sees."""

    def __init__(self, tracker: Tracker, variables: Mapping[str, Value]) -> None:
        self.tracker = tracker
        self._variables = variables

    def resolve(self, name: str) -> Value:
        return self._variables[name]

    def outermost(self) -> Scope:
        return self


class Step(ABC):
    """A node that can be evaluated. An error is returned, not raised."""

    @property
    @abstractmethod
    def id(self) -> int: ...

    @abstractmethod
    def exec(self, scope: Scope) -> Value: ...


class TrackedConstant(Step):
    """A value that is known; it costs nothing."""

    def __init__(self, number: int, value: Value) -> None:
        self._number = number
        self.value = value

    @property
    def id(self) -> int:
        return self._number

    def exec(self, scope: Scope) -> Value:
        return scope.tracker.push(self._number, self.value)


@dataclass(frozen=True, slots=True)
class ConstantQualifier:
    """`.name`, `["name"]`, `[1]`, `.?name`, or the last part of `has(...)`."""

    id: int
    key: Value
    is_optional: bool = False
    is_test: bool = False

    def apply(self, scope: Scope, value: Value) -> Value:
        try:
            found = member_if_present(value, self.key)[1] if self.is_test else plain_member(value, self.key)
        except EvaluationError as error:
            self._observe(scope, error)
            raise
        self._observe(scope, found)
        return found

    def apply_if_present(self, scope: Scope, value: Value) -> tuple[Value, bool]:
        found, is_there = member_if_present(value, self.key)
        if is_there:
            self._observe(scope, found)
        return found, is_there

    def _observe(self, scope: Scope, value: Value) -> None:
        scope.tracker.cost += 1
        scope.tracker.push(self.id, value)


@dataclass(frozen=True, slots=True)
class AttributeQualifier:
    """`[name.field]`: the key is an attribute, whose name costs nothing."""

    id: int
    attribute: Attribute
    is_optional: bool

    def apply(self, scope: Scope, value: Value) -> Value:
        try:
            found = plain_member(value, check_key(self.attribute.resolve(scope)))
        except EvaluationError as error:
            self._observe(scope, error)
            raise
        self._observe(scope, found)
        return found

    def apply_if_present(self, scope: Scope, value: Value) -> tuple[Value, bool]:
        found, is_there = member_if_present(value, check_key(self.attribute.resolve(scope)))
        if is_there:
            self._observe(scope, found)
        return found, is_there

    def _observe(self, scope: Scope, value: Value) -> None:
        scope.tracker.cost += 1
        scope.tracker.push(self.id, value)


@dataclass(frozen=True, slots=True)
class RelativeQualifier:
    """`[1 + 2]`: the key is computed."""

    attribute: Attribute
    is_optional: bool

    @property
    def id(self) -> int:
        return self.attribute.id

    def apply(self, scope: Scope, value: Value) -> Value:
        try:
            found = plain_member(value, check_key(self.attribute.resolve(scope)))
        except EvaluationError as error:
            self._observe(scope, error)
            raise
        self._observe(scope, found)
        return found

    def apply_if_present(self, scope: Scope, value: Value) -> tuple[Value, bool]:
        found, is_there = member_if_present(value, check_key(self.attribute.resolve(scope)))
        if is_there:
            self._observe(scope, found)
        return found, is_there

    def _observe(self, scope: Scope, value: Value) -> None:
        scope.tracker.drop(self.id)
        scope.tracker.cost += 1
        scope.tracker.push(self.id, value)


@dataclass(slots=True)
class Conditional:
    """`condition ? chosen : otherwise` as the start of an attribute."""

    condition: Step
    chosen: Attribute
    otherwise: Attribute


@dataclass(slots=True)
class Attribute:
    """A variable, an evaluated operand or a choice, and the members asked of it."""

    number: int
    name: str | None = None
    operand: Step | None = None
    choice: Conditional | None = None
    qualifiers: list[ConstantQualifier | AttributeQualifier | RelativeQualifier] = field(default_factory=list)

    @property
    def id(self) -> int:
        if self.choice is not None:
            chosen = self.choice.chosen.id
            return chosen if chosen == self.choice.otherwise.id else self.number
        return self.qualifiers[-1].id if self.qualifiers else self.number

    def add(self, qualifier: ConstantQualifier | AttributeQualifier | RelativeQualifier) -> None:
        if self.choice is not None:
            self.choice.chosen.add(qualifier)
            self.choice.otherwise.add(qualifier)
        else:
            self.qualifiers.append(qualifier)

    def resolve(self, scope: Scope) -> Value:
        """Return the value; raises EvaluationError."""
        if self.choice is not None:
            value = self.choice.condition.exec(scope)
            if value is True:
                return self.choice.chosen.resolve(scope)
            if value is False:
                return self.choice.otherwise.resolve(scope)
            raise value if isinstance(value, EvaluationError) else no_overload()
        if self.operand is not None:
            value = self.operand.exec(scope)
        else:
            name = self.name or ""
            value = scope.outermost().resolve(name[1:]) if name.startswith(".") else scope.resolve(name)
        if isinstance(value, EvaluationError):
            raise value
        return self._apply(scope, value)

    def _apply(self, scope: Scope, value: Value) -> Value:
        is_optional = isinstance(value, OptionalValue) and bool(self.qualifiers)
        if is_optional:
            if not value.has_value:
                return value
            value = value.value
        for qualifier in self.qualifiers:
            is_optional = is_optional or qualifier.is_optional
            if not is_optional:
                value = qualifier.apply(scope, value)
                continue
            value, is_there = qualifier.apply_if_present(scope, value)
            if not is_there:
                return NONE
        return OptionalValue(value) if is_optional else value


class AttributeNode(Step):
    """An attribute as a node of its own; `test_id` is the number of `has(...)`."""

    def __init__(self, attribute: Attribute, test_id: int | None = None) -> None:
        self.attribute = attribute
        self.test_id = test_id

    @property
    def id(self) -> int:
        return self.attribute.id if self.test_id is None else self.test_id

    def exec(self, scope: Scope) -> Value:
        tracker = scope.tracker
        try:
            value = self.attribute.resolve(scope)
            if self.test_id is not None and isinstance(value, OptionalValue):
                value = value.has_value
        except EvaluationAborted:
            raise
        except EvaluationError as error:
            value = error
        choice = self.attribute.choice
        if choice is not None:
            tracker.drop(choice.otherwise.id, choice.chosen.id, choice.condition.id)
        else:
            tracker.drop(self.attribute.id)
            tracker.cost += 1
        if self.test_id is not None:
            tracker.cost -= 1
        return tracker.push(self.id, value)
