"""One node on known inputs, and whether it may be replaced by what comes out: constant folding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from optimizer.ir import Attribute, DType, Function, Graph, Node, TensorType, Value
from optimizer.runtime.compiler import Compiler, FunctionKey
from optimizer.runtime.context import ExecutionContext
from optimizer.runtime.errors import ExecutionError
from optimizer.runtime.options import Options
from optimizer.runtime.plan import checked_kernel
from optimizer.runtime.registry import Kernel
from optimizer.runtime.resolve import find_kernel, opset_of

Functions = Mapping[FunctionKey, Function]


def evaluate(
    graph: Graph,
    node: Node,
    inputs: Sequence[Any],
    *,
    captures: Sequence[Any] = (),
    functions: Functions | None = None,
    options: Options | None = None,
    opsets: Mapping[str, int] | None = None,
    bindings: Mapping[str, Attribute] | None = None,
) -> list[Any]:
    """The outputs of one node of ``graph`` for the given inputs.

    Args:
        inputs: one per input of the node, ``None`` where it is omitted.
        captures: what its bodies read from outside, one per ``node.captures``.
        opsets: those of the model, needed only where ``graph`` is a body without its own.
        bindings: in a function, the attributes it is called with; one that is missing is absent.

    Returns:
        One value per declared output; ``None`` for one that the kernel leaves out.

    Raises:
        MissingKernel: nothing can run the node.
        ExecutionError: the kernel refused its inputs.
    """
    context = ExecutionContext(options)
    compiler = Compiler(graph, context, opsets or graph.opsets, functions or {}, bindings or {})
    kernel, call = compiler.step(node)
    run = checked_kernel(kernel.run, kernel, call)
    context.begin()
    values = [*inputs, *captures]
    try:
        with np.errstate(all="ignore"):
            result = run(call, *values)
    except ExecutionError:
        raise
    except Exception as error:
        raise ExecutionError.at(call, values, error) from error
    results = result if isinstance(result, tuple) else (result,)
    made = [np.asarray(r) if isinstance(r, np.generic) else r for r in results[: len(node.outputs)]]
    return made + [None] * (len(node.outputs) - len(made))


def is_foldable(
    node: Node, graph: Graph, functions: Functions | None = None, opsets: Mapping[str, int] | None = None
) -> bool:
    """Whether the node computes the same wherever it runs, so that constants may replace it.

    False for random ops, training-mode Dropout, ImageDecoder, ops nothing here knows, whatever has
    one of these in a body or function, and nodes that refer to an attribute of the function around.
    """
    return not _refers(node) and _every(node, graph, functions or {}, opsets or graph.opsets, _foldable, ())


def is_exact(
    node: Node, graph: Graph, functions: Functions | None = None, opsets: Mapping[str, int] | None = None
) -> bool:
    """Whether any correct runtime computes the same bits: data movement, integers, IEEE + - * / sqrt.

    Element types are taken from constants and declarations; where one is needed and unknown, the
    answer is False. Inside bodies and functions nothing but declared types is known.
    """
    return not _refers(node) and _every(node, graph, functions or {}, opsets or graph.opsets, _exact, ())


def _refers(node: Node) -> bool:
    """Whether the node or its bodies need the attributes of the function they are in."""
    return any(a.reference for a in node.attributes.values()) or any(
        _refers(inner) for _, body in node.bodies for inner in body.nodes
    )


def _every(
    node: Node,
    graph: Graph,
    functions: Functions,
    opsets: Mapping[str, int],
    holds: Any,
    calls: tuple[FunctionKey, ...],
) -> bool:
    """Whether ``holds(kernel, node, graph)`` for a node and everything its bodies and functions do."""
    key = (node.domain, node.op_type, node.overload)
    function = functions.get(key)
    if function is not None:
        body = function.graph
        return key not in calls and all(
            _every(n, body, functions, body.opsets or opsets, holds, (*calls, key)) for n in body.nodes
        )
    kernel = find_kernel(node.domain, node.op_type, opset_of(opsets, node.domain))
    if kernel is None or not holds(kernel, node, graph):
        return False
    return all(
        _every(n, body, functions, body.opsets or opsets, holds, calls)
        for _, body in node.bodies
        for n in body.nodes
    )


def _foldable(kernel: Kernel, node: Node, graph: Graph) -> bool:
    allowed = kernel.foldable
    return allowed(node, graph) if callable(allowed) else allowed and kernel.deterministic


def _exact(kernel: Kernel, node: Node, graph: Graph) -> bool:
    if kernel.exact != "integer":
        return bool(kernel.exact)
    kinds = [_dtype(graph, v) for v in node.inputs if v is not None]
    return all(kind is not None and (kind.is_integer or kind is DType.BOOL) for kind in kinds)


def _dtype(graph: Graph, value: Value) -> DType | None:
    tensor = graph.tensor(value)
    if tensor is not None:
        return tensor.dtype
    declared = graph.info(value).type
    return declared.dtype if isinstance(declared, TensorType) else None
