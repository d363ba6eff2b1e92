"""CEL selectors of DRA: which devices a DeviceClass or a request of a ResourceClaim takes.

    selector = compile('device.attributes["gpu.nvidia.com"].productName == "H100"')
    selector.matches(device)      True, False, RuntimeProblem or NotEvaluable

A device's attributes and capacities are found under their domain; one without a domain under the
driver's name. A domain that no attribute has is an empty map, yet ``in`` does not find it.

Source: k8s.io/dynamic-resource-allocation v0.37.2 cel/compile.go, cel/errors.go;
k8s.io/api v0.37.2 resource/v1/types.go (limits).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.cel import types
from kubectl_gpuadmit.cel.environment import CompileError, Environment, Program
from kubectl_gpuadmit.cel.estimate import estimate
from kubectl_gpuadmit.cel.functions import declare
from kubectl_gpuadmit.cel.library.collections import includes
from kubectl_gpuadmit.cel.sizes import Size
from kubectl_gpuadmit.cel.steps import CANCELLED
from kubectl_gpuadmit.cel.texts import semver
from kubectl_gpuadmit.cel.types import Type
from kubectl_gpuadmit.cel.values import (
    DomainMap,
    Fail,
    Quantity,
    Semver,
    Uint,
    Unsure,
    type_name,
)
from kubectl_gpuadmit.kube.quantity import Quantity as Amount

LONGEST = 10 * 1024
"""Bytes of an expression: CELSelectorExpressionMaxLength."""
MOST_COST = 1_000_000
"""Cost units, of the estimate and of a run: CELSelectorExpressionMaxCost."""
TOO_COMPLEX = "too complex, exceeds cost limit"

_HINT = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with"
    " has() for optional fields"
)


class Problem(Struct, frozen=True):
    """The expression is refused when it is created; the API server's words.

    ``kind`` is ``invalid`` (Invalid value), ``too-long`` or ``internal``.
    """

    message: str
    kind: str = "invalid"


class RuntimeProblem(Struct, frozen=True):
    """The expression fails on this device, which ends the whole attempt to allocate."""

    message: str


class NotEvaluable(Struct, frozen=True):
    """It cannot be told here whether the device matches."""

    why: str


class Version(Struct, frozen=True):
    """A version attribute, as text."""

    text: str


Scalar = bool | int | str | Version
Attribute = Scalar | Sequence[Scalar]
Answer = bool | RuntimeProblem | NotEvaluable


class Device:
    """One device as selectors see it. Build it once, ask many selectors.

    ``attributes`` and ``capacity`` are keyed by qualified name, with or without a domain.
    Capacities are quantities.
    """

    __slots__ = ("_broken", "variables", "within_limits")

    def __init__(
        self,
        driver: str,
        attributes: Mapping[str, Attribute],
        capacity: Mapping[str, Amount],
        *,
        allow_multiple: bool = False,
    ) -> None:
        self._broken = ""
        self.within_limits = len(attributes) + len(capacity) <= 32 and all(
            _small(value) for value in attributes.values()
        )
        """Whether the API server would store it, as far as sizes go."""
        found = DomainMap()
        for name, value in attributes.items():
            domain, key = _split(name, driver)
            try:
                seen = _value(value)
            except Fail as fault:
                self._broken = self._broken or (
                    f"attribute {name}: parse semantic version: {fault}"
                )
                continue
            found.setdefault(domain, {})[key] = seen
        amounts = DomainMap()
        for name, amount in capacity.items():
            domain, key = _split(name, driver)
            amounts.setdefault(domain, {})[key] = Quantity(amount)
        self.variables: dict[str, Any] = {
            "device": {
                "driver": driver,
                "allowMultipleAllocations": allow_multiple,
                "attributes": found,
                "capacity": amounts,
            }
        }

    @property
    def broken(self) -> str:
        """Why no selector can be asked about the device, or ''."""
        return self._broken


def _split(name: str, driver: str) -> tuple[str, str]:
    domain, slash, key = name.partition("/")
    return (domain, key) if slash else (driver, name)


def _small(value: Attribute) -> bool:
    if isinstance(value, str):
        return len(value) <= _ATTRIBUTE.most
    if isinstance(value, bool | int | Version):
        return True
    return len(value) <= _ATTRIBUTE.most and all(_small(one) for one in value)


def _value(value: Attribute) -> Any:
    if isinstance(value, Version):
        return _version(value.text)
    if isinstance(value, str | bool | int):
        return value
    return [_value(one) for one in value]


@lru_cache(maxsize=4096)
def _version(text: str) -> Semver:
    return semver(text)


class Derivation:
    """One compiled expression of an attribute that a request derives (DRADerivedAttributes)."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def of(self, device: Device) -> Attribute | RuntimeProblem | NotEvaluable:
        """The attribute's value for the device; lists as tuples."""
        if device.broken:
            return RuntimeProblem(device.broken)
        try:
            found = self._program.evaluate(device.variables)
        except Fail as fault:
            return RuntimeProblem(str(fault))
        except Unsure as fault:
            return NotEvaluable(f"{fault} ({self._program.text})")
        if not isinstance(found, list | tuple):
            scalar = _scalar(found)
            if scalar is None:
                return RuntimeProblem(f"unsupported CEL return type: {_go_type(found)}")
            return scalar
        listed: list[Scalar] = []
        for index, element in enumerate(found):
            one = _scalar(element)
            if one is None and not index:
                return RuntimeProblem(f"unsupported list element type: {_go_type(element)}")
            if one is None or (listed and one.__class__ is not listed[0].__class__):
                wanted = type_name(found[0]).rpartition(".")[2].lower()
                return RuntimeProblem(
                    f"expected list element at index {index} to be {wanted}, got"
                    f" {_go_type(element)}"
                )
            listed.append(one)
        return tuple(listed)


_GO_TYPES: dict[type, str] = {
    bool: "bool",
    int: "int64",
    Uint: "uint64",
    float: "float64",
    str: "string",
    bytes: "[]uint8",
    type(None): "structpb.NullValue",
    dict: "map[ref.Val]ref.Val",
    list: "[]ref.Val",
    Semver: "semver.Version",
    Quantity: "*resource.Quantity",
}


def _go_type(value: Any) -> str:
    """Of what cel-go keeps in the value, as far as its errors are known."""
    return _GO_TYPES.get(value.__class__, type_name(value))


def _scalar(value: Any) -> Scalar | None:
    """None for a value of a type that no attribute has."""
    if isinstance(value, Semver):
        text = f"{value.major}.{value.minor}.{value.patch}"
        text += f"-{'.'.join(value.pre)}" if value.pre else ""
        return Version(text + (f"+{'.'.join(value.build)}" if value.build else ""))
    return value if value.__class__ in (bool, int, str) else None


class Selector:
    """One compiled expression."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.expression = program.text

    @cached_property
    def most(self) -> int:
        """What it may cost at most, as the API server reckons when it is created."""
        return estimate(self.program.node, self.program.checked, _size_of)

    @cached_property
    def _cheap(self) -> bool:
        """Whether no device within the API's limits makes it cost what it may not.

        The estimate is no bound: what is read from a value of unknown type counts nothing there,
        and the texts in a list of unknown type neither. Both are far below a thousandfold, where
        no text is made longer.
        """
        program = self.program
        return self.most + program.steps <= MOST_COST // 1000 and not program.grows

    @property
    def too_complex(self) -> str:
        """The API server's words for a new object with this expression; '' where it takes it."""
        return TOO_COMPLEX if self.most > MOST_COST else ""

    def matches(self, device: Device) -> Answer:
        """Whether the device is one of those meant."""
        if device.broken:
            return RuntimeProblem(device.broken)
        try:
            counted = not (self._cheap and device.within_limits)
            if counted and self.program.cost(device.variables, MOST_COST) > MOST_COST:
                return RuntimeProblem(CANCELLED)
            found = self.program.evaluate(device.variables)
        except Fail as fault:
            return RuntimeProblem(enhanced(str(fault)))
        except Unsure as fault:
            return NotEvaluable(f"{fault} ({self.expression})")
        if found.__class__ is bool:
            return bool(found)
        return RuntimeProblem(_not_bool(found))


def enhanced(message: str) -> str:
    """The hint that Kubernetes 1.36 and newer adds to ``no such key``."""
    return message + _HINT if "no such key:" in message else message


def _not_bool(value: Any) -> str:
    name = type_name(value)
    reasons = {
        "int": "unsupported type conversion from 'int' to bool",
        "string": "unsupported native conversion from string to 'bool'",
        "list": "type conversion error from list to 'bool'",
        "map": "type conversion error from map to 'bool'",
        "kubernetes.Semver": "type conversion error from 'Semver' to 'bool'",
        "kubernetes.Quantity": "type conversion error from 'Quantity' to 'bool'",
    }
    return f"CEL result of type {name} could not be converted to bool: {reasons.get(name, '')}"


# -- the environment -------------------------------------------------------------------------------

_DEVICE = "kubernetes.DRADevice"


class _Structs:
    """The type of ``device``."""

    def __init__(self, *, lists: bool, shared: bool) -> None:
        leaf = types.DYN if lists else types.ANY
        self._fields: dict[str, Type] = {
            "driver": types.STRING,
            "attributes": types.map_of(types.STRING, types.map_of(types.STRING, leaf)),
            "capacity": types.map_of(
                types.STRING, types.map_of(types.STRING, types.read("quantity"))
            ),
        }
        self.leaf = leaf
        if shared:
            self._fields["allowMultipleAllocations"] = types.BOOL

    def field(self, struct: str, name: str) -> Type | None:
        return self._fields.get(name) if struct == _DEVICE else None

    def message(self, name: str) -> Type | None:
        return None


class _Declared(Struct, frozen=True):
    """How large a value may be, and what lies in it."""

    most: int
    fields: dict[str, _Declared] = {}
    key: _Declared | None = None
    value: _Declared | None = None


_ATTRIBUTE = _Declared(64)
"""DeviceAttributeMaxValueLength; a list has at most 48 values."""


def _domains(leaf: _Declared) -> _Declared:
    """DeviceMaxDomainLength, DeviceMaxIDLength, ResourceSliceMaxAttributesAndCapacitiesPerDevice"""
    return _Declared(32, key=_Declared(63), value=_Declared(32, key=_Declared(32), value=leaf))


_DECLARED = _Declared(
    0,
    {
        "driver": _Declared(63),
        "allowMultipleAllocations": _Declared(1),
        "attributes": _domains(_ATTRIBUTE),
        "capacity": _domains(_Declared(0)),
    },
)


def _size_of(path: tuple[str, ...]) -> Size | None:
    """The sizes that the API allows; cel/compile.go sizeEstimator."""
    if path[0] != "device":
        return None
    found: _Declared | None = _DECLARED
    for step in path[1:]:
        assert found is not None
        if step in ("@items", "@values"):
            found = found.value
        elif step == "@keys":
            found = found.key
        elif step in found.fields:
            found = found.fields[step]
        else:
            found = _ATTRIBUTE if found.value is _ATTRIBUTE else None
        if found is None:
            return None
    return (0, found.most) if found else None


_INCLUDES = declare("dyn::includes(dyn): bool", includes)
"""With list attributes already in 1.36; everywhere in CEL since 1.37."""


@lru_cache(maxsize=16)
def _environment(version: int, lists: bool, shared: bool) -> tuple[Environment, _Structs]:
    structs = _Structs(lists=lists, shared=shared)
    return (
        Environment(
            {"device": types.struct(_DEVICE)},
            structs=structs,
            version=version,
            functions=(_INCLUDES,) if lists and version < 37 else (),
        ),
        structs,
    )


def compile(
    expression: str,
    *,
    kubernetes: str = "1.37",
    list_attributes: bool = True,
    consumable_capacity: bool = True,
    new: bool = False,
) -> Selector | Problem:
    """The selector, or why the API server refuses it.

    The defaults are those of expressions that are stored already: the scheduler lets them use
    whatever some feature gate would allow. For an object that is being created pass what the
    cluster's gates DRAListTypeAttributes and DRAConsumableCapacity say, and ``new``: it may use
    the functions of the version before the cluster's alone, so that a downgrade is possible.
    """
    minor = int(kubernetes.split(".")[1]) - new
    return _compile(expression, minor, list_attributes, consumable_capacity)


def derivation(
    expression: str,
    *,
    kubernetes: str = "1.37",
    list_attributes: bool = True,
    new: bool = False,
) -> Derivation | Problem:
    """The expression of a derived attribute, or why the API server refuses it; see ``compile``."""
    return _derivation(expression, int(kubernetes.split(".")[1]) - new, list_attributes)


@lru_cache(maxsize=1024)
def _derivation(expression: str, minor: int, lists: bool) -> Derivation | Problem:
    if len(expression) > LONGEST:
        return Problem(f"Too long: may not be more than {LONGEST} bytes", "too-long")
    environment, _ = _environment(minor, lists and minor >= 36, minor >= 34)
    scalars = (types.BOOL, types.INT, types.STRING, types.ANY, types.DYN, types.read("semver"))

    def accept(found: Type) -> str:
        if found in scalars:
            return ""
        if lists and found.kind == "list" and found.params[0] in scalars:
            return ""
        more = " or a list of these scalars" if lists else ""
        return (
            "must evaluate to a primitive scalar (string, integer, boolean, semver)"
            f"{more}, not {found}"
        )

    try:
        return Derivation(environment.compile(expression, accept))
    except CompileError as fault:
        return Problem(str(fault))


@lru_cache(maxsize=4096)
def _compile(expression: str, minor: int, lists: bool, shared: bool) -> Selector | Problem:
    if len(expression.encode()) > LONGEST:
        return Problem(f"Too long: may not be more than {LONGEST} bytes", "too-long")
    environment, structs = _environment(minor, lists and minor >= 36, shared and minor >= 34)

    def accept(found: Type) -> str:
        if found in (types.BOOL, structs.leaf):
            return ""
        return f"must evaluate to bool or the unknown type, not {found}"

    try:
        return Selector(environment.compile(expression, accept))
    except CompileError as fault:
        said = str(fault)
        internal = said.startswith("program instantiation failed")
        return Problem(said, "internal" if internal else "invalid")
