"""Nodes and values: the frozen things a graph is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optimizer.ir.tensor import Tensor
from optimizer.ir.types import MapType, OpaqueType, OptionalType, SequenceType, TensorType, ValueType

if TYPE_CHECKING:
    from optimizer.ir.graph import Graph

IR_DOMAIN = "oinfer.ir"
"""Reserved domain of the vertices that are not operators.

Input (attribute ``default`` where callers may leave it out), Constant (attribute ``value``), Capture,
Annotation (reads a tensor and its quantization parameters, attribute ``keys``), Output (the sink).
"""


class Value(NamedTuple):
    """Output number ``output`` of the vertex ``node``."""

    node: int
    output: int = 0


class Use(NamedTuple):
    """Operand ``slot`` of the vertex ``node`` (captures count on after the inputs)."""

    node: int
    slot: int


class AttributeKind(IntEnum):
    """Kinds of attributes, numbered as ``onnx.AttributeProto.AttributeType``."""

    FLOAT = 1
    INT = 2
    STRING = 3
    TENSOR = 4
    GRAPH = 5
    FLOATS = 6
    INTS = 7
    STRINGS = 8
    TENSORS = 9
    GRAPHS = 10
    SPARSE_TENSOR = 11
    SPARSE_TENSORS = 12
    TYPE_PROTO = 13
    TYPE_PROTOS = 14


@dataclass(frozen=True, slots=True)
class SparseTensor:
    """A constant given by ``values`` [NNZ] at ``indices`` [NNZ] or [NNZ, rank] of ``shape``."""

    values: Tensor
    indices: Tensor
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute. ``reference`` names the function attribute it stands for, if any."""

    kind: AttributeKind
    value: Any
    reference: str = ""
    doc_string: str = ""

    @classmethod
    def of(cls, value: Any) -> Attribute:
        """Wraps a plain Python value; the kind follows from its type.

        Raises:
            TypeError: no attribute kind holds such a value, or an empty list leaves it open.
        """
        if isinstance(value, Attribute):
            return value
        if isinstance(value, (np.ndarray, np.generic)) and not isinstance(value, (float, int)):
            value = value.tolist() if np.ndim(value) <= 1 else Tensor.of(value)
        if isinstance(value, (list, tuple)):
            items = tuple(value)
            if not items:
                raise TypeError("an empty list has no attribute kind: give an Attribute")
            kinds = {_kind_of(item) for item in items}
            if kinds == {AttributeKind.INT, AttributeKind.FLOAT}:
                kinds = {AttributeKind.FLOAT}
            (kind,) = kinds
            return cls(_PLURAL[kind], tuple(map(_single, items)) if kind is AttributeKind.FLOAT else items)
        if isinstance(value, float):
            return cls(AttributeKind.FLOAT, _single(value))
        return cls(_kind_of(value), int(value) if isinstance(value, bool) else value)


def _single(value: float) -> float:
    """The nearest number that a file can hold: ONNX's float attributes are single precision."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _kind_of(value: Any) -> AttributeKind:
    if isinstance(value, (bool, int)):
        return AttributeKind.INT
    for types, kind in _KINDS:
        if isinstance(value, types):
            return kind
    if hasattr(value, "topological"):  # a Graph; importing it here would be a cycle
        return AttributeKind.GRAPH
    raise TypeError(f"no attribute kind holds a {type(value).__name__}")


_KINDS: tuple[tuple[Any, AttributeKind], ...] = (
    (float, AttributeKind.FLOAT),
    ((str, bytes), AttributeKind.STRING),
    (Tensor, AttributeKind.TENSOR),
    (SparseTensor, AttributeKind.SPARSE_TENSOR),
    ((TensorType, SequenceType, OptionalType, MapType, OpaqueType), AttributeKind.TYPE_PROTO),
)
_PLURAL = {
    AttributeKind.FLOAT: AttributeKind.FLOATS,
    AttributeKind.INT: AttributeKind.INTS,
    AttributeKind.STRING: AttributeKind.STRINGS,
    AttributeKind.TENSOR: AttributeKind.TENSORS,
    AttributeKind.GRAPH: AttributeKind.GRAPHS,
    AttributeKind.SPARSE_TENSOR: AttributeKind.SPARSE_TENSORS,
    AttributeKind.TYPE_PROTO: AttributeKind.TYPE_PROTOS,
}


@dataclass(frozen=True, slots=True)
class ValueInfo:
    """Name and declared type of a value. An output with an empty name is omitted or anonymous."""

    name: str = ""
    type: ValueType | None = None
    doc_string: str = ""
    metadata: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a node comes from: its texts in the model, or the rule that made it."""

    doc_string: str = ""
    metadata: tuple[tuple[str, str], ...] = ()
    rule: str = ""
    sources: tuple[str, ...] = ()


_NO_ATTRIBUTES: Mapping[str, Attribute] = MappingProxyType({})
_NO_ORIGIN = Origin()


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One vertex of a graph.

    ``inputs`` is the truth about what it reads (``None`` for an omitted optional input);
    ``captures`` are the outer values that its bodies read, body after body, in the order of
    each body's Capture vertices. ``outputs`` has one entry for each output, used or not.
    For the sink (op type ``Output``) ``outputs[i]`` declares the graph output that reads
    ``inputs[i]``.
    """

    id: int
    op_type: str
    domain: str = ""
    inputs: tuple[Value | None, ...] = ()
    attributes: Mapping[str, Attribute] = field(default_factory=lambda: _NO_ATTRIBUTES)
    outputs: tuple[ValueInfo, ...] = (ValueInfo(),)
    captures: tuple[Value, ...] = ()
    overload: str = ""
    name: str = ""
    origin: Origin = _NO_ORIGIN

    @property
    def operands(self) -> tuple[Value | None, ...]:
        """Inputs, then captures: what a ``Use.slot`` counts."""
        return self.inputs + self.captures if self.captures else self.inputs

    @property
    def is_operator(self) -> bool:
        """False for the Input, Constant, Capture and Output vertices."""
        return self.domain != IR_DOMAIN

    @property
    def op(self) -> str:
        """``domain::op_type``, or just the op type in the default domain."""
        return f"{self.domain}::{self.op_type}" if self.domain else self.op_type

    def reading(self, inputs: tuple[Value | None, ...], captures: tuple[Value, ...]) -> Node:
        """This vertex with other operands."""
        # Spelled out, since dataclasses.replace takes several times as long and edits are made of this.
        return Node(
            self.id,
            self.op_type,
            self.domain,
            inputs,
            self.attributes,
            self.outputs,
            captures,
            self.overload,
            self.name,
            self.origin,
        )

    def declaring(self, outputs: tuple[ValueInfo, ...]) -> Node:
        """This vertex with other declarations of its outputs."""
        return Node(
            self.id,
            self.op_type,
            self.domain,
            self.inputs,
            self.attributes,
            outputs,
            self.captures,
            self.overload,
            self.name,
            self.origin,
        )

    def value(self, index: int = 0) -> Value:
        """Output ``index`` as a value."""
        return Value(self.id, index)

    def input(self, index: int) -> Value | None:
        """Input ``index``, or ``None`` where it is omitted or beyond the last."""
        return self.inputs[index] if index < len(self.inputs) else None

    def attr(self, name: str, default: Any = None) -> Any:
        """The plain value of an attribute, or ``default`` where it is absent."""
        attribute = self.attributes.get(name)
        return default if attribute is None else attribute.value

    @property
    def bodies(self) -> tuple[tuple[str, Graph], ...]:
        """The (path element, graph) pairs of its If, Loop or Scan bodies, in attribute order."""
        found: list[tuple[str, Graph]] = []
        for name, attribute in self.attributes.items():
            if attribute.kind is AttributeKind.GRAPH and not attribute.reference:
                found.append((name, attribute.value))
            elif attribute.kind is AttributeKind.GRAPHS:
                found.extend((f"{name}[{i}]", body) for i, body in enumerate(attribute.value))
        return tuple(found)

    def captures_of(self, position: int) -> tuple[Value, ...]:
        """The part of ``captures`` that binds the Capture vertices of body ``position``."""
        bodies = [body for _, body in self.bodies]
        start = sum(len(body.captures) for body in bodies[:position])
        return self.captures[start : start + len(bodies[position].captures)]


def attributes_of(attributes: Mapping[str, Any]) -> Mapping[str, Attribute]:
    """A read-only mapping of attributes; plain values are wrapped, ``None`` entries dropped."""
    if not attributes:
        return _NO_ATTRIBUTES
    return MappingProxyType({k: Attribute.of(v) for k, v in attributes.items() if v is not None})


def infos_of(outputs: int | Iterable[ValueInfo | str]) -> tuple[ValueInfo, ...]:
    """Output declarations from a count of anonymous outputs, names, or declarations."""
    if isinstance(outputs, int):
        return (ValueInfo(),) * outputs
    return tuple(o if isinstance(o, ValueInfo) else ValueInfo(o) for o in outputs)
