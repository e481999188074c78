"""What a kernel knows about the node it computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np

from optimizer.ir import DType, Tensor, ValueInfo
from optimizer.runtime.context import ExecutionContext
from optimizer.runtime.precision import Array, true_dtype, true_value


@cache
def _single(value: float) -> float:
    return float(np.float32(value))


class Nothing:
    """The empty optional: a value, unlike ``None``, which is an omitted input."""

    def __repr__(self) -> str:
        return "NONE"


NONE = Nothing()


class Body(Protocol):
    """A compiled body with its captures bound."""

    input_infos: tuple[ValueInfo, ...]
    output_infos: tuple[ValueInfo, ...]

    def __call__(self, *inputs: Any) -> list[Any]:
        """Runs the body once."""
        ...


class Call:
    """One node, as its kernel sees it. Made once when a session is compiled.

    Attributes:
        op_type, domain, name: the node's own.
        opset: the model's version of the node's domain.
        since: the version the running kernel was registered for.
        inputs: the names of the node's inputs, empty for those without one.
        outputs: the node's output declarations.
        truth: float64 mode; every float tensor is float64 whatever the model says.
        context: options, random state and limits of the run.
    """

    NONE = NONE

    __slots__ = (
        "_attributes",
        "_constant_inputs",
        "_derived",
        "_latest",
        "_wanted",
        "bodies",
        "context",
        "domain",
        "inputs",
        "key",
        "name",
        "op_type",
        "opset",
        "outputs",
        "since",
        "truth",
    )

    def __init__(
        self,
        op_type: str,
        attributes: Mapping[str, Any] | None = None,
        *,
        opset: int,
        domain: str = "",
        name: str = "",
        since: int = 0,
        inputs: tuple[str, ...] = (),
        outputs: tuple[ValueInfo, ...] = (ValueInfo(),),
        wanted: Sequence[bool] = (),
        constant_inputs: frozenset[int] = frozenset(),
        context: ExecutionContext | None = None,
        bodies: Mapping[str, Body] | None = None,
        key: int = 0,
    ) -> None:
        self.op_type = op_type
        self.domain = domain
        self.name = name
        self.opset = opset
        self.since = since or opset
        self.inputs = inputs
        self.outputs = outputs
        self.context = context or ExecutionContext()
        self.truth = self.context.options.truth
        self.bodies: Mapping[str, Body] = bodies or {}
        self.key = key
        self._attributes = {k: self._plain(v) for k, v in (attributes or {}).items()}
        self._wanted = tuple(wanted) or (True,) * len(outputs)
        self._constant_inputs = constant_inputs
        self._derived: dict[Any, Any] = {}
        self._latest: tuple[Any, Any] = (None, None)

    def attr(self, name: str, default: Any = None) -> Any:
        """The attribute's value, or ``default`` where the node has none.

        float, int and str as such, lists as tuples, tensors as arrays, types as ``ValueType``.
        Schema defaults are not filled in: the kernel states them. A float becomes what an attribute
        would hold of it, which is a float32.
        """
        value = self._attributes.get(name, default)
        return value if value is not default or default.__class__ is not float else _single(default)

    def has(self, name: str) -> bool:
        """Whether the node has the attribute."""
        return name in self._attributes

    @property
    def attributes(self) -> Mapping[str, Any]:
        """All attributes, by name."""
        return self._attributes

    @property
    def output_count(self) -> int:
        """Number of outputs the node declares, used or not."""
        return len(self.outputs)

    def wants(self, index: int) -> bool:
        """Whether anything reads output ``index``; a kernel may leave out what nothing reads."""
        return index < len(self._wanted) and self._wanted[index]

    def dtype(self, number: int, default: Any = None) -> np.dtype[Any]:
        """The NumPy dtype of an ONNX element type; float64 for every float in truth mode.

        Args:
            number: an ``onnx.TensorProto.DataType`` number; 0 stands for ``default``.
            default: a NumPy dtype.
        """
        if not number and default is not None:
            found: np.dtype[Any] = np.dtype(default)
            return found
        return self.real(DType(number).numpy)

    def real(self, dtype: Any) -> np.dtype[Any]:
        """``dtype``, or float64 where it is float16, bfloat16 or float32 and truth mode is on."""
        return true_dtype(np.dtype(dtype)) if self.truth else np.dtype(dtype)

    def constant(self, *slots: int) -> bool:
        """Whether all these inputs are constants of the model."""
        return self._constant_inputs.issuperset(slots)

    def derived(self, slot: int, key: Any, make: Callable[[], Array]) -> Array:
        """``make()``, remembered for the following runs where input ``slot`` is a constant.

        For forms of a weight that are dear to make (reshaped, cast). ``key`` must tell apart
        everything but the input itself that the result depends on.
        """
        return self.derived_of((slot,), key, make)

    def derived_of(self, slots: tuple[int, ...], key: Any, make: Callable[[], Array]) -> Array:
        """``derived`` for what depends on several inputs, all of which have to be constants."""
        found: Array | None = self._derived.get((slots, key))
        if found is None:
            found = make()
            if self.constant(*slots) and self.context.grant_cache(found.nbytes):
                self._derived[slots, key] = found
        return found

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """``make()``, remembered: for what depends on attributes (and on ``key``) alone."""
        if key not in self._derived:
            self._derived[key] = make()
        return self._derived[key]

    def latest(self, key: Any, make: Callable[[], Any]) -> Any:
        """``make()``, remembered until it is asked for with another key: for what depends on shapes."""
        if self._latest[0] != key:
            self._latest = key, make()
        return self._latest[1]

    def random(self) -> np.random.Generator:
        """The node's random generator: seeded by session, ``seed`` attribute and node, anew each run."""
        return self.context.generator(self.key, self.attr("seed"))

    def with_bodies(self, bodies: Mapping[str, Body]) -> Call:
        """The same call with other bodies (the same ones with the captures of this execution)."""
        bound = object.__new__(Call)
        for slot in Call.__slots__:
            setattr(bound, slot, getattr(self, slot))
        bound.bodies = bodies
        return bound

    def _plain(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return true_value(value.array) if self.truth else value.array
        if isinstance(value, tuple) and value and isinstance(value[0], Tensor):
            return tuple(self._plain(v) for v in value)
        return value

    def __repr__(self) -> str:
        return f"Call({self.op_type}-{self.opset} '{self.name}')"


__all__ = ["NONE", "Body", "Call", "Nothing", "true_dtype", "true_value"]
