"""The models whose dims are inferred, with the shapes that onnxruntime really makes of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  registers the small dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks import inputs

SMALL = 16
Feeds = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """The sizes of the open dims, by name, and the shape of each tensor."""

    sizes: dict[str, int]
    shapes: dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Prepared:
    """A model whose open dims all have simple names, and nothing is declared of intermediate values.

    Attributes:
        original: makes the model as it was.
        feeds: inputs to try.
    """

    original: Callable[[], onnx.ModelProto]
    feeds: Callable[[onnx.ModelProto], Iterable[Feeds]]

    def model(self) -> onnx.ModelProto:
        """The model."""
        return _simplified(self.original())[0]

    def runs(self) -> Iterator[Run]:
        """Runs it in onnxruntime, at two sizes where dims are open; none where it does not run."""
        original = self.original()
        model, places = _simplified(original)
        session = _session(model)
        made = 0
        for arrays in self.feeds(original) if session is not None else ():
            try:
                values = session.run(None, arrays)
            except Exception:  # onnxruntime's own classes; another size may suit it
                continue
            sizes = {name: np.shape(arrays[value])[axis] for value, axis, name in places}
            found = zip((o.name for o in session.get_outputs()), values, strict=True)
            yield Run(sizes, {name: np.shape(v) for name, v in found if not isinstance(v, (list, dict))})
            made += 1
            if made == (2 if places else 1):
                return


def _simplified(model: onnx.ModelProto) -> tuple[onnx.ModelProto, list[tuple[str, int, str]]]:
    """The model, and for each open dim its input, its axis and its new name."""
    model = _copy(model)
    named = {tensor.name for tensor in model.graph.initializer}
    given = [info for info in model.graph.input if info.name not in named]
    names: dict[str, str] = {}
    places: list[tuple[str, int, str]] = []
    for info in given:
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            if not dim.HasField("dim_value") or dim.dim_value < 0:
                key = dim.dim_param if dim.dim_param not in ("", "?") else f"{info.name}:{axis}"
                dim.dim_param = names.setdefault(key, f"d{len(names)}")
                places.append((info.name, axis, dim.dim_param))
    del model.graph.value_info[:]
    for info in model.graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")

    return model, places


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    twin = onnx.ModelProto()
    twin.CopyFrom(model)
    return twin


def _session(model: onnx.ModelProto) -> Any:
    """A session that gives every tensor of the main graph, ``None`` where onnxruntime cannot run it."""
    import onnxruntime as ort

    wide = _copy(model)
    have = {output.name for output in wide.graph.output}
    for node in wide.graph.node:
        wide.graph.output.extend(onnx.ValueInfoProto(name=n) for n in node.output if n and n not in have)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return ort.InferenceSession(wide.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:  # not every model of the suite is for it
        return None


def folder(path: Path, only: str = "") -> dict[str, Prepared]:
    """The models of a folder."""
    return {file.stem: _of_file(file) for file in sorted(path.glob("*.onnx")) if only in file.stem}


def _of_file(file: Path) -> Prepared:
    def feeds(model: onnx.ModelProto) -> Iterator[Feeds]:
        for name in (file.stem, ""):  # a recipe may be for another form of the model
            yield from (arrays for _, arrays in inputs.candidates(model, name))

    return Prepared(lambda: onnx.load(file), feeds)


def node_models(*, open_dims: bool) -> dict[str, Prepared]:
    """The models of onnx's backend suite for single operators.

    Args:
        open_dims: their input dims are opened; small integer and scale inputs other than the first
            are made constants.
    """
    from onnx.backend.test.case.node import collect_testcases

    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # expected outputs are computed with overflows and NaN
        for case in collect_testcases(""):
            found[case.name] = _of_case(case, open_dims)
    return found


def _of_case(case: Any, open_dims: bool) -> Prepared:
    arrays = _arrays(case)
    model = _opened(case.model, arrays) if open_dims else case.model
    left = {info.name for info in model.graph.input}
    feeds = {name: array for name, array in arrays.items() if name in left}
    return Prepared(lambda: model, lambda _: [feeds])


def _arrays(case: Any) -> Feeds:
    names = [info.name for info in case.model.graph.input]
    values = [numpy_helper.to_array(v) if isinstance(v, TensorProto) else v for v in case.data_sets[0][0]]
    return {n: v for n, v in zip(names, values, strict=False) if v is not None}


def _opened(model: onnx.ModelProto, arrays: Feeds) -> onnx.ModelProto:
    model = _copy(model)
    for index, info in reversed(list(enumerate(model.graph.input))):
        array = arrays.get(info.name)
        if not info.type.HasField("tensor_type") or not isinstance(array, np.ndarray):
            continue
        plain = array.dtype.name in ("int64", "int32", "bool", "float32")
        if index and plain and array.size <= SMALL and (array.ndim == 1 or array.dtype.kind != "f"):
            model.graph.initializer.append(numpy_helper.from_array(array, info.name))
            del model.graph.input[index]
        else:
            for dim in info.type.tensor_type.shape.dim:
                dim.Clear()
    return model


# ------------------------------------------------------------------ a large dynamic graph

HIDDEN, HEADS = 64, 4


def dynamic_graph(nodes: int) -> onnx.ModelProto:
    """Layers on float [batch, seq, 64] whose heads are split and merged by computed shapes."""
    graph = _Layers()
    value = "x"
    while len(graph.nodes) < nodes:
        value = graph.layer(value)
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "dynamic",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "seq", HIDDEN])],
            [helper.make_tensor_value_info(value, TensorProto.FLOAT, None)],
            graph.initializers,
        ),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    model.ir_version = 8
    return model


class _Layers:
    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers = [
            numpy_helper.from_array(np.zeros((HIDDEN, HIDDEN), np.float32), "w"),
            numpy_helper.from_array(np.zeros(HIDDEN, np.float32), "b"),
            *(numpy_helper.from_array(np.array([i], np.int64), f"at{i}") for i in range(2)),
            *(numpy_helper.from_array(np.array(i, np.int64), f"n{i}") for i in range(2)),
            numpy_helper.from_array(np.array([HEADS], np.int64), "heads"),
            numpy_helper.from_array(np.array([HIDDEN // HEADS], np.int64), "size"),
            numpy_helper.from_array(np.array([HIDDEN], np.int64), "hidden"),
        ]

    def op(self, kind: str, *operands: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, operands, [name], **attributes))
        return name

    def sizes(self, value: str, tail: Sequence[str]) -> str:
        """[batch, seq, *tail] as an exporter computes it."""
        parts = []
        for axis in range(2):
            told = self.op("Shape", value)
            parts.append(self.op("Unsqueeze", self.op("Gather", told, f"n{axis}", axis=0), "at0"))
        return self.op("Concat", *parts, *tail, axis=0)

    def layer(self, value: str) -> str:
        """Projection, heads split, scores, heads merged, residual."""
        projected = self.op("Add", self.op("MatMul", value, "w"), "b")
        split = self.op("Reshape", projected, self.sizes(projected, ["heads", "size"]))
        heads = self.op("Transpose", split, perm=[0, 2, 1, 3])
        other = self.op("Transpose", split, perm=[0, 2, 3, 1])
        scores = self.op("Softmax", self.op("MatMul", heads, other), axis=-1)
        mixed = self.op("Transpose", self.op("MatMul", scores, heads), perm=[0, 2, 1, 3])
        merged = self.op("Reshape", mixed, self.sizes(mixed, ["hidden"]))
        return self.op("Add", value, self.op("Relu", merged))
