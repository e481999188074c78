"""Conversion to newer operator sets: every adapter, compared in onnxruntime before and after."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from optimizer.io import FUSED_OPSET, convert_opset, parse, to_proto
from optimizer.io.opset import NO_KERNEL, fuse_opset
from optimizer.io.opset_steps import ADAPTERS
from optimizer.ir import Model, UsageError
from optimizer.runtime import Session

HEAD = '<ir_version: 8, opset_import: ["" : {}]> g (float[2,3,4,4] x) => (y) {{ {} }}'
STEPS = [
    (8, "BatchNormalization", "y = BatchNormalization(x, f, f, f, p)"),
    (13, "BatchNormalization", "y = BatchNormalization(x, f, f, f, p)"),
    (10, "Clip", "y = Clip<min=-0.5, max=0.5>(x)"),
    (10, "Clip", "y = Clip<max=0.5>(x)"),
    (19, "DFT", "s = Slice(x, i0, i1, i3) y = DFT<axis=2>(s)"),
    (11, "Dropout", "y = Dropout<ratio=0.3>(x)"),
    (19, "GridSample", 'y = GridSample<mode="bilinear">(x, grid)'),
    (12, "Hardmax", "y = Hardmax(x)"),
    (12, "LogSoftmax", "y = LogSoftmax<axis=2>(x)"),
    (12, "Softmax", "y = Softmax<axis=3>(x)"),
    (12, "Softmax", "y = Softmax<axis=-1>(x)"),
    (10, "Pad", "y = Pad<pads=[0,0,1,0,0,0,0,2], value=0.5>(x)"),
    (12, "ReduceSum", "y = ReduceSum<axes=[1], keepdims=0>(x)"),
    *(
        (17, f"Reduce{n}", f"y = Reduce{n}<axes=[-1]>(a)")
        for n in ("L1", "L2", "LogSum", "Max", "Min", "Prod")
    ),
    (17, "ReduceLogSumExp", "y = ReduceLogSumExp(x)"),
    (17, "ReduceMean", "y = ReduceMean<axes=[2,3]>(x)"),
    (17, "ReduceSumSquare", "y = ReduceSumSquare<axes=[0]>(x)"),
    (10, "Resize", 'y = Resize<mode="linear">(x, scales)'),
    (12, "Resize", 'y = Resize<mode="nearest">(x, roi, scales)'),
    (15, "RoiAlign", "y = RoiAlign<output_height=2, output_width=2>(x, boxes, zero)"),
    (10, "Scatter", "y = Scatter<axis=2>(x, rows, x)"),
    (9, "Slice", "y = Slice<starts=[1], ends=[3], axes=[2]>(x)"),
    (12, "Split", "y, z = Split<axis=1, split=[1,2]>(x)"),
    (17, "Split", "y, z = Split<axis=2>(x)"),
    (12, "Squeeze", "s = Unsqueeze<axes=[1]>(x) y = Squeeze<axes=[1]>(s)"),
    (12, "Unsqueeze", "y = Unsqueeze<axes=[0,5]>(x)"),
    (9, "TopK", "y, z = TopK<axis=1, k=2>(x)"),
    (8, "Upsample", "y = Upsample<scales=[1.0,1.0,2.0,2.0]>(x)"),
    (9, "Upsample", 'y = Upsample<mode="linear">(x, scales)'),
]
CONSTANTS = {
    "f": np.array([0.5, -1, 2], np.float32),
    "p": np.array([0.5, 1, 2], np.float32),
    "i0": np.array([0]),
    "i1": np.array([1]),
    "i3": np.array([3]),
    "grid": np.random.default_rng(1).uniform(-1, 1, (2, 2, 3, 2)).astype(np.float32),
    "scales": np.array([1, 1, 2, 2], np.float32),
    "roi": np.zeros(0, np.float32),
    "boxes": np.array([[0, 0, 2, 3], [1, 1, 3, 3]], np.float32),
    "zero": np.array([0, 1]),
    "rows": np.tile(np.array([3, 1, 0, 2])[:, None], (2, 3, 1, 4)),
}


def build(opset: int, body: str) -> Model:
    if "(a)" in body:
        body = "a = Exp(x) " + body
    used = {
        k: v
        for k, v in CONSTANTS.items()
        if any(f"{before}{k}{after}" in body for before in "(, " for after in ",)")
    }
    return parse(HEAD.format(opset, body), used)


def proto_of(model: Model) -> onnx.ModelProto:
    return onnx.shape_inference.infer_shapes(to_proto(model))


def outputs(model: Model) -> list[np.ndarray]:
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 4)).astype(np.float32)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(
        proto_of(model).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return [np.asarray(y) for y in session.run(None, {"x": x})]


@pytest.mark.parametrize(("opset", "op", "body"), STEPS, ids=lambda v: str(v)[:20])
def test_the_result_is_the_same(opset: int, op: str, body: str) -> None:
    version = 21 if op in NO_KERNEL else FUSED_OPSET
    before, converted = build(opset, body), convert_opset(build(opset, body), version)
    assert converted.opsets[""] == version
    onnx.checker.check_model(proto_of(converted))
    for expected, found in zip(outputs(before), outputs(converted), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
def test_rows_of_an_empty_tensor(op: str) -> None:
    text = f'<ir_version: 6, opset_import: ["" : 11]> g (float[A,B,C] x) => (y) {{ y = {op}<axis=2>(x) }}'
    converted = convert_opset(parse(text), FUSED_OPSET)
    for shape in ((2, 0, 4), (0, 3, 4), (2, 3, 4)):
        x = np.ones(shape, np.float32)
        (expected,), (found,) = (Session(m).run({"x": x}).values() for m in (parse(text), converted))
        np.testing.assert_array_equal(found, expected)


def test_every_adapter_is_tried() -> None:
    alike = {("Dropout", 13), ("Gemm", 11), ("GroupNormalization", 21)}
    tried = {(op, since) for opset, op, _ in STEPS for since in range(opset + 1, FUSED_OPSET + 1)}
    assert [key for key in ADAPTERS if key not in tried | alike] == []


@pytest.mark.parametrize(
    ("opset", "body", "reason"),
    [
        (12, "y, m, v, a, b = BatchNormalization(x, f, f, f, p)", "it may be in training mode"),
        (8, "y = BatchNormalization<spatial=0>(x, f, f, f, p)", "it is not per channel"),
        (11, ('y = Resize<coordinate_transformation_mode="tf_half_pixel_for_nn">(x, roi, '
        'scales)'), "there is no mode"),
        (18, "h = Relu(x) y = GroupNormalization<num_groups=1>(h, p, p)", ("the number of channels "
        "is not declared")),
    ],
)  # fmt: skip
def test_what_has_no_equivalent(opset: int, body: str, reason: str) -> None:
    model = build(opset, body)
    with pytest.raises(UsageError, match=reason):
        convert_opset(model, FUSED_OPSET)


def test_groups_become_channels() -> None:
    model = parse(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[2,4,3] x) => (y) '
        "{ y = GroupNormalization<num_groups=2>(x, s, s) }",
        {"s": np.array([2, 3], np.float32)},
    )
    (node,) = convert_opset(model, 21).graph.nodes
    assert model.graph.const(node.inputs[1]).tolist() == [2, 2, 3, 3]


def test_body_and_function_are_converted_as_well() -> None:
    text = (
        '<ir_version: 9, opset_import: ["" : 12, "local" : 1]> g (float[2,3] x, bool c) => (float[2,3] y) '
        "{ y = If(c) <then_branch = p () => (float[2,3] o) { o = local.norm(x) }, "
        "else_branch = q () => (float[2,3] r) { u = Unsqueeze<axes=[0]>(x) r = Squeeze<axes=[0]>(u) }> }"
        ' <domain: "local", opset_import: ["" : 12]> norm (v) => (w) { w = Softmax<axis=1>(v) }'
    )
    model = convert_opset(parse(text), 18)
    assert {graph.opset() for _, graph in model.graph.scopes()} == {18}
    (function,) = model.functions.values()
    assert function.graph.opset() == 18
    onnx.checker.check_model(to_proto(model))


def test_fused_keeps_what_would_not_run() -> None:
    with pytest.raises(UsageError, match="onnxruntime does not run RoiAlign"):
        fuse_opset(build(16, "y = RoiAlign(x, boxes, zero)"))
    for body in ("h = Cast<to=11>(x) y = Elu(h)", "d = Constant<value = double {{1}}>() y = Elu(x)"):
        with pytest.raises(UsageError, match="onnxruntime does not run Elu"):
            fuse_opset(build(16, body.replace("{{", "{").replace("}}", "}")))
    assert fuse_opset(build(16, "y = Elu(x)")).opsets[""] == FUSED_OPSET
    newer = build(24, "y = Relu(x)")
    assert fuse_opset(newer) is newer
