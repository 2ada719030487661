"""Types for every node of a tree, and the overloads its calls may mean.

Called by `program.py` between parser and estimate. `check` goes over the tree once; it reports what does not fit to the
issues and goes on, so that one expression can show several errors. In the result names are resolved: a qualified name
that is a declared identifier became an `Ident`, a namespaced function lost its receiver.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nodeward.cel import cel_types as t
from nodeward.cel.cel_types import CelType, TypeKind
from nodeward.cel.declarations import CelEnvironment, Function
from nodeward.cel.source import Issues
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
    SyntaxTree,
)
from nodeward.cel.unification import (
    Bindings,
    assign_all,
    most_general,
    parameter_names,
    rename_parameters,
    substitute,
)
from nodeward.cel.values import type_of_value


@dataclass(slots=True)
class CheckedTree:
    """A tree with the type of every node and the overloads of every call, by number."""

    tree: SyntaxTree
    environment: CelEnvironment
    types: dict[int, CelType] = field(default_factory=dict)
    overloads: dict[int, tuple[str, ...]] = field(default_factory=dict)
    #: Identifiers that name a type.
    type_values: dict[int, CelType] = field(default_factory=dict)

    def type(self, node: Node) -> CelType:
        return self.types[node.id]


def check(tree: SyntaxTree, environment: CelEnvironment, issues: Issues) -> CheckedTree:
    """Return the checked tree; it is usable only when nothing was reported."""
    checked = CheckedTree(tree, environment)
    checker = _Checker(checked, issues)
    tree.root = checker.check(tree.root)
    for number, kind in checked.types.items():
        checked.types[number] = substitute(checker.bindings, kind, free_is_dyn=True)
    return checked


class _Checker:
    """One pass over one tree. `check` returns the node to use in its place."""

    def __init__(self, checked: CheckedTree, issues: Issues) -> None:
        self._checked = checked
        self._types = checked.types
        self._environment = checked.environment
        self._issues = issues
        self._scopes: list[dict[str, CelType]] = []
        self._fresh = 0
        self._resolved: dict[tuple[object, ...], tuple[tuple[str, ...], CelType | None]] = {}
        self.bindings = Bindings()

    def check(self, node: Node) -> Node:
        match node:
            case Literal():
                self._types[node.id] = type_of_value(node.value)
                return node
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
                return self._struct(node)
            case Comprehension():
                return self._comprehension(node)

    # --- names

    def _local(self, name: str) -> CelType | None:
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None)

    def _global(self, node: Node, name: str) -> CelType | None:
        """Return the type of a declared variable or of the name of a type."""
        name = name.removeprefix(".")
        if (kind := self._environment.variables.get(name)) is not None:
            return kind
        if (named := self._environment.types.get(name)) is not None:
            self._checked.type_values[node.id] = named
            return t.type_of(named)
        return None

    def _ident(self, node: Ident) -> Node:
        kind = None if node.name.startswith(".") else self._local(node.name)
        kind = kind or self._global(node, node.name)
        if kind is None:
            self._report(node.id, f"undeclared reference to '{node.name}' (in container '')")
            kind = t.ERROR
        elif node.name.startswith(".") and self._local(node.name[1:]) is None:
            node.name = node.name[1:]
        self._types[node.id] = kind
        return node

    def _select(self, node: Select) -> Node:
        if (name := _qualified(node)) is not None and self._local(name.split(".")[0]) is None:
            kind = self._global(node, name)
            if kind is not None:
                self._types[node.id] = kind
                return Ident(node.id, name)
        node.operand = self.check(node.operand)
        kind = self._field(node.id, node.operand, node.name, is_optional=False)
        self._types[node.id] = t.BOOL if node.is_test else self._substitute(kind)
        return node

    def _field(self, number: int, operand: Node, name: str, *, is_optional: bool) -> CelType:
        """Return the type of a field of the (already checked) operand."""
        target, was_optional = t.unwrap_optional(self._substitute(self._types[operand.id]))
        result = t.ERROR
        if target.kind is TypeKind.MAP:
            result = target.parameters[1]
        elif target.kind is TypeKind.STRUCT:
            described = self._environment.objects.get(target.name)
            if described is None:
                self._report(number, f"unexpected failed resolution of '{target.name}'")
            elif name in described.fields:
                result = described.fields[name]
            else:
                self._report(number, f"undefined field '{name}'")
        elif target.kind is TypeKind.PARAM:
            self._assign(t.DYN, target)
            result = t.DYN
        else:
            if not target.is_dynamic and target.kind is not TypeKind.ERROR:
                self._report(number, f"type '{t.display(target)}' does not support field selection")
            result = t.DYN
        return t.optional_of(result) if was_optional or is_optional else result

    # --- calls

    def _call(self, node: FunctionCall) -> Node:
        if node.function == "_?._":
            return self._optional_select(node)
        node.arguments = [self.check(each) for each in node.arguments]
        functions = self._environment.functions
        if node.target is None:
            name = node.function.removeprefix(".")
            if (function := functions.get(name)) is None:
                return self._undeclared(node)
            node.function = name
            return self._resolve(node, function)
        if (prefix := _qualified(node.target)) is not None:
            name = f"{prefix.removeprefix('.')}.{node.function}"
            if (function := functions.get(name)) is not None:
                node.function, node.target = name, None
                return self._resolve(node, function)
        node.target = self.check(node.target)
        if (function := functions.get(node.function)) is None:
            return self._undeclared(node)
        return self._resolve(node, function)

    def _undeclared(self, node: FunctionCall) -> Node:
        self._report(node.id, f"undeclared reference to '{node.function}' (in container '')")
        self._types[node.id] = t.ERROR
        return node

    def _optional_select(self, node: FunctionCall) -> Node:
        operand, name = node.arguments
        node.arguments[0] = operand = self.check(operand)
        assert isinstance(name, Literal)
        self._types[name.id] = t.STRING
        self._types[node.id] = self._substitute(self._field(node.id, operand, name.value, is_optional=True))
        self._checked.overloads[node.id] = ("select_optional_field",)
        return node

    def _resolve(self, node: FunctionCall, function: Function) -> Node:
        """Find the overloads that the arguments fit; several when types are dynamic."""
        operands = [*([] if node.target is None else [node.target]), *node.arguments]
        arguments = [self._types[each.id] for each in operands]
        if function.name in ("_&&_", "_||_"):
            return self._logic(node, function, arguments)
        # What is known of plain types once is known for the whole expression.
        key = (function.name, node.target is not None, *map(t.display, arguments))
        known = self._resolved.get(key)
        found, result = known or self._matching(function, arguments, is_member=node.target is not None)
        if known is None and result is not None and not parameter_names((result, *arguments)):
            self._resolved[key] = found, result
        if result is None:
            shown = [substitute(self.bindings, each, free_is_dyn=True) for each in arguments]
            call = t.display_call(shown, is_member=node.target is not None)
            self._report(node.id, f"found no matching overload for '{function.name}' applied to '{call}'")
            result = t.ERROR
        else:
            self._checked.overloads[node.id] = found
        self._types[node.id] = result
        return node

    def _matching(
        self, function: Function, arguments: list[CelType], *, is_member: bool
    ) -> tuple[tuple[str, ...], CelType | None]:
        """Return the overloads that take these types, and the type of the result."""
        result: CelType | None = None
        found: list[str] = []
        for overload in function.overloads:
            if overload.is_member is not is_member or len(overload.arguments) != len(arguments):
                continue
            names = parameter_names((overload.result, *overload.arguments))
            if not names:
                expected, this = list(overload.arguments), overload.result
            else:
                fresh = {name: self._variable() for name in names}
                expected = [rename_parameters(each, fresh) for each in overload.arguments]
                this = rename_parameters(overload.result, fresh)
            if not self._assign_all(arguments, expected):
                continue
            found.append(overload.id)
            this = self._substitute(this)
            if result is None:
                result = this
            elif not result.is_dynamic and this != result:
                result = t.DYN
        return tuple(found), result

    def _logic(self, node: FunctionCall, function: Function, arguments: list[CelType]) -> Node:
        is_fine = True
        for argument, kind in zip(node.arguments, arguments, strict=True):
            if not self._assign(kind, t.BOOL):
                self._mismatch(argument.id, t.BOOL, kind)
                is_fine = False
        self._types[node.id] = t.BOOL if is_fine else t.ERROR
        self._checked.overloads[node.id] = (function.overloads[0].id,)
        return node

    # --- literals

    def _list(self, node: ListLiteral) -> Node:
        joined: CelType | None = None
        for index, element in enumerate(node.elements):
            node.elements[index] = element = self.check(element)
            kind = self._types[element.id]
            if index in node.optional:
                kind = self._unwrapped(element, kind)
            joined = self._join(joined, kind)
        self._types[node.id] = t.list_of(self._variable() if joined is None else joined)
        return node

    def _map(self, node: MapLiteral) -> Node:
        keys: CelType | None = None
        values: CelType | None = None
        for entry in node.entries:
            entry.key = self.check(entry.key)
            keys = self._join(keys, self._types[entry.key.id])
            entry.value = self.check(entry.value)
            kind = self._types[entry.value.id]
            if entry.is_optional:
                kind = self._unwrapped(entry.value, kind)
            values = self._join(values, kind)
        if keys is None or values is None:
            keys, values = self._variable(), self._variable()
        self._types[node.id] = t.map_of(keys, values)
        return node

    def _unwrapped(self, node: Node, kind: CelType) -> CelType:
        inner, is_optional = t.unwrap_optional(kind)
        if not is_optional and not inner.is_dynamic:
            self._mismatch(node.id, t.optional_of(inner), inner)
        return inner

    def _struct(self, node: StructLiteral) -> Node:
        # Of messages, Kubernetes' environments have only those that wrap a plain value.
        wrapper = t.WRAPPERS.get(node.type_name.removeprefix("."))
        if wrapper is None:
            self._report(node.id, f"undeclared reference to '{node.type_name}' (in container '')")
            self._types[node.id] = t.ERROR
            return node
        self._types[node.id] = wrapper
        plain = CelType(wrapper.kind, wrapper.name)
        for each in node.fields:
            each.value = self.check(each.value)
            kind = self._types[each.value.id]
            if each.is_optional:
                kind = self._unwrapped(each.value, kind)
            if each.name != "value":
                self._report(each.id, f"undefined field '{each.name}'")
            elif not self._assign(plain, kind):
                self._report(
                    each.id,
                    f"expected type of field 'value' is '{t.display(plain)}' "
                    f"but provided type is '{t.display(kind)}'",
                )
        return node

    def _join(self, previous: CelType | None, current: CelType) -> CelType:
        if previous is None:
            return current
        # Mixed types are refused by a validator, which makes an exception for format texts.
        return most_general(previous, current) if self._assign(previous, current) else t.DYN

    # --- comprehensions

    def _comprehension(self, node: Comprehension) -> Node:
        node.items = self.check(node.items)
        node.initial = self.check(node.initial)
        accumulator = self._types[node.initial.id]
        first, second = self._variables(node)
        self._scopes.append({node.accumulator: accumulator})
        self._scopes.append({node.variable: first, **({node.second_variable: second} if second else {})})
        node.condition = self.check(node.condition)
        self._require(node.condition, t.BOOL)
        node.step = self.check(node.step)
        self._require(node.step, accumulator)
        self._scopes.pop()
        node.result = self.check(node.result)
        self._scopes.pop()
        self._types[node.id] = self._substitute(self._types[node.result.id])
        return node

    def _variables(self, node: Comprehension) -> tuple[CelType, CelType | None]:
        """Return the types of the iteration variables."""
        kind = self._substitute(self._types[node.items.id])
        is_double = bool(node.second_variable)
        if kind.kind is TypeKind.LIST:
            return (t.INT, kind.parameters[0]) if is_double else (kind.parameters[0], None)
        if kind.kind is TypeKind.MAP:
            return kind.parameters[0], kind.parameters[1] if is_double else None
        if kind.kind in (TypeKind.DYN, TypeKind.ERROR, TypeKind.PARAM):
            self._assign(t.DYN, kind)
            return t.DYN, t.DYN if is_double else None
        self._report(
            node.items.id,
            f"expression of type '{t.display(kind)}' cannot be range of a comprehension "
            "(must be list, map, or dynamic)",
        )
        return t.ERROR, t.ERROR if is_double else None

    # --- types

    def _require(self, node: Node, kind: CelType) -> None:
        if not self._assign(kind, self._types[node.id]):
            self._mismatch(node.id, kind, self._types[node.id])

    def _variable(self) -> CelType:
        self._fresh += 1
        return t.parameter(f"_var{self._fresh - 1}")

    def _substitute(self, kind: CelType) -> CelType:
        return substitute(self.bindings, kind)

    def _assign(self, left: CelType, right: CelType) -> bool:
        return self._assign_all([left], [right])

    def _assign_all(self, left: list[CelType], right: list[CelType]) -> bool:
        return self.bindings.settle(assign_all(self.bindings, left, right))

    def _mismatch(self, number: int, expected: CelType, found: CelType) -> None:
        self._report(number, f"expected type '{t.display(expected)}' but found '{t.display(found)}'")

    def _report(self, number: int, message: str) -> None:
        self._issues.report(self._checked.tree.offsets.get(number, -1), message)


def _qualified(node: Node) -> str | None:
    """Return `a.b.c` for nested selections of a name."""
    names: list[str] = []
    while isinstance(node, Select) and not node.is_test:
        names.append(node.name)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    return ".".join([node.name, *reversed(names)])
