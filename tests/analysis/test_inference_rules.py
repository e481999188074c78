"""Tables: operators, facts about their inputs, and what must follow."""

from __future__ import annotations

import re

import numpy as np
import pytest

from optimizer.analysis import Dim, Facts
from optimizer.analysis.ops.slicing import slice_length
from optimizer.io import parse, to_proto
from optimizer.verify.engines import OnnxRuntime

SHAPES = [
    # inputs, nodes, expected fact of y
    ("float[N,C] x", "y = Relu(x)", "float[N, C]"),
    ("float[N,3] x, float[3] z", "y = Add(x, z)", "float[N, 3]"),
    ("float[N,3] x, float[N,1] z", "y = Mul(x, z)", "float[N, 3]"),
    ("float[N] x, float[M] z", "y = Mul(x, z)", "float[bcast(M, N)]"),
    ("float[N] x, float[4] z", "y = Mul(x, z)", "float[4]"),
    ("float[N] x, float[1] z", "y = Mul(x, z)", "float[N]"),
    ("float[N] x, float[N] z", "y = Less(x, z)", "bool[N]"),
    ("bool[N,1] c, float[1,M] x, float[N,M] z", "y = Where(c, x, z)", "float[N, M]"),
    ("float16[N] x", "y = Cast<to=7>(x)", "int64[N]"),
    ("float[N] x, int32[1] z", "y = CastLike(x, z)", "int32[N]"),
    ("float[N] x", "y = IsNaN(x)", "bool[N]"),
    # matrix products
    ("float[B,M,K] x, float[B,K,P] z", "y = MatMul(x, z)", "float[B, M, P]"),
    ("float[B,H,M,K] x, float[K,P] z", "y = MatMul(x, z)", "float[B, H, M, P]"),
    ("float[K] x, float[B,K,P] z", "y = MatMul(x, z)", "float[B, P]"),
    ("float[M,K] x, float[K] z", "y = MatMul(x, z)", "float[M]"),
    ("float[K,M] x, float[P,K] z", "y = Gemm<transA=1, transB=1>(x, z)", "float[M, P]"),
    ("uint8[M,K] x, uint8[K,P] z", "y = MatMulInteger(x, z)", "int32[M, P]"),
    ("float[B,I,J] x, float[B,J,K] z", 'y = Einsum<equation="bij,bjk->bik">(x, z)', "float[B, I, K]"),
    ("float[B,I,J] x", 'y = Einsum<equation="...ij->...ji">(x)', "float[B, J, I]"),
    # convolutions and pools
    ("float[N,3,H,W] x, float[8,3,3,3] w", "y = Conv<pads=[1,1,1,1]>(x, w)", "float[N, 8, H, W]"),
    (
        "float[N,3,H,W] x, float[8,3,3,3] w",
        "y = Conv<strides=[2,2], pads=[1,1,1,1]>(x, w)",
        "float[N, 8, ((H + 1)//2), ((W + 1)//2)]",
    ),
    (
        "float[N,3,H,9] x, float[8,3,3,3] w",
        'y = Conv<strides=[2,2], auto_pad="SAME_UPPER">(x, w)',
        "float[N, 8, ((H + 1)//2), 5]",
    ),
    ("float[N,4,L] x, float[8,2,3] w", "y = Conv<group=2, dilations=[2]>(x, w)", "float[N, 8, L - 4]"),
    ("float[N,3,H,W] x, float[3,8,2,2] w", "y = ConvTranspose<strides=[2,2]>(x, w)", "float[N, 8, 2*H, 2*W]"),
    (
        "float[N,4,H,W] x, float[4,2,3,3] w",
        "y = ConvTranspose<group=2, strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]>(x, w)",
        "float[N, 4, 2*H, 2*W]",
    ),
    (
        "float[N,C,H,W] x",
        "y = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x)",
        "float[N, C, max(((H + 1)//2), 1), max(((W + 1)//2), 1)]",
    ),
    (
        "float[N,C,7,7] x",
        "y = AveragePool<kernel_shape=[2,2], strides=[2,2], ceil_mode=1>(x)",
        "float[N, C, 4, 4]",
    ),
    ("float[N,C,H,W] x", "y = GlobalAveragePool(x)", "float[N, C, 1, 1]"),
    # normalizations and reductions
    ("float[N,C] x, float[C] s", "y = LayerNormalization(x, s)", "float[N, C]"),
    ("float[N,C,H] x", "y = ReduceMean<keepdims=0>(x)", "float[]"),
    ("float[N,C,H] x", "a = ints[-1] y = ReduceMax(x, a)", "float[N, C, 1]"),
    ("float[N,C,H] x", "a = ints[0,2] y = ReduceSum<keepdims=0>(x, a)", "float[C]"),
    ("float[N,C] x", "y = ReduceSum<noop_with_empty_axes=1>(x)", "float[N, C]"),
    ("float[N,C] x", "y = ArgMax<axis=1, keepdims=0>(x)", "int64[N]"),
    ("float[N,C] x", "k = ints[5] y, i = TopK(x, k)", "float[N, 5]"),
    # views
    ("float[N,2,C] x", "s = ints[0,-1] y = Reshape(x, s)", "float[N, 2*C]"),
    ("float[N,C] x", "s = ints[-1,4] y = Reshape(x, s)", "float[((C*N)//4), 4]"),
    ("float[N,C,H] x", "y = Flatten<axis=2>(x)", "float[C*N, H]"),
    ("float[N,1,C] x", "a = ints[1] y = Squeeze(x, a)", "float[N, C]"),
    ("float[3,1,4] x", "y = Squeeze(x)", "float[3, 4]"),
    ("float[N,C] x", "a = ints[0,-1] y = Unsqueeze(x, a)", "float[1, N, C, 1]"),
    ("float[N,C,H] x", "y = Transpose<perm=[2,0,1]>(x)", "float[H, N, C]"),
    ("float[N,1] x", "s = ints[1,7] y = Expand(x, s)", "float[N, 7]"),
    # movement
    ("float[N,2] x, float[M,2] z", "y = Concat<axis=0>(x, z)", "float[M + N, 2]"),
    ("float[N,6] x", "y, z = Split<axis=1, num_outputs=2>(x)", "float[N, 3]"),
    ("float[N,7] x", "y, z = Split<axis=1, num_outputs=2>(x)", "float[N, 4]"),
    ("float[N,C] x, int64[K] i", "y = Gather<axis=1>(x, i)", "float[N, K]"),
    ("float[N,C,H] x, int64[K,2] i", "y = GatherND(x, i)", "float[K, H]"),
    ("float[N,C] x, int64[N,5] i", "y = GatherElements<axis=1>(x, i)", "float[N, 5]"),
    ("float[N,C] x, int64[N,5] i, float[N,5] u", "y = ScatterElements<axis=1>(x, i, u)", "float[N, C]"),
    ("float[N,C] x", "p = ints[0,1,0,2] y = Pad(x, p)", "float[N, C + 3]"),
    ("float[N,C] x", "r = ints[1,3] y = Tile(x, r)", "float[N, 3*C]"),
    # creation
    ("float[N,C] x", "y = Shape(x)", "int64[2]"),
    ("float[N,C] x", "s = Shape(x) y = ConstantOfShape(s)", "float[N, C]"),
    # images
    ("float[N,C,H,W] x", "s = floats[1.0,1.0,2.0,0.5] y = Resize(x, , s)", "float[N, C, 2*H, (W//2)]"),
    ("float[N,8,H,W] x", "y = DepthToSpace<blocksize=2>(x)", "float[N, 2, 2*H, 2*W]"),
    ("float[N,C,H,W] x", "y = SpaceToDepth<blocksize=2>(x)", "float[N, 4*C, (H//2), (W//2)]"),
    ("float[N,C,H,W] x, float[N,P,Q,2] g", "y = GridSample(x, g)", "float[N, C, P, Q]"),
    # recurrent
    (
        "float[S,B,8] x, float[1,16,8] w, float[1,16,4] r",
        "y, h, c = LSTM<hidden_size=4>(x, w, r)",
        "float[S, 1, B, 4]",
    ),
    (
        "float[S,B,8] x, float[2,12,8] w, float[2,12,4] r",
        'z, y = GRU<hidden_size=4, direction="bidirectional">(x, w, r)',
        "float[2, B, 4]",
    ),
    # quantization
    ("float[N,C] x, float s, int8 z", "y = QuantizeLinear(x, s, z)", "int8[N, C]"),
    ("uint8[N,C] x, float s", "y = DequantizeLinear(x, s)", "float[N, C]"),
    # attention
    ("float[B,H,S,D] q, float[B,H,T,D] k, float[B,H,T,V] v", "y = Attention(q, k, v)", "float[B, H, S, V]"),
    # sequences
    (
        "float[N,3] x, float[N,3] z",
        "s = SequenceConstruct(x, z) i = int(0) y = SequenceAt(s, i)",
        "float[N, 3]",
    ),
]


def facts_of(inputs: str, nodes: str, opset: int = 23, **constants: np.ndarray) -> Facts:
    """``ints[..]``, ``floats[..]``, ``int(..)`` and ``float(..)`` in the nodes are constants."""
    nodes = re.sub(r"\b(ints|floats)(\[[^]]*\])", r"Constant<value_\1=\2>()", nodes)
    nodes = re.sub(r"\b(int|float)\(([^)]*)\)", r"Constant<value_\1=\2>()", nodes)
    model = parse(
        f'<ir_version: 10, opset_import: ["" : {opset}]> g ({inputs}) => (float y) {{ {nodes} }}',
        constants={name: np.asarray(array) for name, array in constants.items()},
    )
    return Facts(model.graph, model.functions)


@pytest.mark.parametrize(("inputs", "nodes", "expected"), SHAPES)
def test_shape_and_type(inputs: str, nodes: str, expected: str) -> None:
    facts = facts_of(inputs, nodes)
    assert str(facts.of(facts.graph.outputs[0])) == expected


@pytest.mark.parametrize(
    ("inputs", "constants", "expected"),
    [
        ("float[N] x", {"s": [1], "e": [5]}, "float[max(0, min(5, N) - 1)]"),
        ("float[N] x", {"s": [0], "e": [2**63 - 1]}, "float[N]"),
        ("float[N] x", {"s": [1], "e": [2**31 - 1]}, "float[max(0, N - 1)]"),
        ("float[N] x", {"s": [-3], "e": [2**63 - 1]}, "float[min(3, N)]"),
        ("float[N] x", {"s": [0], "e": [-1]}, "float[max(0, N - 1)]"),
        ("float[8] x", {"s": [-3], "e": [2**63 - 1]}, "float[3]"),
        ("float[8] x", {"s": [7], "e": [-(2**63)], "t": [-1]}, "float[8]"),
        ("float[N] x", {"s": [-1], "e": [-(2**63)], "t": [-1]}, "float[N]"),
        ("float[N] x", {"s": [0], "e": [2**63 - 1], "t": [2]}, "float[((N + 1)//2)]"),
    ],
)
def test_slice_lengths(inputs: str, constants: dict[str, list[int]], expected: str) -> None:
    steps = {"a": np.array([0]), "t": np.array(constants.get("t", [1]))}
    given = {name: np.array(numbers) for name, numbers in constants.items()}
    facts = facts_of(inputs, "y = Slice(x, s, e, a, t)", **(steps | given))
    assert str(facts.of(facts.graph.outputs[0])) == expected


@pytest.mark.parametrize(
    ("opset", "nodes", "expected"),
    [
        (12, "y = Squeeze<axes=[1]>(x)", "float[N, 4]"),
        (12, "y = ReduceSum<axes=[2], keepdims=0>(x)", "float[N, 1]"),
        (12, "y, z = Split<axis=2, split=[1,3]>(x)", "float[N, 1, 1]"),
        (10, "y = Pad<pads=[0,0,1,0,0,1]>(x)", "float[N, 1, 6]"),
        (9, "y = Slice<axes=[2], starts=[1], ends=[9]>(x)", "float[N, 1, 3]"),
        (9, "y, i = TopK<k=2>(x)", "float[N, 1, 2]"),
    ],
)
def test_older_versions_take_attributes(opset: int, nodes: str, expected: str) -> None:
    facts = facts_of("float[N,1,4] x", nodes, opset)
    assert str(facts.of(facts.graph.outputs[0])) == expected


# ---------------------------------------------------------------- contents of small tensors

CONTENTS = [
    ("y = Shape(x)", "[N, C, H, 4]"),
    ("y = Shape<start=-2>(x)", "[H, 4]"),
    ("y = Shape<start=1, end=-1>(x)", "[C, H]"),
    ("y = Size(x)", "[4*C*H*N]"),
    ("s = Shape(x) i = ints[2,0] y = Gather(s, i)", "[H, N]"),
    ("s = Shape(x) i = int(-1) y = Gather(s, i)", "[4]"),
    ("s = Shape(x) y = Concat<axis=0>(s, s)", "[N, C, H, 4, N, C, H, 4]"),
    ("s = Shape(x) y, z = Split<num_outputs=2>(s)", "[N, C]"),
    ("s = Shape(x) a = ints[1] b = ints[3] y = Slice(s, a, b)", "[C, H]"),
    ("s = Shape(x) y = ReduceProd(s)", "[4*C*H*N]"),
    ("s = Shape(x) k = int(2) y = Div(s, k)", "[(N//2), (C//2), (H//2), 2]"),
    ("s = Shape(x) k = int(2) y = Mul(s, k)", "[2*N, 2*C, 2*H, 8]"),
    ("s = Shape(x) k = int(3) y = Mod(s, k)", "[-3*(N//3) + N, -3*(C//3) + C, -3*(H//3) + H, 1]"),
    (
        "s = Shape(x) f = Cast<to=1>(s) k = float(0.5) g = Mul(f, k) h = Floor(g) y = Cast<to=7>(h)",
        "[(N//2), (C//2), (H//2), 2]",
    ),
    (
        "s = Shape(x) f = Cast<to=1>(s) k = float(3.0) g = Div(f, k) h = Ceil(g) y = Cast<to=7>(h)",
        "[((N + 2)//3), ((C + 2)//3), ((H + 2)//3), 2]",
    ),
    ("s = Shape(x) k = int(-1) c = Equal(s, k) y = Where(c, k, s)", "[N, C, H, 4]"),
    ("s = Shape(x) k = int(4) c = Equal(s, k) y = Where(c, k, s)", "[None, None, None, 4]"),
    ("s = Shape(x) k = int(0) y = Max(s, k)", "[N, C, H, 4]"),
    ("s = Shape(x) z = Shape(s) y = ConstantOfShape<value=int64[1]{1}>(z)", "[1, 1, 1, 1]"),
    ("a = int(0) b = int(4) c = int(2) y = Range(a, b, c)", "[0, 2]"),
    ("s = Shape(x) r = ints[2,2] y = Reshape(s, r)", "[N, C, H, 4]"),
    ("s = Shape(x) r = ints[2] y = Tile(s, r)", "[N, C, H, 4, N, C, H, 4]"),
    (
        "s = Shape(x) o = ints[1] j = ints[0] i = Unsqueeze(o, j) u = ints[-1] y = ScatterND(s, i, u)",
        "[N, -1, H, 4]",
    ),
    ("s = Shape(x) p = ints[1,0] k = int(1) y = Pad(s, p, k)", "[1, N, C, H, 4]"),
]


@pytest.mark.parametrize(("nodes", "expected"), CONTENTS)
def test_contents(nodes: str, expected: str) -> None:
    facts = facts_of("float[N,C,H,4] x", nodes)
    value = facts.value(facts.graph.outputs[0])
    assert value is not None
    assert "[" + ", ".join(map(str, value.items)) + "]" == expected


def test_contents_that_floats_would_round_are_not_claimed() -> None:
    nodes = "s = Shape(x) f = Cast<to=1>(s) k = float(0.1) g = Mul(f, k) y = Cast<to=7>(g)"
    facts = facts_of("float[N] x", nodes)
    assert facts.value(facts.graph.outputs[0]) is None


BOUNDS = (-(2**63), -9, -4, -1, 0, 1, 3, 9, 2**63 - 1)


@pytest.mark.parametrize("step", [-3, -2, -1, 1, 2, 3])
def test_slice_lengths_are_those_of_onnxruntime(step: int) -> None:
    """Every pair of bounds at every small size, where anything is claimed."""
    claimed = 0
    text = "g (float[N] x, int64[1] s, int64[1] e, int64[1] t) => (y) { y = Slice(x, s, e, a, t) }"
    model = parse(f'<ir_version: 8, opset_import: ["": 17]> {text}', {"a": np.array([0])})
    runtime = OnnxRuntime(to_proto(model).SerializeToString())
    for start in BOUNDS:
        for end in BOUNDS:
            length = slice_length(Dim.of("N"), Dim.of(start), Dim.of(end), step)
            for size in range(7) if length.is_known else ():
                bounds = {name: np.array([bound]) for name, bound in (("s", start), ("e", end), ("t", step))}
                expected = len(runtime.run({"x": np.zeros(size, np.float32), **bounds})["y"])
                assert length.evaluate({"N": size}) == expected, (start, end, size)
                known = slice_length(Dim.of(size), Dim.of(start), Dim.of(end), step)
                assert known == expected, (start, end, size)
                claimed += 1
    assert claimed > 300


@pytest.mark.parametrize(
    ("inputs", "nodes", "constants", "expected"),
    [
        ("float[B,N,1] x", "y = DFT(x)", {}, "float[B, N, 2]"),
        ("float[B,N,1] x", "y = DFT<onesided=1>(x)", {}, "float[B, (N//2) + 1, 2]"),
        ("float[B,N,2] x", "y = DFT<onesided=1, inverse=1>(x)", {}, "float[B, 2*N - 2, 1]"),
        ("float[B,N,1] x", "y = DFT(x, s)", {"s": 16}, "float[B, 16, 2]"),
        ("float[B,N,1] x, int64 a", "y = DFT(x, , a)", {}, "float[B, N, 2]"),
        ("float[B,N,1] x", "y = STFT(x, s, , e)", {"s": 4, "e": 16}, "float[B, (N//4) - 3, 9, 2]"),
        ("float[B,N,1] x, float[8] w", "y = STFT(x, s, w)", {"s": 4}, "float[B, (N//4) - 1, 5, 2]"),
        ("int64[1] a, float[1,N,4] x", "y = Squeeze(x, a)", {}, None),
        ("int64[1] a, float[1,5,4] x", "y = Squeeze(x, a)", {}, "float[5, 4]"),
        ("int64[2] s, float[N,0] x", "y, z = Split<axis=1>(x, s)", {}, "float[N, 0]"),
        ("float[P,A] x, float[S,A] z", "y = Concat<axis=0>(x, z)", {}, "float[P + S, A]"),
        ("float[2,A] x, float[3,B] z", "y = Concat<axis=0>(x, z)", {}, "float[5, A]"),
    ],
)
def test_further_shapes(inputs: str, nodes: str, constants: dict[str, int], expected: str | None) -> None:
    facts = facts_of(inputs, nodes, 21, **{key: np.array(number) for key, number in constants.items()})
    shape = facts.of(facts.graph.outputs[0])
    if expected is None:
        assert not all(dim.is_known for dim in shape.shape or ())
    else:
        assert str(shape) == expected
