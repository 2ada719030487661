"""Device selectors of Dynamic Resource Allocation: expressions about one device.

The variable `device` has `driver`, `attributes[domain].id`, `capacity[domain].id` (a quantity) and
`allowMultipleAllocations`. `compile_selector` is called by validation (for new objects) and by the allocator (for
stored ones, which may use more); `device_variables` prepares a device once, `matches` is called often.

What must stay true: a domain nobody set is an empty map, an id nobody set is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from nodeward.base.quantity import Quantity
from nodeward.cel import cel_types as t
from nodeward.cel.cel_types import CelType
from nodeward.cel.declarations import CelEnvironment, ObjectType
from nodeward.cel.kubernetes import KUBERNETES_1_36, KUBERNETES_1_37
from nodeward.cel.library.named_formats import NamedFormat
from nodeward.cel.library.network import CIDRValue, IPValue
from nodeward.cel.library.quantities import QUANTITY, QuantityValue
from nodeward.cel.library.semvers import SEMVER, Semver, SemverError
from nodeward.cel.library.urls import UrlValue
from nodeward.cel.macros import Macros
from nodeward.cel.program import CompileErrors, Program, compile_expression
from nodeward.cel.values import (
    CelMap,
    Duration,
    EvaluationError,
    OptionalValue,
    Timestamp,
    Uint,
    Value,
    type_of_value,
)

#: The most a selector may cost, as an estimate at admission and at run time.
COST_LIMIT: Final = 1_000_000
#: The longest selector in bytes.
LONGEST_SELECTOR: Final = 10 * 1024

_MOST_ENTRIES: Final = 32
_LONGEST_DOMAIN: Final = 63
_LONGEST_ID: Final = 32
_LONGEST_DRIVER: Final = 63
_LONGEST_VALUE: Final = 64

_EMPTY: Final[dict[str, Value]] = {}


class _Domains(dict[str, Value]):
    """Attributes or capacities by domain; a domain nobody set is empty."""

    __slots__ = ()

    def __missing__(self, _key: str) -> Value:
        return _EMPTY


def device_variables(
    driver: str,
    attributes: Mapping[str, Value],
    capacity: Mapping[str, Quantity],
    allows_multiple_allocations: bool | None = None,
) -> dict[str, Value]:
    """Return what selectors see of a device; names without a domain belong to the driver's.

    Values of attributes are bool, int, str, `Semver`, or a list of one of these.
    """
    return {
        "device": {
            "driver": driver,
            "attributes": _by_domain(driver, attributes),
            "capacity": _by_domain(driver, {name: QuantityValue(each) for name, each in capacity.items()}),
            "allowMultipleAllocations": bool(allows_multiple_allocations),
        }
    }


def _by_domain(driver: str, values: Mapping[str, Value]) -> _Domains:
    result = _Domains()
    for name, value in values.items():
        domain, slash, local = name.partition("/")
        if not slash:
            domain, local = driver, name
        result.setdefault(domain, {})[local] = value
    return result


def parse_version(text: str) -> Semver:
    """Return the version of an attribute; raises EvaluationError."""
    try:
        return Semver.parse(text)
    except SemverError as error:
        raise EvaluationError(f"parse semantic version: {error}") from None


def _environment(base: CelEnvironment, attribute: CelType, *, has_sharing: bool = True) -> CelEnvironment:
    fields = {
        "driver": t.STRING,
        "attributes": t.map_of(t.STRING, t.map_of(t.STRING, attribute)),
        "capacity": t.map_of(t.STRING, t.map_of(t.STRING, QUANTITY)),
    }
    if has_sharing:
        fields["allowMultipleAllocations"] = t.BOOL
    device = t.struct("kubernetes.DRADevice")
    return base.extended(
        variables={"device": device},
        types={**base.types, device.name: device},
        objects={device.name: ObjectType(device, fields)},
        macros=Macros(),
        size_of_path=_size_of_path,
    )


def _size_of_path(path: tuple[str, ...]) -> int | None:
    """Return the largest size of what a path through a device leads to."""
    if not path or path[0] != "device":
        return None
    if len(path) == 1:
        return 0
    if len(path) == 2:
        return _SIZES.get(path[1])
    if path[1] not in ("attributes", "capacity"):
        return None
    is_attribute = path[1] == "attributes"
    level = 0
    for step in path[2:]:
        if step == "@keys":
            return None if level > 1 or step != path[-1] else (_LONGEST_DOMAIN, _LONGEST_ID)[level]
        if step not in ("@values", "@items") and not (is_attribute and level == 1):
            return None
        level += 1
    if level > 2:
        return None
    return _MOST_ENTRIES if level == 1 else _LONGEST_VALUE if is_attribute else 0


_SIZES: Final = {
    "driver": _LONGEST_DRIVER,
    "attributes": _MOST_ENTRIES,
    "capacity": _MOST_ENTRIES,
    "allowMultipleAllocations": 1,
}


@lru_cache
def new_expressions(*, has_sharing: bool = True, has_lists: bool = False) -> CelEnvironment:
    """Return the environment of new objects, by the gates DRAConsumableCapacity and DRAListTypeAttributes."""
    base, attribute = (KUBERNETES_1_37, t.DYN) if has_lists else (KUBERNETES_1_36, t.ANY)
    return _environment(base, attribute, has_sharing=has_sharing)


#: For objects that are stored already: what the scheduler runs.
STORED_EXPRESSIONS: Final = _environment(KUBERNETES_1_37, t.DYN)


def compile_selector(text: str, environment: CelEnvironment = STORED_EXPRESSIONS) -> Program:
    """Compile a selector, whose value must be a bool or of unknown type; raises CompileErrors."""
    program = compile_expression(text, environment)
    if program.result_type not in (t.BOOL, _attribute_type(environment)):
        raise CompileErrors(f"must evaluate to bool or the unknown type, not {program.result_type}")
    return program


def _attribute_type(environment: CelEnvironment) -> CelType:
    return environment.objects["kubernetes.DRADevice"].fields["attributes"].parameters[1].parameters[1]


_SCALARS: Final = frozenset({t.BOOL, t.INT, t.STRING, t.ANY, t.DYN, SEMVER})


def compile_derived_attribute(text: str, environment: CelEnvironment = STORED_EXPRESSIONS) -> Program:
    """Compile the expression of a derived attribute; raises CompileErrors."""
    program = compile_expression(text, environment)
    kind, has_lists = program.result_type, _attribute_type(environment) == t.DYN
    is_list = has_lists and kind.kind is t.TypeKind.LIST and kind.parameters[0] in _SCALARS
    if kind not in _SCALARS and not is_list:
        or_list = " or a list of these scalars" if has_lists else ""
        raise CompileErrors(
            f"must evaluate to a primitive scalar (string, integer, boolean, semver){or_list}, not {kind}"
        )
    return program


def as_match(value: Value) -> bool:
    """Return the value of a selector as a bool; raises EvaluationError for one of another type."""
    if type(value) is bool:
        return value
    if isinstance(value, OptionalValue) and value.has_value and type(value.value) is bool:
        return value.value
    name = type_of_value(value).name
    raise EvaluationError(
        f"CEL result of type {name} could not be converted to bool: {_conversion_error(value)}"
    )


def _conversion_error(value: Value) -> str:
    if isinstance(value, OptionalValue):
        return _conversion_error(value.value) if value.has_value else "optional.none() dereference"
    if (known := _NOT_BOOL.get(type(value))) is not None:
        return known
    name = type_of_value(value).name.rpartition(".")[2].replace("NamedFormat", "Format")
    return f"type conversion error from '{name}' to 'bool'"


_NOT_BOOL: Final[dict[type, str]] = {
    list: "type conversion error from list to 'bool'",
    int: "unsupported type conversion from 'int' to bool",
    Uint: "unsupported type conversion from 'uint' to bool",
    str: "unsupported native conversion from string to 'bool'",
    float: "type conversion error from Double to 'bool'",
    bytes: "type conversion error from Bytes to 'bool'",
    dict: "type conversion error from map to 'bool'",
    _Domains: "type conversion error from map to 'bool'",
    CelMap: "type conversion error from map to 'bool'",
    CelType: "type conversion not supported for 'type'",
}
_SCALAR_NAMES: Final[dict[type, str]] = {bool: "bool", int: "int", str: "string", Semver: "semver"}


def as_attribute(value: Value) -> Value:
    """Return the value of a derived attribute; raises EvaluationError when no attribute can have it."""
    value = _plain(value)
    if type(value) in _SCALAR_NAMES:
        return value
    if not isinstance(value, list | tuple):
        raise EvaluationError(f"unsupported CEL return type: {_native_type(value)}")
    items = [_plain(each) for each in value]
    for index, item in enumerate(items):
        wanted = _SCALAR_NAMES.get(type(items[0]))
        if wanted is None:
            raise EvaluationError(f"unsupported list element type: {_native_type(item)}")
        if type(item) is not type(items[0]):
            found = _native_type(item)
            raise EvaluationError(f"expected list element at index {index} to be {wanted}, got {found}")
    return items


def _plain(value: Value) -> Value:
    """Return what an optional holds, and the name of a type."""
    if isinstance(value, OptionalValue):
        return value.value if value.has_value else value
    return value.name if isinstance(value, CelType) else value


def _native_type(value: Value) -> str:
    """Return what Go calls the type of the native value."""
    return _NATIVE.get(type(value), type_of_value(value).name)


_NATIVE: Final[dict[type, str]] = {
    bool: "bool",
    int: "int64",
    Uint: "uint64",
    float: "float64",
    str: "string",
    bytes: "[]uint8",
    Semver: "semver.Version",
    QuantityValue: "*resource.Quantity",
    type(None): "structpb.NullValue",
    CelMap: "map[ref.Val]ref.Val",
    dict: "map[string]interface {}",
    list: "[]ref.Val",
    Duration: "time.Duration",
    Timestamp: "time.Time",
    OptionalValue: "<nil>",
    IPValue: "netip.Addr",
    CIDRValue: "netip.Prefix",
    UrlValue: "*url.URL",
    NamedFormat: "cel.Format",
}


def matches(program: Program, device: Mapping[str, Value], cost_limit: int = COST_LIMIT) -> bool:
    """Tell whether a device (see `device_variables`) is selected; raises EvaluationError."""
    value = program.evaluate(device, cost_limit)
    return value if value is True or value is False else as_match(value)
