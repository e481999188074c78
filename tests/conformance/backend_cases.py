"""The test cases of onnx's backend suite, built once per onnx version and kept on disk."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


@dataclass(frozen=True)
class Case:
    """One model with its data sets of (inputs, expected outputs), both in the model's order."""

    name: str
    kind: str
    model: bytes
    data_sets: tuple[tuple[list[Any], list[Any]], ...]
    rtol: float
    atol: float


def cache_dir() -> Path:
    """Where built cases are kept: ``$OINFER_CACHE`` or the user's cache folder."""
    base = os.environ.get("OINFER_CACHE") or Path.home() / ".cache" / "oinfer-opt"
    return Path(base)


@cache
def load_cases(kind: str) -> tuple[Case, ...]:
    """Every case of one kind; building the node cases takes about 15 s the first time."""
    import onnx

    path = cache_dir() / f"backend-{onnx.__version__}-{kind}.pickle"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_bytes(pickle.dumps(tuple(_build(kind))))
        draft.replace(path)
    found: tuple[Case, ...] = pickle.loads(path.read_bytes())
    return found


def _build(kind: str) -> Iterator[Case]:
    import onnx

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        cases = load_model_tests(kind=kind)
    for case in sorted(cases, key=lambda c: c.name):
        if case.model_dir is None:
            sets = tuple(
                ([_plain(v) for v in ins], [_plain(v) for v in outs]) for ins, outs in case.data_sets
            )
            yield Case(case.name, kind, case.model.SerializeToString(), sets, case.rtol, case.atol)
            continue
        folder = Path(case.model_dir)
        model = onnx.load(folder / "model.onnx")
        sets = tuple(_read_set(model, part) for part in sorted(folder.glob("test_data_set_*")))
        yield Case(case.name, kind, (folder / "model.onnx").read_bytes(), sets, case.rtol, case.atol)


def _read_set(model: Any, folder: Path) -> tuple[list[Any], list[Any]]:
    constants = {t.name for t in model.graph.initializer}
    fed = [i for i in model.graph.input if i.name not in constants]
    many = len(list(folder.glob("input_*.pb")))
    declared = fed if many == len(fed) else list(model.graph.input)
    inputs = [_read(folder / f"input_{i}.pb", info.type) for i, info in enumerate(declared[:many])]
    outputs = [_read(folder / f"output_{i}.pb", info.type) for i, info in enumerate(model.graph.output)]
    return inputs, outputs


def _read(path: Path, type_: Any) -> Any:
    import onnx
    from onnx import numpy_helper

    kind = type_.WhichOneof("value")
    data = path.read_bytes()
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def _plain(value: Any) -> Any:
    """Some cases carry protobuf tensors."""
    from onnx import TensorProto, numpy_helper

    if isinstance(value, list):
        return [_plain(v) for v in value]
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def differences(got: Any, expected: Any, case: Case) -> str:
    """What is wrong with an output, in a few words; empty where nothing is."""
    if isinstance(expected, (list, tuple)):
        if not isinstance(got, list) or len(got) != len(expected):
            return f"got {type(got).__name__} instead of a sequence of {len(expected)}"
        found = (differences(g, e, case) for g, e in zip(got, expected, strict=True))
        return next((f for f in found if f), "")
    if expected is None:
        return "" if repr(got) == "NONE" else f"got {type(got).__name__} instead of nothing"
    expected = np.asarray(expected)
    if not isinstance(got, np.ndarray):
        return f"got {got!r} instead of a tensor"
    if got.shape != expected.shape:
        return f"shape {got.shape} instead of {expected.shape}"
    if expected.dtype.kind in "OSU":
        return "" if got.astype(str).tolist() == expected.astype(str).tolist() else "strings differ"
    if got.dtype != expected.dtype:
        return f"dtype {got.dtype} instead of {expected.dtype}"
    rtol = 2**-6 if got.dtype.name == "bfloat16" else case.rtol
    exact = got.dtype.kind in "biu"
    a, b = (
        x if exact else x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
        for x in (got, expected)
    )
    if exact or got.dtype.itemsize == 1:
        same = np.array_equal(a, b, equal_nan=not exact)
    else:
        same = np.allclose(a, b, rtol=rtol, atol=case.atol, equal_nan=True)
    if same or not a.size:
        return ""
    return f"values differ by up to {np.nanmax(np.abs(a.astype(complex) - b.astype(complex))):.3g}"
