"""Every inferred dim, element type and content against what onnxruntime really produces.

``pytest -m sweep tests/analysis/test_inference_sweep.py``; a folder of models with OINFER_MODELS=DIR and,
for models with particular inputs, OINFER_INPUTS=FILE.json.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes  # noqa: F401  registers the small dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from optimizer.analysis import Dim, Fact, Facts, Ratio
from optimizer.io import load
from optimizer.ir import DType

pytestmark = pytest.mark.sweep
Arrays = dict[str, np.ndarray]


def exposed(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with every tensor of its main graph as an output."""
    wide = onnx.ModelProto()
    wide.CopyFrom(proto)
    have = {o.name for o in wide.graph.output}
    for node in wide.graph.node:
        for name in node.output:
            if name and name not in have:
                wide.graph.output.append(onnx.ValueInfoProto(name=name))
    return wide


def run(proto: onnx.ModelProto, feeds: Arrays, folder: str | None = None) -> Arrays:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def sizes_of(facts: Facts, feeds: Arrays) -> dict[object, int]:
    sizes: dict[object, int] = {}
    for value in facts.graph.inputs:
        array = feeds.get(facts.graph.info(value).name)
        for dim, size in zip(facts.shape(value) or (), np.shape(array), strict=False):
            for atom in dim.leaves:
                sizes[atom if atom.kind == "fresh" else atom.name] = size
    return sizes


def contradictions(
    facts: Facts, produced: Arrays, sizes: dict[object, int], tally: Counter[str]
) -> Iterator[str]:
    """Each claim that a run disproves. Unknowns are bound where they first stand alone."""
    graph = facts.graph
    for node in graph.topological():
        for index, info in enumerate(node.outputs):
            real = produced.get(info.name)
            if not info.name or real is None:
                continue
            fact = facts.of(node.value(index))
            where = f"{graph.label(node)} '{info.name}' {fact}"
            yield from (f"{where}: {fault}" for fault in against(fact, real, sizes, tally))


def against(fact: Fact, real: object, sizes: dict[object, int], tally: Counter[str]) -> Iterator[str]:
    if isinstance(real, list):
        if fact.elem is not None:
            for item in real:
                yield from against(Fact(fact.elem.dtype, None), item, sizes, tally)
                yield from of_element(fact.elem, item)
        elif fact.type is None and (fact.dtype is not None or fact.shape is not None):
            yield "is a sequence"
        return
    array = np.asarray(real)
    tally["dims"] += array.ndim
    if fact.dtype is not None and array.dtype.kind != "V" and fact.dtype.numpy != array.dtype:
        wide = array.dtype == np.uint8 and fact.dtype.bits <= 8
        if not wide and (fact.dtype is not DType.STRING or array.dtype.kind not in "OSU"):
            yield f"element type is {array.dtype}"
    if fact.shape is None:
        return
    if len(fact.shape) != array.ndim:
        yield f"shape is {array.shape}"
        return
    for dim, size in zip(fact.shape, array.shape, strict=True):
        tally["known"] += dim.is_known
        yield from mismatch(dim, size, sizes)
    if fact.value is not None:
        if fact.value.shape != array.shape:
            yield f"contents of shape {fact.value.shape}"
            return
        for item, element in zip(fact.value.items, array.ravel().tolist(), strict=True):
            yield from wrong_element(item, element, sizes)


def mismatch(dim: Dim, size: int, sizes: dict[object, int]) -> Iterator[str]:
    for atom in dim.leaves:
        if atom.kind == "fresh" and atom not in sizes and len(dim.terms) == 1 and dim == Dim.lone(atom):
            sizes[atom] = size
    claimed = dim.evaluate(sizes)
    if claimed is not None and claimed != size:
        yield f"{dim} = {claimed}, really {size}"
    low, high = dim.bounds
    if not low <= size <= high:
        yield f"{dim} in {dim.bounds}, really {size}"


def wrong_element(item: object, real: object, sizes: dict[object, int]) -> Iterator[str]:
    if isinstance(item, Dim):
        claimed = item.evaluate(sizes)
    elif isinstance(item, Ratio):
        top = item.numerator.evaluate(sizes)
        claimed = None if top is None else top / item.denominator
    else:
        claimed = item
    if claimed is not None and not np.isclose(claimed, real, rtol=1e-6, atol=0, equal_nan=True):
        yield f"element {item} = {claimed}, really {real}"


def of_element(elem: Fact, real: object) -> Iterator[str]:
    if elem.shape is not None and not isinstance(real, list):
        if len(elem.shape) != np.ndim(real):
            yield f"element of shape {np.shape(real)}"
        for dim, size in zip(elem.shape, np.shape(real), strict=False):
            if dim.value is not None and dim.value != size:
                yield f"element of shape {np.shape(real)}"


# ---------------------------------------------------------------- the models of the onnx package


def generalized(proto: onnx.ModelProto, feeds: Arrays, freeze: bool) -> onnx.ModelProto:
    """Input dims unknown; with ``freeze``, small integer and truth inputs (but the first) constant."""
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    for index, info in reversed(list(enumerate(made.graph.input))):
        array = feeds.get(info.name)
        if not info.type.HasField("tensor_type") or array is None:
            continue
        small = array.dtype.kind in "iub" and array.size <= 16 and array.ndim <= 1
        scales = index and array.dtype.kind == "f" and array.size <= 16 and array.ndim == 1
        if (
            freeze
            and index
            and (small or scales)
            and array.dtype.name in ("int64", "int32", "bool", "float32")
        ):
            made.graph.initializer.append(numpy_helper.from_array(array, info.name))
            del made.graph.input[index]
        else:
            for dim in info.type.tensor_type.shape.dim:
                dim.ClearField("dim_value")
    for output in made.graph.output:
        output.type.Clear()
    return made


def case_feeds(case: object) -> Arrays:
    inputs, _ = case.data_sets[0]
    names = [i.name for i in case.model.graph.input]
    return {n: _array(x) for n, x in zip(names, inputs, strict=False) if _array(x) is not None}


def _array(item: object) -> object:
    if isinstance(item, onnx.TensorProto):
        return numpy_helper.to_array(item)
    return item if isinstance(item, (np.ndarray, np.generic, list)) else None


@pytest.mark.filterwarnings("ignore")  # onnx computes its expected outputs with overflows and NaN
def test_backend_node_models() -> None:
    from onnx.backend.test.case.node import collect_testcases

    tally: Counter[str] = Counter()
    faults: list[str] = []
    for case in collect_testcases(""):
        feeds = case_feeds(case)
        names = [o.name for o in case.model.graph.output]
        produced = dict(zip(names, map(_array, case.data_sets[0][1]), strict=False))
        try:
            produced |= run(exposed(case.model), feeds)
            tally["run by onnxruntime"] += 1
        except Exception:  # onnxruntime does not run every model of the suite
            tally["expected outputs only"] += 1
        arrays = {n: f for n, f in feeds.items() if isinstance(f, np.ndarray)}
        for variant in ("static", "dynamic", "frozen"):
            made = case.model if variant == "static" else generalized(case.model, arrays, variant == "frozen")
            model = load(made)
            facts = Facts(model.graph, model.functions).settle()
            sizes = sizes_of(facts, arrays)
            counts: Counter[str] = Counter()
            found = list(contradictions(facts, produced, sizes, counts)) + facts.warnings
            faults += [f"{case.name} ({variant}): {fault}" for fault in found]
            tally.update({f"{variant} {key}": n for key, n in counts.items()})
    print("\n" + "\n".join(f"{key}: {n}" for key, n in tally.items()))
    assert not faults, "\n" + "\n".join(faults)


# ---------------------------------------------------------------- models of a folder


def recipe(name: str) -> dict[str, dict[str, object]]:
    path = os.environ.get("OINFER_INPUTS")
    merged: dict[str, dict[str, object]] = {}
    for pattern, entry in json.loads(Path(path).read_text()).items() if path else ():
        if not pattern.startswith("_") and re.search(pattern, name):
            for key, part in entry.items():
                if isinstance(part, dict):
                    merged.setdefault(key, {}).update(part)
                else:
                    merged[key] = part
    return merged


def make_feeds(proto: onnx.ModelProto, name: str, which: int) -> Arrays:
    """Valid inputs at the first or second size."""
    rule, rng, feeds = recipe(name), np.random.default_rng(which), {}
    symbols: dict[str, int] = {}
    known = {i.name for i in proto.graph.initializer}
    for info in proto.graph.input:
        if info.name in known:
            continue
        tensor = info.type.tensor_type
        shape = []
        for axis, dim in enumerate(tensor.shape.dim):
            wanted = rule.get("dims", {}).get(f"{info.name}:{axis}", rule.get("dims", {}).get(dim.dim_param))
            usual = [(2, 3), (16, 11)][axis > 0] if len(tensor.shape.dim) != 4 or axis < 2 else (64, 96)
            if dim.HasField("dim_value") and dim.dim_value >= 0:
                shape.append(dim.dim_value)
            else:
                size = (wanted or usual)[which]
                shape.append(symbols.setdefault(dim.dim_param, size) if dim.dim_param else size)
        feeds[info.name] = _content(info.name, tensor.elem_type, tuple(shape), rule, rng)
    return feeds


def _content(
    name: str, kind: int, shape: tuple[int, ...], rule: dict, rng: np.random.Generator
) -> np.ndarray:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    if name in rule.get("const", {}):
        return np.full(shape, rule["const"][name], dtype)
    if "mask" in name or name in rule.get("ones", ()):
        return np.ones(shape, dtype)
    if dtype.kind in "iu":
        low, high = rule.get("range", {}).get(name, (0, 2) if "type" in name else (1, 1000))
        return rng.integers(low, high, shape).astype(dtype)
    if dtype.kind == "O":
        return np.full(shape, "a", dtype)
    uniform = name in rule.get("uniform", ())
    return (rng.random(shape) if uniform else rng.standard_normal(shape)).astype(dtype)


def models() -> list[Path]:
    folder = os.environ.get("OINFER_MODELS")
    return sorted(Path(folder).glob("*.onnx")) if folder else []


@pytest.mark.parametrize("path", models(), ids=lambda path: path.stem)
def test_models_of_a_folder(path: Path) -> None:
    proto = onnx.load(path)
    wide = exposed(proto)
    model = load(path)
    facts = Facts(model.graph, model.functions).settle()
    faults, tally = [], Counter()
    for which in (0, 1):
        feeds = make_feeds(proto, path.stem, which)
        sizes = sizes_of(facts, feeds)
        faults += list(contradictions(facts, run(wide, feeds), sizes, tally))
    print(f"\n{path.stem}: {dict(tally)}")
    assert not faults, "\n" + "\n".join(faults[:40])
