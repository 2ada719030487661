"""Evaluation that counts what it costs, and stops at a limit.

Called by `program.py` when the estimate alone does not show that an evaluation stays within its limit, or when somebody
wants to know the cost. Costs are those of cel-go: it keeps the values of evaluated nodes on a stack and charges a call
only when it finds all of its arguments there, so a call whose first argument failed may cost nothing. Errors are
values here, because what follows an error still costs.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodeward.cel.call_costs import CHARGED_AHEAD, cost_of_call
from nodeward.cel.checker import CheckedTree
from nodeward.cel.folds import iterate, iterate_pairs
from nodeward.cel.functions import CallPlan, check_constant_key, is_member, plan_call
from nodeward.cel.macros import UNUSED
from nodeward.cel.planner import ZEROS, optional_element, optional_entry
from nodeward.cel.ranges import LIST_COST, MAP_COST, STRUCT_COST
from nodeward.cel.syntax_tree import (
    Comprehension,
    FunctionCall,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
)
from nodeward.cel.tracked_attributes import (
    Attribute,
    AttributeNode,
    AttributeQualifier,
    Conditional,
    ConstantQualifier,
    RelativeQualifier,
    Scope,
    Step,
    TrackedConstant,
    Tracker,
)
from nodeward.cel.values import (
    CelMap,
    EvaluationAborted,
    EvaluationError,
    GrowingList,
    GrowingMap,
    OptionalValue,
    Value,
    compare_equal,
    no_overload,
)


class TrackedProgram:
    """A plan of one tree that counts."""

    def __init__(self, checked: CheckedTree) -> None:
        self._root = _TrackedPlanner(checked).plan(checked.tree.root)

    def evaluate(self, bindings: Mapping[str, Value], cost_limit: int) -> tuple[Value, int]:
        """Return the value and its cost; an error has it as `cost`."""
        tracker = Tracker(cost_limit)
        try:
            value = self._root.exec(Scope(tracker, bindings))
        except EvaluationAborted as error:
            error.cost = tracker.cost
            raise
        if isinstance(value, EvaluationError):
            value.cost = tracker.cost
            raise value
        return value, tracker.cost


class _TrackedPlanner:
    def __init__(self, checked: CheckedTree) -> None:
        self._checked = checked

    def plan(self, node: Node) -> Step:
        match node:
            case Literal():
                return TrackedConstant(node.id, node.value)
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case FunctionCall():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case StructLiteral():
                return _Wrapper(node.id, [self.plan(each.value) for each in node.fields], node, self._checked)
            case Comprehension():
                return _Fold(node, *(self.plan(part) for part in _parts(node)))

    def _ident(self, node: Ident) -> Step:
        if (named := self._checked.type_values.get(node.id)) is not None:
            return TrackedConstant(node.id, named)
        return AttributeNode(Attribute(node.id, name=node.name))

    def _select(self, node: Select) -> Step:
        target = _as_attribute(self.plan(node.operand))
        target.attribute.add(ConstantQualifier(node.id, node.name, is_test=node.is_test))
        return AttributeNode(target.attribute, test_id=node.id) if node.is_test else target

    def _call(self, node: FunctionCall) -> Step:
        operands = [*([] if node.target is None else [node.target]), *node.arguments]
        arguments = [self.plan(each) for each in operands]
        match node.function:
            case "_&&_":
                return _Logic(node.id, arguments, decisive=False)
            case "_||_":
                return _Logic(node.id, arguments, decisive=True)
            case "_?_:_":
                branches = [_branch(each) for each in arguments[1:]]
                return AttributeNode(Attribute(node.id, choice=Conditional(arguments[0], *branches)))
            case "_==_" | "_!=_":
                return _Equality(node.id, arguments, is_negated=node.function == "_!=_")
            case "_[_]" | "_[?_]" | "_?._":
                return self._index(node, arguments)
            case "or" | "orValue":
                return _OptionalOr(node.id, arguments, is_value=node.function == "orValue")
        constants = [each if isinstance(each, TrackedConstant) else None for each in arguments]
        plan = plan_call(self._checked, node, constants)  # type: ignore[arg-type]
        if plan.constant is not None:
            return TrackedConstant(node.id, plan.constant[0])
        if plan.members is not None:
            return _Membership(node.id, arguments[0], plan.members)
        return _CallStep(node.id, plan, arguments)

    def _index(self, node: FunctionCall, arguments: list[Step]) -> Step:
        target, key = _as_attribute(arguments[0]), arguments[1]
        is_optional = node.function != "_[_]"
        if isinstance(key, TrackedConstant):
            check_constant_key(key)
            target.attribute.add(ConstantQualifier(node.id, key.value, is_optional=is_optional))
        elif isinstance(key, AttributeNode):
            target.attribute.add(AttributeQualifier(node.id, key.attribute, is_optional))
        else:
            target.attribute.add(RelativeQualifier(Attribute(node.id, operand=key), is_optional))
        return target

    def _list(self, node: ListLiteral) -> Step:
        elements = [self.plan(each) for each in node.elements]
        if all(isinstance(each, TrackedConstant) for each in elements):
            made = _ListStep(node.id, elements, node.optional).make(Scope(Tracker(2**64), {}))
            return TrackedConstant(node.id, made)
        return _ListStep(node.id, elements, node.optional)

    def _map(self, node: MapLiteral) -> Step:
        entries = [(self.plan(each.key), self.plan(each.value), each.is_optional) for each in node.entries]
        step = _MapStep(node.id, entries)
        if all(isinstance(part, TrackedConstant) for key, value, _ in entries for part in (key, value)):
            return TrackedConstant(node.id, step.make(Scope(Tracker(2**64), {})))
        return step


def _parts(node: Comprehension) -> tuple[Node, ...]:
    return node.items, node.initial, node.condition, node.step, node.result


def _as_attribute(step: Step) -> AttributeNode:
    if isinstance(step, AttributeNode) and step.test_id is None:
        return step
    return AttributeNode(Attribute(step.id, operand=step))


def _branch(step: Step) -> Attribute:
    return step.attribute if isinstance(step, AttributeNode) else Attribute(step.id, operand=step)


class _CallStep(Step):
    """A call of a function that needs all of its arguments."""

    def __init__(self, number: int, plan: CallPlan, arguments: list[Step]) -> None:
        self._number = number
        self._plan = plan
        self._arguments = arguments

    @property
    def id(self) -> int:
        return self._number

    def exec(self, scope: Scope) -> Value:
        value = self._run(scope)
        found = scope.tracker.take([each.id for each in self._arguments])
        if found is not None:
            scope.tracker.cost += cost_of_call(self._plan.name, self._plan.overload, found, value)
        return scope.tracker.push(self.id, value)

    def _run(self, scope: Scope) -> Value:
        plan = self._plan
        values: list[Value] = []
        for argument in self._arguments:
            values.append(argument.exec(scope))
            if plan.is_variadic and isinstance(values[-1], EvaluationError):
                return values[-1]
        if plan.name == "@not_strictly_false":
            return values[0] if type(values[0]) is bool else True
        failed = next((each for each in values if isinstance(each, EvaluationError)), None)
        if failed is not None:
            return failed
        try:
            if plan.operands and type(values[0]) not in plan.operands:
                raise plan.refusal(values[0])
            if plan.overload in CHARGED_AHEAD:
                scope.tracker.require(cost_of_call(plan.name, plan.overload, values, None))
            return plan.run(*values)
        except EvaluationAborted:
            raise
        except EvaluationError as error:
            return error


class _Equality(Step):
    def __init__(self, number: int, arguments: list[Step], *, is_negated: bool) -> None:
        self._number = number
        self._left, self._right = arguments
        self._is_negated = is_negated

    @property
    def id(self) -> int:
        return self._number

    def exec(self, scope: Scope) -> Value:
        left, right = self._left.exec(scope), self._right.exec(scope)
        if isinstance(left, EvaluationError):
            value: Value = left
        elif isinstance(right, EvaluationError):
            value = right
        else:
            value = compare_equal(left, right)
            if self._is_negated:
                value = value is not True
        found = scope.tracker.take([self._left.id, self._right.id])
        if found is not None:
            name, overload = ("_!=_", "not_equals") if self._is_negated else ("_==_", "equals")
            scope.tracker.cost += cost_of_call(name, overload, found, value)
        return scope.tracker.push(self.id, value)


class _Logic(Step):
    """`&&` or `||`: a decisive value wins over errors."""

    def __init__(self, number: int, terms: list[Step], *, decisive: bool) -> None:
        self._number = number
        self._terms = terms
        self._decisive = decisive

    @property
    def id(self) -> int:
        return self._number

    def exec(self, scope: Scope) -> Value:
        value = self._run(scope)
        scope.tracker.drop(*[each.id for each in self._terms])
        return scope.tracker.push(self.id, value)

    def _run(self, scope: Scope) -> Value:
        failure: EvaluationError | None = None
        for term in self._terms:
            value = term.exec(scope)
            if value is self._decisive:
                return value
            if type(value) is not bool and failure is None:
                failure = value if isinstance(value, EvaluationError) else no_overload()
        return failure or (not self._decisive)


class _Membership(Step):
    """`in` with a constant list: costs nothing by itself."""

    def __init__(self, number: int, item: Step, members: frozenset[Value]) -> None:
        self._number = number
        self._item = item
        self._members = members

    @property
    def id(self) -> int:
        return self._number

    def exec(self, scope: Scope) -> Value:
        value = self._item.exec(scope)
        if not isinstance(value, EvaluationError):
            value = is_member(value, self._members)
        return scope.tracker.push(self.id, value)


class _OptionalOr(Step):
    def __init__(self, number: int, arguments: list[Step], *, is_value: bool) -> None:
        self._number = number
        self._left, self._right = arguments
        self._is_value = is_value

    @property
    def id(self) -> int:
        return self._number

    def exec(self, scope: Scope) -> Value:
        value = self._left.exec(scope)
        if isinstance(value, OptionalValue):
            if not value.has_value:
                value = self._right.exec(scope)
            elif self._is_value:
                value = value.value
        elif not isinstance(value, EvaluationError):
            value = no_overload()
        return scope.tracker.push(self.id, value)


class _ListStep(Step):
    def __init__(self, number: int, elements: list[Step], optional: frozenset[int]) -> None:
        self._number = number
        self._elements = elements
        self._optional = optional

    @property
    def id(self) -> int:
        return self._number

    def exec(self, scope: Scope) -> Value:
        value = self.make(scope)
        scope.tracker.take([each.id for each in self._elements])
        scope.tracker.cost += LIST_COST
        return scope.tracker.push(self.id, value)

    def make(self, scope: Scope) -> Value:
        result: list[Value] = []
        for index, element in enumerate(self._elements):
            value = element.exec(scope)
            if isinstance(value, EvaluationError):
                return value
            if index in self._optional:
                try:
                    value = optional_element(value)
                except EvaluationError as error:
                    return error
                if not value.has_value:
                    continue
                value = value.value
            result.append(value)
        return result


class _MapStep(Step):
    def __init__(self, number: int, entries: list[tuple[Step, Step, bool]]) -> None:
        self._number = number
        self._entries = entries

    @property
    def id(self) -> int:
        return self._number

    def exec(self, scope: Scope) -> Value:
        value = self.make(scope)
        scope.tracker.take([part.id for key, value_of, _ in self._entries for part in (key, value_of)])
        scope.tracker.cost += MAP_COST
        return scope.tracker.push(self.id, value)

    def make(self, scope: Scope) -> Value:
        result = CelMap()
        for key_of, value_of, is_optional in self._entries:
            key = key_of.exec(scope)
            if isinstance(key, EvaluationError):
                return key
            value = value_of.exec(scope)
            if isinstance(value, EvaluationError):
                return value
            if is_optional:
                try:
                    value = optional_entry(key, value)
                except EvaluationError as error:
                    return error
                if not value.has_value:
                    result.remove(key)
                    continue
                value = value.value
            result.insert(key, value)
        return result


class _Wrapper(Step):
    """A message that wraps a plain value."""

    def __init__(self, number: int, values: list[Step], node: StructLiteral, checked: CheckedTree) -> None:
        self._number = number
        self._values = values
        self._is_optional = [each.is_optional for each in node.fields]
        self._zero = ZEROS[checked.type(node).kind]

    @property
    def id(self) -> int:
        return self._number

    def exec(self, scope: Scope) -> Value:
        value = self._zero
        for step, is_optional in zip(self._values, self._is_optional, strict=True):
            value = step.exec(scope)
            if is_optional and isinstance(value, OptionalValue):
                value = value.value if value.has_value else self._zero
        scope.tracker.take([each.id for each in self._values])
        scope.tracker.cost += STRUCT_COST
        return scope.tracker.push(self.id, value)


class _Fold(Step):
    """A comprehension."""

    def __init__(
        self, node: Comprehension, items: Step, initial: Step, condition: Step, step: Step, result: Step
    ) -> None:
        self._node = node
        self._items = items
        self.initial = initial
        self._condition = condition
        self._step = step
        self._result = result

    @property
    def id(self) -> int:
        return self._node.id

    def exec(self, scope: Scope) -> Value:
        value = self._run(scope)
        scope.tracker.drop(self._items.id)
        return scope.tracker.push(self.id, value)

    def _run(self, scope: Scope) -> Value:
        node = self._node
        inner = _FoldScope(scope, self, is_binding=node.variable == UNUSED)
        items = self._items.exec(scope)
        if isinstance(items, EvaluationError):
            return items
        try:
            turns = (
                iterate_pairs(items) if node.second_variable else ((each, None) for each in iterate(items))
            )
        except EvaluationError as error:
            return error
        for first, second in turns:
            inner.variables = {node.variable: first}
            if node.second_variable:
                inner.variables[node.second_variable] = second
            if self._condition.exec(inner) is False:
                break
            inner.accumulate(self._step.exec(inner))
        inner.variables = {}
        value = self._result.exec(inner)
        if type(value) is GrowingList:
            return list(value)
        return CelMap(value.entries) if type(value) is GrowingMap else value

    @property
    def accumulator(self) -> str:
        return self._node.accumulator


class _FoldScope(Scope):
    """The variables of a comprehension; the accumulator is computed when first asked for."""

    def __init__(self, parent: Scope, fold: _Fold, *, is_binding: bool) -> None:
        super().__init__(parent.tracker, {})
        self._parent = parent
        self._fold = fold
        self._is_binding = is_binding
        self._is_set = False
        self._value: Value = None
        self.variables: dict[str, Value] = {}

    def accumulate(self, value: Value) -> None:
        self._is_set, self._value = True, value

    def resolve(self, name: str) -> Value:
        if name == self._fold.accumulator:
            if not self._is_set:
                value = self._fold.initial.exec(self._parent)
                if not self._is_binding and isinstance(value, list | CelMap) and not value:
                    value = GrowingList() if isinstance(value, list) else GrowingMap()
                self.accumulate(value)
            return self._value
        if name in self.variables:
            return self.variables[name]
        return self._parent.resolve(name)

    def outermost(self) -> Scope:
        return self._parent.outermost()
