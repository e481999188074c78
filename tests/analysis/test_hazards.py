"""Sizes 0 and 1, and broadcasts: where a wrong guess would be invisible until somebody feeds such a size."""

from __future__ import annotations

import numpy as np
import pytest

from optimizer.analysis import Dim, Facts, broadcasts_to, same_shape
from optimizer.analysis.ops.views import reshape_dims
from optimizer.io import parse

N, M, S = Dim.of("N"), Dim.of("M"), Dim.of("S")


def facts_of(inputs: str, nodes: str, **constants: list[int]) -> Facts:
    text = f'<ir_version: 10, opset_import: ["" : 21]> g ({inputs}) => (float y) {{ {nodes} }}'
    return Facts(parse(text, constants={k: np.array(v) for k, v in constants.items()}).graph)


def output(facts: Facts) -> str:
    return str(facts.of(facts.graph.outputs[0]))


def test_reshape_entry_that_may_be_zero_copies_the_input() -> None:
    """Entry N of a Reshape copies M when N is 0."""
    facts = facts_of(
        "float[M,2] x, float[N] z",
        "s = Shape(z) k = Constant<value_ints=[2]>() t = Concat<axis=0>(s, k) y = Reshape(x, t)",
    )
    first = facts.shape(facts.graph.outputs[0])[0]
    assert first.eq(N) is None
    assert first.evaluate({"N": 0, "M": 5}) == 5
    assert first.evaluate({"N": 4, "M": 4}) == 4


def test_reshape_entry_equal_to_the_input_dimension_is_known() -> None:
    assert reshape_dims((N, S, Dim.of(8)), [N, S, Dim.of(2), Dim.of(4)], allow_zero=False) == (N, S, 2, 4)


def test_reshape_with_allowzero_takes_zero_literally() -> None:
    assert reshape_dims((N, S), [N, Dim.of(0)], allow_zero=True) == (N, 0)


def test_reshape_rest_that_may_be_zero_beside_an_unknown_entry_decides_nothing() -> None:
    shape = reshape_dims((N, Dim.of(12)), [N, None, Dim.of(4)], allow_zero=False)
    assert shape[1].is_known is False


def test_expand_target_may_hold_one() -> None:
    facts = facts_of("float[N] x, float[M] z", "s = Shape(z) y = Expand(x, s)")
    assert output(facts) == "float[bcast(M, N)]"


def test_broadcast_never_equates_two_dims() -> None:
    facts = facts_of("float[N,4] x, float[K,1] z", "y = Add(x, z)")
    dims = facts.shape(facts.graph.outputs[0])
    assert dims[0].eq(N) is None
    assert dims[0].evaluate({"N": 0, "K": 1}) == 0
    assert dims[0].evaluate({"N": 1, "K": 7}) == 7


def test_constant_operand_may_raise_the_rank() -> None:
    facts = facts_of("float[N,4] x", "y = Add(x, k)", k=np.float32([[[0.0]]]))
    assert output(facts) == "float[1, N, 4]"


def test_squeeze_without_axes_stays_unknown_while_a_dim_may_be_one() -> None:
    assert (
        facts_of("float[N,1] x", "y = Squeeze(x)").rank(
            facts_of("float[N,1] x", "y = Squeeze(x)").graph.outputs[0]
        )
        is None
    )


def test_same_shape_needs_proof() -> None:
    assert same_shape((N, Dim.of(3)), (N, Dim.of(3)))
    assert not same_shape((N,), (M,))
    assert not same_shape((N,), (N, Dim.of(1)))
    assert not same_shape(None, None)


@pytest.mark.parametrize(
    ("shape", "target", "expected"),
    [
        ((N,), (N,), True),
        ((Dim.of(1),), (N,), True),
        ((N,), (Dim.of(3),), True),
        ((N,), (M,), False),
        ((N,), (Dim.of(1),), False),
        ((Dim.of(1), N), (N,), False),
        ((), (N,), True),
    ],
)
def test_broadcasts_to(shape: tuple[Dim, ...], target: tuple[Dim, ...], expected: bool) -> None:
    assert broadcasts_to(shape, target) is expected


def test_negative_declared_dim_is_unknown() -> None:
    from optimizer.ir import DType, Graph, TensorType, ValueInfo

    graph = Graph("g", {"": 21})
    x = graph.add_input(ValueInfo("x", TensorType(DType.FLOAT, (-1, 3))))
    assert str(Facts(graph).of(x)) == "float[x:0, 3]"


def test_declared_static_dim_of_a_known_operator_never_wins() -> None:
    from optimizer.ir import DType, Graph, TensorType, ValueInfo

    graph = Graph("g", {"": 21})
    x = graph.add_input(ValueInfo("x", TensorType(DType.FLOAT, ("N", 3))))
    right = graph.add("Relu", [x], outputs=[ValueInfo("a", TensorType(DType.FLOAT, (5, 3)))])
    wrong = graph.add("Relu", [x], outputs=[ValueInfo("b", TensorType(DType.FLOAT, ("N", 4)))])
    opaque = graph.add(
        "Mystery", [x], domain="my", outputs=[ValueInfo("c", TensorType(DType.FLOAT, ("N", 7)))]
    )
    facts = Facts(graph)
    assert str(facts.of(right.value())) == "float[N, 3]"
    assert facts.warnings == []
    assert str(facts.of(wrong.value())) == "float[N, 3]"
    assert len(facts.warnings) == 1
    assert "'b'" in facts.warnings[0]
    assert str(facts.of(opaque.value())) == "float[N, 7]"


def test_impossible_nodes_give_a_warning_and_no_shape() -> None:
    facts = facts_of("float[2,3] x, float[4,5] z", "y = MatMul(x, z)")
    assert facts.shape(facts.graph.outputs[0]) is None
    assert "inner dimensions 3 and 4" in facts.warnings[0]
