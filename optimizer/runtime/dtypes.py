"""Which element types an operator takes: what its kernel declares, else what the operator's schema says.

A kernel of an operator that onnx has no schema for declares them as a schema does, in one line: per
input a type, several (``int8|uint8``), or a letter that stands for the same type wherever it occurs, and
behind semicolons what each letter may be. Three dots behind the last input say that it repeats::

    "T T int32; T: float float16"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from optimizer.ir import DType
from optimizer.runtime.precision import true_dtype

UNCHECKED = "unchecked"
"""Declares nothing: for what is no operator (functions of the model, stand-ins of missing kernels)."""

DTypes = frozenset["np.dtype[Any]"]


@dataclass(frozen=True, slots=True)
class Formal:
    """What one input may be.

    Attributes:
        tensors: element types of a tensor.
        sequences: element types of the tensors of a sequence.
        letter: inputs of the same letter have one type; empty where this one is free.
    """

    tensors: DTypes
    sequences: DTypes = frozenset()
    letter: str = ""

    def takes(self, value: Any) -> bool:
        """Whether a value has one of the types. Of maps and empty optionals nothing is known."""
        if isinstance(value, np.ndarray):
            return value.dtype in self.tensors
        if isinstance(value, list):
            return all(item.dtype in self.sequences for item in value if isinstance(item, np.ndarray))
        return True

    def spelled(self) -> str:
        """``int32 or int64``."""
        names = [_name(t) for t in sorted(self.tensors or self.sequences, key=lambda t: DType.from_numpy(t))]
        listed = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        return listed if self.tensors else f"sequences of {listed}" if names else "no tensor"


@dataclass(frozen=True, slots=True)
class Signature:
    """The inputs of one version of an operator.

    Attributes:
        version: the operator set version it came with.
        formals: one per input; the last one stands for further inputs where ``repeats``.
    """

    version: int
    formals: tuple[Formal, ...]
    repeats: bool = False

    def fault(self, inputs: Sequence[Any]) -> tuple[int, str] | None:
        """The first input of a wrong type, and what is wrong; ``None`` where all are right.

        How many inputs there are is not looked at.
        """
        bound: dict[str, tuple[int, np.dtype[Any]]] = {}
        for position, value in enumerate(inputs):
            if position >= len(self.formals) and not self.repeats:
                return None
            formal = self.formals[min(position, len(self.formals) - 1)]
            if value is None:
                continue
            if not formal.takes(value):
                return position, f"version {self.version} takes {formal.spelled()} there"
            dtype = _dtype(value)
            if formal.letter and dtype is not None:
                first, wanted = bound.setdefault(formal.letter, (position, dtype))
                if wanted != dtype:
                    return position, f"input {first} is {_name(wanted)}, and both have to be of one type"
        return None


@cache
def signature(declared: str, domain: str, op_type: str, opset: int, truth: bool = False) -> Signature | None:
    """What an operator takes; ``None`` where neither its kernel nor a schema says.

    Args:
        declared: what the kernel declares; empty where the schema in force at ``opset`` says it.
        truth: every float16, bfloat16 and float32 is a float64.
    """
    if declared == UNCHECKED:
        return None
    found = _parsed(declared) if declared else _of_schema(domain, op_type, opset)
    return _in_truth(found) if truth and found else found


def checked(
    run: Callable[..., Any], takes: Signature | None, names: Sequence[str] = ()
) -> Callable[..., Any]:
    """A kernel that refuses inputs of types that its operator does not take.

    Args:
        names: of its inputs, for the error.

    Raises:
        ValueError: (the decorated kernel) an input has a wrong type.
    """
    if takes is None:
        return run

    def run_checked(call: Any, *inputs: Any) -> Any:
        fault = takes.fault(inputs)
        if fault is not None:
            position, reason = fault
            named = f" '{names[position]}'" if position < len(names) and names[position] else ""
            raise ValueError(f"input {position}{named} is {_described(inputs[position])}; {reason}")
        return run(call, *inputs)

    return run_checked


def _of_schema(domain: str, op_type: str, opset: int) -> Signature | None:
    from optimizer.io.schemas import inputs_of

    found = inputs_of(op_type, "" if domain == "ai.onnx" else domain, opset)
    if found is None:
        return None
    formals = [
        Formal(
            _named(types, "") | _named(types, "optional("),
            _named(types, "seq(") | _named(types, "optional(seq("),
            letter,
        )
        for types, letter in found.types
    ]
    return Signature(found.since, tuple(formals), found.repeats)


def _named(types: Iterable[str], around: str) -> DTypes:
    """The element types among names such as ``tensor(float)``, ``seq(tensor(float))``."""
    before = f"{around}tensor("
    names = (name.removeprefix(before).rstrip(")") for name in types if name.startswith(before))
    known = (DType.__members__.get(name.upper()) for name in names)  # a newer onnx may have more
    return frozenset(dtype.numpy for dtype in known if dtype is not None)


def _parsed(declared: str) -> Signature:
    inputs, *letters = declared.split(";")
    types = {letter.strip(): names.split() for letter, _, names in (text.partition(":") for text in letters)}
    places = inputs.split()
    repeats = places[-1].endswith("...")
    formals = [
        Formal(
            frozenset(DType[name.upper()].numpy for name in types.get(place) or place.split("|")),
            letter=place if place in types else "",
        )
        for place in (text.removesuffix("...") for text in places)
    ]
    return Signature(1, tuple(formals), repeats)


def _in_truth(found: Signature) -> Signature:
    formals = [
        Formal(f.tensors | _true(f.tensors), f.sequences | _true(f.sequences), f.letter)
        for f in found.formals
    ]
    return Signature(found.version, tuple(formals), found.repeats)


def _true(dtypes: DTypes) -> DTypes:
    return frozenset(true_dtype(dtype) for dtype in dtypes)


def kind_of(value: Any) -> Any:
    """What of a value decides the types of all that is computed from it."""
    return (type(value), _dtype(value))


def _dtype(value: Any) -> np.dtype[Any] | None:
    """The element type of a tensor or of the first tensor of a sequence."""
    if isinstance(value, list):
        value = value[0] if value else None
    return value.dtype if isinstance(value, np.ndarray) else None


def _described(value: Any) -> str:
    """``float32``, ``a sequence of float32``."""
    dtype = _dtype(value)
    if dtype is None:
        return type(value).__name__
    return f"a sequence of {_name(dtype)}" if isinstance(value, list) else _name(dtype)


def _name(dtype: np.dtype[Any]) -> str:
    return "string" if dtype.kind == "O" else dtype.name
