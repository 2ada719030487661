"""How the rules of a kind are tested: a good object, what is changed in it, and what the server answers then.

A case names the change by path (`spec.ports[0].port`); `DROP` takes a field away. Expected texts are whole messages,
or their beginning where they end in `...`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, TypeVar

import msgspec

from nodeward.api.context import Context
from nodeward.api.defaults import DEFAULTS
from nodeward.api.meta import KubeObject
from nodeward.base.fielderror import FieldError
from nodeward.base.quantity import Quantity
from nodeward.validation.registry import VALIDATORS

K = TypeVar("K", bound=KubeObject)
Tree = dict[str, Any]
DROP: Any = object()
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]|\[([^\]]+)\]")

#: Gates that are on unless a test says otherwise; all others are off.
USUAL = frozenset(
    {
        "JobManagedBy",
        "MutableCSINodeAllocatableCount",
        "MutablePodResourcesForSuspendedJobs",
        "MutableSchedulingDirectivesForSuspendedJobs",
        "PreferSameTrafficDistribution",
        "RecoverVolumeExpansionFailure",
        "RelaxedServiceNameValidation",
        "SELinuxMountReadWriteOncePod",
        "StrictIPCIDRValidation",
        "VolumeAttributesClass",
    }
)


@dataclass(frozen=True)
class SomeGates:
    on: frozenset[str]

    def enabled(self, name: str) -> bool:
        return name in self.on

    def knows(self, name: str) -> bool:
        """These stand for a server of today."""
        return True


def context(*on: str, off: tuple[str, ...] = ()) -> Context:
    return Context(SomeGates(USUAL.union(on).difference(off)))


def _quantity(kind: type, value: Any) -> Any:
    if kind is Quantity:
        return Quantity.from_json(value)
    raise NotImplementedError(kind)


def read(kind: type[K], tree: Tree) -> K:
    return msgspec.convert(tree, kind, dec_hook=_quantity)


def defaulted(kind: type[K], tree: Tree) -> K:
    obj = read(kind, tree)
    if kind in DEFAULTS:
        DEFAULTS[kind](obj)
    return obj


def edited(tree: Tree, changes: Mapping[str, Any]) -> Tree:
    result = copy.deepcopy(tree)
    for path, value in changes.items():
        steps: list[Any] = [
            name or key or int(index) for name, index, key in (m.groups() for m in _STEP.finditer(path))
        ]
        at: Any = result
        for step in steps[:-1]:
            if isinstance(step, str) and step not in at:
                at[step] = {}
            at = at[step]
        if value is DROP:
            del at[steps[-1]]
        elif isinstance(at, list) and steps[-1] == len(at):
            at.append(copy.deepcopy(value))
        else:
            at[steps[-1]] = copy.deepcopy(value)
    return result


@dataclass(frozen=True)
class Case:
    """One promise: `change` the good object and get exactly `errors`."""

    promise: str
    change: Mapping[str, Any] = dataclass_field(default_factory=dict)
    errors: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    #: for updates: changes of the object that was there before
    before: Mapping[str, Any] = dataclass_field(default_factory=dict)

    def __str__(self) -> str:
        return self.promise


def case(promise: str, change: Mapping[str, Any] | None = None, *errors: str, **facts: Any) -> Case:
    return Case(promise, change or {}, errors, **facts)


def check(found: list[FieldError], expected: tuple[str, ...]) -> None:
    texts = [str(error) for error in found]
    shown = [
        want if want.endswith("...") and text.startswith(want[:-3]) else text
        for text, want in zip(texts, [*expected, *[""] * len(texts)], strict=False)
    ]
    assert shown == list(expected), "\n".join(["found:", *texts])


def check_create(kind: type[KubeObject], good: Tree, one: Case) -> None:
    obj = defaulted(kind, edited(good, one.change))
    check(VALIDATORS[kind].create(obj, context(*one.gates, off=one.off)), one.errors)


_STORED = {"metadata.resourceVersion": "7", "metadata.uid": "u-1"}


def _pair(kind: type[KubeObject], good: Tree, one: Case) -> tuple[KubeObject, KubeObject]:
    stored = edited(edited(good, _STORED), one.before)
    return defaulted(kind, edited(stored, one.change)), defaulted(kind, stored)


def check_update(kind: type[KubeObject], good: Tree, one: Case) -> None:
    new, old = _pair(kind, good, one)
    check(VALIDATORS[kind].update(new, old, context(*one.gates, off=one.off)), one.errors)


def check_status(kind: type[KubeObject], good: Tree, one: Case) -> None:
    new, old = _pair(kind, good, one)
    status = VALIDATORS[kind].status
    assert status is not None
    check(status(new, old, context(*one.gates, off=one.off)), one.errors)
