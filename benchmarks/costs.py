"""``python -m benchmarks.costs``: what operators cost in onnxruntime, as ``passes/cost_table.py``.

Each operator runs alone, all of onnxruntime's optimizations on, one thread, at two sizes; what the larger
one takes more, for each unit of work more, is its cost. Nothing reads a clock when a model is optimized:
the table that is checked in decides.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper, parser

from benchmarks import latency

SIZES = (16, 64)
"""Height and width of the images that are timed, of 64 channels."""
CHANNELS = 64
REPEATS = 9
HEAD = '''"""Nanoseconds that onnxruntime takes for operators on a CPU thread: made by ``benchmarks.costs``.

A unit is an element of the result; for reductions and pools over everything, of the operand; for
windows, one element of one window; for products, one multiplication; for sums of many, one addition.

{machine}.
"""

PER_NODE = {node:.0f}
"""For any operator, however small."""

PER_REORDER = {reorder:.2f}
"""For each element that is brought into or out of the blocked layout of channels."""

PER_UNIT = {{
{lines}
}}
"""By operator; ``Conv:depthwise`` and the like are special cases of one."""
'''


@dataclass(frozen=True)
class Case:
    """One operator: its text over images ``x``, ``z``, and how many units of work it is."""

    name: str
    text: str
    units: Callable[[int], float]
    opset: int = 20


def elements(size: int) -> float:
    return CHANNELS * size * size


UNARY = (
    "Abs Cast:bool Ceil Clip Cos Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Log Mish Neg "
    "Reciprocal Relu Round Sigmoid Sign Sin Softplus Softsign Sqrt Tanh"
)
BINARY = "Add Sub Mul Div Pow Max Min Equal Greater Less"
SPELLED = {"Cast:bool": "y = Cast<to=9>(x)", "Clip": "y = Clip(x, f32(-1), f32(1))"}


def cases() -> list[Case]:
    """Everything that is timed."""
    found = [Case(name, SPELLED.get(name, f"y = {name}(x)"), elements) for name in UNARY.split()]
    found += [Case(name, f"y = {name}(x, z)", elements) for name in BINARY.split()]
    found += [
        Case("Pow:root", "y = Pow(x, f32(0.5))", elements),
        Case("Pow:square", "y = Pow(x, f32(2))", elements),
        Case("Where", "y = Where(c, x, z)", elements),
        Case("Where:scalars", "y = Where(c, f32(0), f32(-1))", elements),
        Case("Where:mask", "y = Where(d, x, f32(-1))", elements),
        Case("PRelu", "y = PRelu(x, f32(ones(64,1,1)))", elements),
        Case(
            "BatchNormalization", f"y = BatchNormalization(x, {', '.join(['f32(ones(64))'] * 4)})", elements
        ),
        Case("InstanceNormalization", "y = InstanceNormalization(x, f32(ones(64)), f32(ones(64)))", elements),
        Case("LayerNormalization", "y = LayerNormalization(x, v)", elements),
        Case("RMSNormalization", "y = RMSNormalization(x, v)", elements, 23),
        Case("GroupNormalization", f"y = GroupNormalization<num_groups=8>(x, {ONES}, {ONES})", elements, 21),
        Case("Swish", "y = Swish(x)", elements, 24),
        Case("Sum", "y = Sum(x, z, x)", lambda n: 2 * elements(n)),
        Case("Softmax", "y = Softmax(x)", elements),
        Case("Softmax:inner", "y = Softmax<axis=1>(x)", elements),
        Case("LogSoftmax", "y = LogSoftmax(x)", elements),
        Case("ArgMax", "y = ArgMax<axis=-1>(x)", elements),
        Case("ReduceMean", "y = ReduceMean(x, i64([2,3]))", elements),
        Case("ReduceMax", "y = ReduceMax(x, i64([2,3]))", elements),
        Case("ReduceSum", "y = ReduceSum(x, i64([2,3]))", elements),
        Case("GlobalAveragePool", "y = GlobalAveragePool(x)", elements),
        Case("Transpose", "y = Transpose<perm=[0,2,3,1]>(x)", elements),
        Case("Concat", "y = Concat<axis=1>(x, z)", lambda n: 2 * elements(n)),
        Case("Split", "y, w = Split<axis=1, num_outputs=2>(x)", elements),
        Case("Slice", "y = Slice(x, i64([0]), i64([32]), i64([1]))", lambda n: elements(n) / 2),
        Case("Gather", f"y = Gather<axis=1>(x, i64({list(range(32))}))", lambda n: elements(n) / 2),
        Case("Expand", "y = Expand(x, i64([4,1,1,1]))", lambda n: 4 * elements(n)),
        Case("Tile", "y = Tile(x, i64([4,1,1,1]))", lambda n: 4 * elements(n)),
        Case("Pad", "y = Pad(x, i64([0,0,1,1,0,0,1,1]))", elements),
        Case("DepthToSpace", "y = DepthToSpace<blocksize=2>(x)", elements),
        Case("Resize", f"y = Resize<{NEAREST}>(x, , f32([1,1,2,2]))", lambda n: 4 * elements(n)),
        Case("Resize:half_pixel", "y = Resize(x, , f32([1,1,2,2]))", lambda n: 4 * elements(n)),
        Case("MaxPool", "y = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(x)", lambda n: 9 * elements(n)),
        Case(
            "AveragePool", "y = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(x)", lambda n: 9 * elements(n)
        ),
        Case("MatMul", "y = MatMul(r, f32(ones(64,64)))", lambda n: 64 * elements(n)),
        Case("Einsum", 'y = Einsum<equation="bchw,bchv->bcwv">(x, z)', lambda n: n * elements(n)),
        Case("Conv", "y = Conv<pads=[1,1,1,1]>(x, f32(ones(64,64,3,3)))", lambda n: 576 * elements(n)),
        Case("Conv:depthwise", f"y = Conv<pads=[1,1,1,1], {GROUP}>(x, f32(ones(64,1,3,3)))", nine),
        Case("Conv:sequence", "y = Conv<pads=[1,1]>(s, f32(ones(64,64,3)))", lambda n: 192 * elements(n)),
        Case("Conv:sequence-depthwise", f"y = Conv<pads=[1,1], {GROUP}>(s, f32(ones(64,1,3)))", three),
        Case("ConvTranspose", "y = ConvTranspose<strides=[2,2]>(x, f32(ones(64,64,2,2)))", four),
    ]
    return found


ONES = "f32(ones(64))"
NEAREST = 'mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"'
GROUP = "group=64"


def nine(size: int) -> float:
    return 9 * elements(size)


def three(size: int) -> float:
    return 3 * elements(size)


def four(size: int) -> float:
    return 4 * CHANNELS * elements(size)


def main() -> None:
    reader = argparse.ArgumentParser(prog="python -m benchmarks.costs", description=__doc__)
    reader.add_argument(
        "--only", default="", metavar="TEXT", help="operators with this in their name; print only"
    )
    reader.add_argument("--output", type=Path, metavar="FILE", help="write the table here")
    options = reader.parse_args()
    found = {case.name: cost_of(case) for case in cases() if options.only in case.name}
    lines = "\n".join(f'    "{name}": {cost:.4g},' for name, cost in sorted(found.items()))
    if options.only:
        print(lines)
        return
    text = HEAD.format(machine=machine(), node=node_cost(), reorder=reorder_cost(), lines=lines)
    if options.output is None:
        print(text, end="")
    else:
        options.output.write_text(text, encoding="utf-8")


def machine() -> str:
    described = Path("/proc/cpuinfo")
    lines = described.read_text(encoding="utf-8").splitlines() if described.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"Measured with onnxruntime {ort.__version__} on {names[0] if names else 'an unknown CPU'}"


def cost_of(case: Case) -> float:
    """Nanoseconds for a unit of work."""
    small, large = (seconds(case.text, size, case.opset) for size in SIZES)
    return max(1e9 * (large - small) / (case.units(SIZES[1]) - case.units(SIZES[0])), 0.0)


def node_cost() -> float:
    """Nanoseconds for a node that does next to nothing."""
    chain = " ".join(f"t{i} = {('Neg', 'Abs')[i % 2]}({f't{i - 1}' if i else 'x'})" for i in range(40))
    short, long = "y = Neg(x)", f"{chain} y = Neg(t39)"
    return 1e9 * (seconds(long, 1, 20) - seconds(short, 1, 20)) / 40


def reorder_cost() -> float:
    """Nanoseconds for an element that leaves the blocked layout, and for one that comes back."""
    conv = "a = Conv(x, f32(ones(64,64,1,1))) {} y = Conv(b, f32(ones(64,64,1,1)))"
    size = SIZES[1]
    leaks = seconds(conv.format("b = Neg(a)"), size, 20) - seconds(conv.format("b = Relu(a)"), size, 20)
    own = seconds("y = Neg(x)", size, 20)
    return max(1e9 * (leaks - own) / elements(size) / 2, 0.0)


def seconds(body: str, size: int, opset: int) -> float:
    """The least CPU time of a run."""
    model = model_of(body, size, opset)
    random = np.random.default_rng(5)
    feeds = {}
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        array = random.uniform(0.1, 2, shape)
        is_bool = value.type.tensor_type.elem_type == onnx.TensorProto.BOOL
        feeds[value.name] = array > 1 if is_bool else array.astype(np.float32)
    with tempfile.TemporaryDirectory(prefix="oinfer-costs-") as folder:
        path = Path(folder, "case.onnx")
        onnx.save(model, path)
        runtime = latency.session(path, ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
    best = np.inf
    runs = 1
    while best * runs < latency.SHORTEST_SAMPLE and runs < 4096:
        runs *= 4
        best = min(best, timed(runtime, feeds, runs))
    return min(best, *(timed(runtime, feeds, runs) for _ in range(REPEATS)))


def timed(runtime: ort.InferenceSession, feeds: dict[str, np.ndarray], runs: int) -> float:
    start = time.thread_time()
    for _ in range(runs):
        runtime.run(None, feeds)
    return (time.thread_time() - start) / runs


def model_of(body: str, size: int, opset: int) -> onnx.ModelProto:
    from benchmarks.probes import with_literals

    shapes = {
        "x": f"float[1,{CHANNELS},{size},{size}]",
        "z": f"float[1,{CHANNELS},{size},{size}]",
        "c": f"bool[1,{CHANNELS},{size},{size}]",
        "d": f"bool[1,1,{size},{size}]",
        "r": f"float[{size * size},{CHANNELS}]",
        "s": f"float[1,{CHANNELS},{size * size}]",
        "v": f"float[{size}]",
    }
    body, constants = with_literals(body)
    inputs = ", ".join(f"{kind} {name}" for name, kind in shapes.items())
    text = f'<ir_version: 9, opset_import: ["" : {opset}]> cost ({inputs}) => (y) {{ {body} }}'
    model = parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in constants.items())
    used = {name for node in model.graph.node for name in node.input}
    for value in [value for value in model.graph.input if value.name not in used]:
        model.graph.input.remove(value)
    return onnx.shape_inference.infer_shapes(model)


if __name__ == "__main__":
    main()
