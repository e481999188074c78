"""A written result against its original: interface, both engines, noise, and what cannot be checked."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from optimizer.io import parse, save, to_proto
from optimizer.ir import Model, OptimizerError, TensorType
from optimizer.rewrite import Context, Exactness
from optimizer.verify import (
    EngineError,
    Judge,
    NumPy,
    OnnxRuntime,
    Reference,
    SavedModelCheck,
    check_models,
    find_culprit,
    undo_culprit,
    verify_files,
)

HEAD = '<ir_version: 9, opset_import: ["" : 18]>'
RNG = np.random.default_rng(3)
W = RNG.standard_normal((8, 8)).astype(np.float32)


def graph(text: str, **constants: np.ndarray) -> Model:
    return parse(f"{HEAD} g {text}", constants)


def data(model: Model) -> bytes:
    return to_proto(model).SerializeToString()


def net(weight: np.ndarray = W, output: str = "float[N, 8] y", bias: float = 0.5) -> bytes:
    return data(
        graph(
            f"(float[N, 8] x) => ({output}) <float b = {{{bias}}}> "
            "{ t = MatMul (x, w) u = Add (t, b) y = Softmax <axis=-1> (u) }",
            w=weight,
        )
    )


def test_equal_models_pass_in_both_engines() -> None:
    found = verify_files(net(), net())
    assert found.ok
    assert found.verified == "full"
    assert found.cases == ("seed 0, N=2", "seed 0, N=1", "seed 1, N=2", "seed 1, N=1")
    assert {(o.name, o.engine) for o in found.outputs} == {("y", "onnxruntime"), ("y", "numpy")}
    assert found.worst.max_abs < 1e-6
    assert found.worst.top1 == 1.0
    assert found.to_dict()["ok"] is True


def test_a_wrong_weight_is_reported_with_its_place() -> None:
    wrong = W.copy()
    wrong[3, 2] *= 1.5
    found = verify_files(net(), net(wrong))
    assert not found.ok
    assert "output 'y' in onnxruntime" in found.faults[0]
    assert found.focus is not None
    assert found.focus.engine == "onnxruntime"
    assert found.worst.max_abs > 1e-3


def picked(most: int, shape: str) -> bytes:
    """Gives what is above ``most``: nothing, where that is large."""
    text = (
        f"(float[N] x) => (int64[{shape}] y) <float b = {{{most}}}> {{ t = Greater (x, b) y = NonZero (t) }}"
    )
    return data(graph(text))


def test_empty_outputs_are_not_verified() -> None:
    assert verify_files(picked(0, "1, M"), picked(0, "1, M")).verified == "full"
    found = verify_files(picked(1000, "1, M"), picked(1000, "1, M"))
    assert (found.verified, found.verdict) == ("none", "not compared")
    assert found.reason == "every output is empty on the inputs tried"
    assert "output 'y' is empty on the inputs tried: only its shape and type were compared" in found.notes
    assert found.max_abs_error is None
    declared_empty = picked(1000, "1, 0")
    assert verify_files(declared_empty, declared_empty).verified == "full"


def test_files_are_taken_as_well(tmp_path: Path) -> None:
    save(graph("(float[N] x) => (float[N] y) { y = Relu (x) }"), tmp_path / "a.onnx")
    save(graph("(float[N] x) => (float[N] y) { y = Abs (x) }"), tmp_path / "b.onnx")
    assert verify_files(tmp_path / "a.onnx", tmp_path / "a.onnx").ok
    assert not verify_files(tmp_path / "a.onnx", tmp_path / "b.onnx").ok


RELU = "(float[N, 4] x, float[2] z) => (float[N, 4] y, float[M] q) { y = Relu (x) q = Neg (z) }"
SIGNATURES = [
    (RELU.replace("float[N, 4] y", "float[N, 4] yy").replace("y =", "yy ="), "the outputs ['y', 'q'] became"),
    (RELU.replace("(float[N, 4] x, float[2] z)", "(float[2] z, float[N, 4] x)"), "the inputs ['x', 'z']"),
    (RELU.replace("float[N, 4] x", "float[K, 4] x"), "input 'x': float[N, 4] became float[K, 4]"),
    (RELU.replace("float[N, 4] y", "float[2, 4] y"), "output 'y': float[N, 4] became float[2, 4]"),
    (RELU.replace("float[M] q", "float[2] q"), "output 'q': float[M] became float[2]"),
    (RELU.replace("float[2] z", "float[3] z"), "input 'z': float[2] became float[3]"),
]


@pytest.mark.parametrize(("changed", "fault"), SIGNATURES)
def test_interfaces_are_compared_exactly(changed: str, fault: str) -> None:
    found = verify_files(data(graph(RELU)), data(graph(changed)))
    assert fault in found.faults[0]


def declared(model: Model, shape: tuple[int | str | None, ...] | None) -> bytes:
    """The model with another declared shape of its only output."""
    (info,) = model.graph.sink.outputs
    assert isinstance(info.type, TensorType)
    model.graph.set_attrs(model.graph.sink, outputs=[replace(info, type=replace(info.type, shape=shape))])
    return data(model)


@pytest.mark.parametrize(
    ("shape", "fault"), [((None, 4), ""), ((2, 4), ""), ((3, 4), "but a run gives [2, 4]")]
)
def test_an_open_output_dim_may_be_declared_where_it_is_true(
    shape: tuple[int | None, ...], fault: str
) -> None:
    def model() -> Model:
        return graph("(float[2, 4] x) => (float[a, b] y) { y = Relu (x) }")

    found = verify_files(declared(model(), (None, None)), declared(model(), shape))
    assert fault in "".join(found.faults)
    assert found.ok == (not fault)


def test_sizes_the_user_fixed_are_expected() -> None:
    original = graph("(float[N, 8] x) => (float[N, 8] y) { y = Relu (x) }")
    fixed = data(graph("(float[4, 8] x) => (float[4, 8] y) { y = Relu (x) }"))
    assert not verify_files(data(original), fixed).ok
    assert verify_files(data(original), fixed, dims={"N": 4}).ok
    assert verify_files(data(original), fixed, input_shapes={"x": (4, 8)}).ok


def test_random_outputs_are_compared_by_shape_only() -> None:
    text = (
        "(float[N] x) => (float[N] y, float[N] z) {{ r = RandomNormalLike (x) y = Add (r, x) z = {op} (x) }}"
    )
    found = verify_files(data(graph(text.format(op="Relu"))), data(graph(text.format(op="Relu"))))
    assert found.ok
    assert any("'y' depends on random numbers" in note for note in found.notes)
    assert not verify_files(data(graph(text.format(op="Relu"))), data(graph(text.format(op="Abs")))).ok


CUSTOM = f"{HEAD.replace(']', ', ' + chr(34) + 'my.ops' + chr(34) + ' : 1]')} g (float[N] x) => (float[N] y) "


def test_a_model_nothing_can_run_is_said_to_be_unverified() -> None:
    custom = data(parse(CUSTOM + "{ t = my.ops.Magic (x) y = Relu (t) }"))
    found = verify_files(custom, custom)
    assert (found.ok, found.verified) == (True, "none")
    assert "onnxruntime cannot load it" in found.reason
    assert verify_files(custom, custom, local=True).verified == "local"


def test_the_executor_alone_decides_where_onnxruntime_cannot(tmp_path: Path) -> None:
    text = "(bfloat16[N] x) => (bfloat16[N] y) {{ t = Mul (x, x) y = {op} (t) }}"
    found = verify_files(data(graph(text.format(op="Sqrt"))), data(graph(text.format(op="Sqrt"))))
    assert (found.ok, found.verified) == (True, "numpy-only")
    assert "onnxruntime cannot load it" in found.reason
    assert not verify_files(data(graph(text.format(op="Sqrt"))), data(graph(text.format(op="Neg")))).ok


def test_a_result_that_does_not_load_is_a_fault() -> None:
    broken = data(parse(CUSTOM + "{ y = my.ops.Magic (x) }"))
    found = verify_files(data(graph("(float[N] x) => (float[N] y) { y = Relu (x) }")), broken)
    assert "onnxruntime loads the original but not the result" in found.faults[0]


def test_an_original_that_rejects_all_sizes() -> None:
    never = data(
        graph("(float[N] x) => (float[N] y) <float[3] a = {1, 2, 3}, float[2] b = {1, 2}> "
              "{ t = Shape (x) q = ConstantOfShape (t) r = Concat <axis=0> (a, q) y = Add (r, b) }")
    )  # fmt: skip
    found = verify_files(never, never)
    assert (found.ok, found.verified) == (True, "none")
    assert "rejects all" in found.reason


def test_noise_of_the_original_is_allowed_for_and_nothing_more() -> None:
    chaotic = "(float[N] x) => (float[N] y) <float k = {{{k}}}> {{ a = Mul (x, k) y = Sin (a) }}"
    reference = Reference(data(graph(chaotic.format(k=3000))))
    assert reference.noise(0)["y"].floor > 1e-5
    judge = Judge(reference)
    assert judge.judge(data(graph(chaotic.format(k=3000)))).ok
    assert not judge.judge(data(graph(chaotic.format(k=3001)))).ok
    reordered = graph(
        "(float[N] x) => (float[N] y) <float p = {30}, float k = {100}> "
        "{ b = Mul (x, p) a = Mul (b, k) y = Sin (a) }"
    )
    assert judge.judge(data(reordered)).ok


def test_ceiling() -> None:
    scaled = net(bias=0.5), net((W * (1 + 1e-6)).astype(np.float32))
    assert verify_files(*scaled).ok
    assert not verify_files(*scaled, max_abs_error=1e-12).ok


def test_comparing_two_models() -> None:
    other = net((W * 1.001).astype(np.float32), output="float[n, m] y")
    assert not check_models(net(), other).ok
    assert check_models(net(), other, max_abs_error=0.1).ok
    assert not check_models(net(), other, max_abs_error=1e-9).ok
    renamed = data(graph("(float[N, 8] x) => (float[N, 8] z) { z = Relu (x) }"))
    assert check_models(net(), renamed).faults == ("output 'y' is missing", "output 'z' is new")


# -------------------------------------------------------------------- engines


def test_engines_say_what_they_cannot() -> None:
    with pytest.raises(EngineError, match="cannot load"):
        OnnxRuntime(b"no model")
    model = graph("(float[3] x) => (float[3] y) { y = Relu (x) }")
    for engine in (OnnxRuntime(data(model)), NumPy(model)):
        with pytest.raises(EngineError, match="cannot run"):
            engine.run({"x": np.zeros(4, np.float32)})
        assert engine.run({"x": np.array([-1, 0, 2], np.float32)})["y"].tolist() == [0, 0, 2]


# -------------------------------------------------------------------- bisect


CHAIN = 12


def chain(length: int = CHAIN) -> Model:
    names = ["x", *(f"t{i}" for i in range(1, length)), "y"]
    nodes = " ".join(f"{b} = Identity ({a})" for a, b in itertools.pairwise(names))
    return graph(f"(float[N, 3] x) => (float[N, 3] y) {{ {nodes} }}")


def replace_all(ctx: Context, wrong: int | None) -> None:
    """Replaces each Identity by Neg(Neg(.)), but that number ``wrong`` by a single Neg."""
    graph = ctx.model.graph
    for number, node in enumerate(graph.nodes):
        if node.op_type != "Identity" or not ctx.allows("double", (), graph, node):
            continue
        with ctx.application("double", graph, node, Exactness.E0) as entry:
            value = node.inputs[0]
            for _ in range(1 if number == wrong else 2):
                value = graph.add("Neg", [value]).value()
            graph.replace_uses(node.value(), value)
            graph.erase(node)
        ctx.accept(entry)


@pytest.mark.parametrize("wrong", [0, 1, 5, CHAIN - 1])
def test_the_culprit_is_found_and_undone(wrong: int) -> None:
    model = chain()
    original = data(model)
    ctx = Context(model)
    replace_all(ctx, wrong)
    judge = Judge(Reference(original))
    found = judge.judge(data(model))
    assert not found.ok
    culprit = undo_culprit(ctx, judge, found.faults[0], found.focus)
    assert culprit is not None
    assert culprit.anchor == ("y" if wrong == CHAIN - 1 else f"t{wrong + 1}")
    assert [r.application for r in ctx.rejected] == [culprit]
    assert len(ctx.journal.entries) == wrong
    replace_all(ctx, wrong=None)
    assert judge.judge(data(model)).ok
    assert model.histogram() == {"Neg": 2 * (CHAIN - 1), "Identity": 1}


def test_bisecting_takes_few_looks_and_leaves_the_model_as_it_was() -> None:
    ctx = Context(chain())
    replace_all(ctx, 9)
    before = data(ctx.model)
    looks = []

    def is_good() -> bool:
        looks.append(ctx.journal.cursor)
        return ctx.journal.cursor < 10

    culprit = find_culprit(ctx, is_good)
    assert culprit is ctx.journal.entries[9]
    assert len(looks) <= 5
    assert data(ctx.model) == before
    assert find_culprit(ctx, lambda: False) is None


def test_checking_after_each_application() -> None:
    model = chain(4)
    original = data(model)
    ctx = Context(model)
    ctx.check = SavedModelCheck(ctx, Judge(Reference(original)))
    replace_all(ctx, 2)
    assert [r.application.anchor for r in ctx.rejected] == ["t3"]
    assert model.histogram() == {"Neg": 6, "Identity": 1}


def test_a_missing_file_is_an_error() -> None:
    with pytest.raises(OptimizerError):
        verify_files("/nowhere/a.onnx", net())
