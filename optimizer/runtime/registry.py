"""The kernels of the executor, by domain, op and version.

A kernel is a plain function that computes one operator::

    @kernel("Conv", since=1)
    def conv(call: Call, x: Array, w: Array, b: Array | None = None) -> Array: ...

Contract of a kernel function:

- It receives the node's ``Call`` (attributes, opset, ...) and one positional argument per node
  input. An omitted optional input is ``None``; inputs behind the last one given are not passed, so
  optional parameters have a default of ``None``. Variadic inputs are ``*inputs``.
- A tensor is an ``ndarray`` of ``DType.numpy``: bfloat16, fp8, 4- and 2-bit types are ``ml_dtypes``
  arrays, strings are object arrays of ``str``. A sequence is a Python ``list``; an empty optional is
  the object ``call.NONE``. Inputs are read-only: a kernel never writes into them.
- It returns one value (one output; NumPy scalars are turned into 0-d arrays by the caller), or a
  ``tuple`` of values (several outputs; a shorter tuple leaves the last ones unset). A ``list`` is one
  sequence value, never several outputs. Outputs that ``call.wants(i)`` denies may be ``None``.
- The result may be a view of an input only where the kernel declares ``may_alias=True``.
- ``into(call, out, *inputs)``, where a kernel has it, is the same computation written over ``out``, one
  of the inputs named by ``reuses`` that nobody needs any more: contiguous, writeable, no narrow type.
  It returns ``out``, or ``None`` (and leaves it as it was) where the output has another shape or dtype.
  The bytes must be those that ``run`` would give.
- Inputs have the element types that the kernel declares, or that its operator's schema allows: others
  are refused before it is called.
- float16 and bfloat16 are computed in float32 and rounded once per output (see ``precision``).
  In truth mode the executor hands every float tensor over as float64; a kernel keeps the dtype of
  its inputs, and takes element types named by attributes through ``call.dtype(number)``.
- What is wrong with its inputs it says with ``ValueError`` (or whatever NumPy raises): the executor
  adds node, op, version, shapes and dtypes.

Which kernel runs: of all versions registered for (domain, op) the highest ``since`` that is not above
the model's opset. Several decorators may be stacked on one function. ``call.opset`` is the model's
opset and ``call.since`` that of the chosen kernel.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from optimizer.ir import Graph, Node
from optimizer.runtime.dtypes import Signature, signature

KernelFunction = Callable[..., Any]
Exactness = bool | Literal["integer"]
Foldable = bool | Callable[[Node, Graph], bool]

_F = TypeVar("_F", bound=KernelFunction)


@dataclass(frozen=True, slots=True, order=True)
class Kernel:
    """One registered kernel and what it declares.

    Attributes:
        since: the first opset version it is right for.
        dtypes: the element types of its inputs (see ``dtypes``); empty: those that the schema of the
            operator's version allows.
        exact: the same bits on every machine: data movement, integers, IEEE + - * / sqrt.
            ``"integer"``: only where all its float-capable inputs are integers.
        deterministic: the same inputs give the same outputs.
        foldable: may run at optimization time to replace a node by its result; a function of
            (node, graph) where that depends on the node.
        may_alias: an output may be a view of an input; where only some inputs come into question, their
            positions.
        runs_graphs: an output may be a constant of a body or function that it runs.
        into: the kernel that writes over a dead input.
        reuses: positions of the inputs it may write over.
    """

    since: int
    domain: str = field(compare=False)
    op_type: str = field(compare=False)
    run: KernelFunction = field(compare=False)
    exact: Exactness = field(default=False, compare=False)
    deterministic: bool = field(default=True, compare=False)
    foldable: Foldable = field(default=True, compare=False)
    may_alias: bool | tuple[int, ...] = field(default=False, compare=False)
    runs_graphs: bool = field(default=False, compare=False)
    into: KernelFunction | None = field(default=None, compare=False)
    reuses: tuple[int, ...] = field(default=(), compare=False)
    dtypes: str = field(default="", compare=False)

    def takes(self, opset: int, *, truth: bool = False) -> Signature | None:
        """What its inputs may be at ``opset``; ``None`` where nothing is known of that."""
        return signature(self.dtypes, self.domain, self.op_type, opset, truth)


class KernelRegistry:
    """(domain, op) to its kernels, sorted by version. ``ai.onnx`` is the default domain."""

    def __init__(self) -> None:
        self._kernels: dict[tuple[str, str], list[Kernel]] = {}

    def register(self, kernel: Kernel) -> None:
        """Adds a kernel; one for the same domain, op and version replaces the earlier one."""
        versions = self._kernels.setdefault((_plain(kernel.domain), kernel.op_type), [])
        versions[:] = [k for k in versions if k.since != kernel.since]
        insort(versions, kernel)

    def find(self, domain: str, op_type: str, opset: int) -> Kernel | None:
        """The kernel with the highest ``since`` not above ``opset``, if any. O(log versions)."""
        versions = self._kernels.get((_plain(domain), op_type), [])
        position = bisect_right(versions, opset, key=lambda k: k.since)
        return versions[position - 1] if position else None

    def versions(self, domain: str, op_type: str) -> tuple[int, ...]:
        """Every registered ``since`` of an op, ascending."""
        return tuple(k.since for k in self._kernels.get((_plain(domain), op_type), []))

    def __iter__(self) -> Iterator[Kernel]:
        for key in sorted(self._kernels):
            yield from self._kernels[key]


def _plain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


REGISTRY = KernelRegistry()
"""The kernels of this project; modules of ``optimizer.runtime.kernels`` fill it when imported."""


def kernel(
    op_type: str,
    since: int = 1,
    *,
    domain: str = "",
    exact: Exactness = False,
    deterministic: bool = True,
    foldable: Foldable = True,
    may_alias: bool | tuple[int, ...] = False,
    into: KernelFunction | None = None,
    reuses: tuple[int, ...] = (0,),
    dtypes: str = "",
) -> Callable[[_F], _F]:
    """Registers the decorated function as the kernel of ``op_type`` from version ``since`` on."""

    def register(run: _F) -> _F:
        made = Kernel(since, domain, op_type, run, exact, deterministic, foldable, may_alias, dtypes=dtypes)
        REGISTRY.register(replace(made, into=into, reuses=reuses) if into else made)
        return run

    return register
