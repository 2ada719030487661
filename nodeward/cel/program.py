"""The public face: compile an expression, evaluate it often.

`compile_expression` is called by validation and by the scheduler; it runs parser, checker, validators, estimate and
planner. A `Program` is immutable and may be shared. Costs are bounded twice: `Program.max_cost` is the worst case,
known before anything runs; an evaluation that may come near its limit counts, and stops at it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nodeward.base.errors import NodewardError
from nodeward.cel.cel_types import CelType
from nodeward.cel.checker import CheckedTree, check
from nodeward.cel.declarations import CelEnvironment
from nodeward.cel.estimate import estimate_cost
from nodeward.cel.folds import TurnsSpent
from nodeward.cel.functions import PlanError
from nodeward.cel.parser import parse
from nodeward.cel.planner import FastPlanner
from nodeward.cel.source import Issues, Source
from nodeward.cel.tracking import TrackedProgram
from nodeward.cel.validators import validate
from nodeward.cel.values import EvaluationAborted, Value

#: The longest expression in code points; longer ones are refused before they are read.
LONGEST_EXPRESSION: Final = 100_000
#: Costs are not counted where the estimate is so many times below the limit: upstream's estimates can be too low.
_MARGIN: Final = 10
#: So many turns may all loops take together without counting; an evaluation that takes more begins anew.
_MOST_TURNS: Final = 10_000
_TOO_DEEP: Final = "values are nested too deeply"


class CompileErrors(NodewardError):
    """The text is no valid expression in its environment. The message is the one Kubernetes gives.

    `is_internal`: the expression is well typed, but a constant part of it fails.
    """

    def __init__(self, message: str, *, is_internal: bool = False) -> None:
        super().__init__(message)
        self.is_internal = is_internal


class Program:
    """A compiled expression."""

    def __init__(self, text: str, checked: CheckedTree) -> None:
        self.text = text
        self.result_type: CelType = checked.type(checked.tree.root)
        planner = FastPlanner(checked)
        self._run = planner.plan(checked.tree.root)
        self._names = list(checked.environment.variables)
        self._first = self._names[0] if self._names else ""
        self._others = self._names[1:]
        self._padding: list[Value] = [None] * (planner.slots.count - len(self._names))
        self._padding[0] = _MOST_TURNS
        self._checked = checked
        self._tracked: TrackedProgram | None = None
        #: The most one evaluation can cost; 2**64-1 when there is no bound.
        self.max_cost = estimate_cost(checked)

    def evaluate(self, bindings: Mapping[str, Value], cost_limit: int) -> Value:
        """Return the value for these variables; raises EvaluationError, or CostLimitExceeded at the limit."""
        if self.max_cost * _MARGIN > cost_limit:
            return self.evaluate_with_cost(bindings, cost_limit)[0]
        if self._others or not self._first:
            frame = [*[bindings[name] for name in self._names], *self._padding]
        else:
            frame = [bindings[self._first], *self._padding]
        try:
            return self._run(frame)
        except TurnsSpent:
            return self.evaluate_with_cost(bindings, cost_limit)[0]
        except RecursionError:
            raise EvaluationAborted(_TOO_DEEP) from None

    def evaluate_with_cost(self, bindings: Mapping[str, Value], cost_limit: int) -> tuple[Value, int]:
        """Return the value and what it cost. An error that is raised has the cost as its `cost`."""
        if self._tracked is None:
            self._tracked = TrackedProgram(self._checked)
        try:
            return self._tracked.evaluate(bindings, cost_limit)
        except RecursionError:
            raise EvaluationAborted(_TOO_DEEP) from None


def compile_expression(text: str, environment: CelEnvironment) -> Program:
    """Return the program of an expression; raises CompileErrors."""
    source = Source(text)
    issues = Issues(source)
    if len(text) > LONGEST_EXPRESSION:
        message = f"expression code point size exceeds limit: size: {len(text)}, limit {LONGEST_EXPRESSION}"
        issues.report(-1, message)
        raise CompileErrors(f"compilation failed: {issues.display()}")
    try:
        return _compile(source, environment, issues)
    except RecursionError:
        raise CompileErrors("compilation failed: expression is nested too deeply") from None


def _compile(source: Source, environment: CelEnvironment, issues: Issues) -> Program:
    tree = parse(source, environment.macros, issues)
    if tree is not None:
        checked = check(tree, environment, issues)
        if not issues:
            validate(checked, issues)
    if tree is None or issues:
        raise CompileErrors(f"compilation failed: {issues.display()}")
    try:
        return Program(source.text, checked)
    except (PlanError, EvaluationAborted) as error:
        raise CompileErrors(f"program instantiation failed: {error}", is_internal=True) from None
