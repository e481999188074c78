"""The kernel registry: choice of version, replacement, what kernels declare."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import defs

from optimizer.ir import ValueInfo
from optimizer.runtime import REGISTRY, Call, ExecutionContext, Kernel, KernelRegistry, Options
from optimizer.runtime.kernels import load_kernels

load_kernels()


def make(since: int, domain: str = "", **declared: Any) -> Kernel:
    return Kernel(since, domain, "Op", lambda call: since, **declared)


def test_the_highest_version_not_above_the_opset() -> None:
    registry = KernelRegistry()
    for since in (13, 1, 11):
        registry.register(make(since))
    assert registry.versions("", "Op") == (1, 11, 13)
    chosen = {opset: registry.find("", "Op", opset) for opset in (1, 10, 11, 12, 13, 99)}
    assert {opset: k.since for opset, k in chosen.items() if k} == {
        1: 1,
        10: 1,
        11: 11,
        12: 11,
        13: 13,
        99: 13,
    }
    assert registry.find("", "Op", 0) is None
    assert registry.find("other", "Op", 5) is None
    assert registry.versions("", "Missing") == ()


def test_the_default_domain_has_two_names_and_versions_replace() -> None:
    registry = KernelRegistry()
    registry.register(make(1, "ai.onnx"))
    assert registry.find("", "Op", 3) is registry.find("ai.onnx", "Op", 3)
    newer = make(1, exact=True)
    registry.register(newer)
    assert registry.find("", "Op", 1) is newer
    assert len(list(registry)) == 1


@pytest.mark.parametrize(
    ("op", "versions"),
    [
        ("Cast", {1, 6}),
        ("Clip", {1, 11}),
        ("Dropout", {1, 7, 10, 12}),
        ("Pad", {1, 2, 11}),
        ("Pow", {1, 7}),
        ("ReduceMean", {1, 18}),
        ("ReduceSum", {1, 13}),
        ("Reshape", {1, 5}),
        ("Scan", {8, 9}),
        ("Shape", {1, 15}),
        ("Slice", {1, 10}),
        ("Softmax", {1, 13}),
        ("Split", {1, 18}),
        ("Squeeze", {1, 13}),
        ("Tile", {1, 6}),
        ("TopK", {1, 10}),
        ("Unsqueeze", {1, 13}),
    ],
)
def test_where_the_meaning_or_the_inputs_changed_a_kernel_starts(op: str, versions: set[int]) -> None:
    assert versions <= set(REGISTRY.versions("", op))


def test_every_kernel_is_of_an_op_that_exists() -> None:
    known = {(s.domain, s.name) for s in defs.get_all_schemas_with_history()}
    standard = {domain for domain, _ in known}
    simplified = {("", "SimplifiedLayerNormalization"), ("", "SkipSimplifiedLayerNormalization")}
    ours = {(k.domain, k.op_type) for k in REGISTRY if k.domain in standard}
    assert ours - known - simplified == set()


def test_call_gives_plain_attributes_and_wanted_outputs() -> None:
    call = Call(
        "Op",
        {"alpha": 0.5, "axes": (1, 2)},
        opset=18,
        outputs=(ValueInfo("a"), ValueInfo("b")),
        wanted=(True, False),
    )
    assert (call.attr("alpha"), call.attr("axes"), call.attr("beta", 7)) == (0.5, (1, 2), 7)
    assert (call.has("alpha"), call.has("beta"), call.output_count) == (True, False, 2)
    assert [call.wants(i) for i in range(3)] == [True, False, False]
    assert call.dtype(0, np.int8) == np.int8
    assert call.dtype(10) == np.float16
    truth = Call("Op", opset=18, context=ExecutionContext(Options(truth=True)))
    assert truth.dtype(10) == truth.dtype(16) == truth.dtype(1) == np.float64
    assert truth.dtype(17).itemsize == 1
    assert truth.dtype(7) == np.int64


def test_derived_forms_are_kept_for_constants_within_the_budget() -> None:
    made: list[int] = []

    def make_form() -> np.ndarray:
        made.append(1)
        return np.zeros(10, np.float32)

    context = ExecutionContext(Options(cache_bytes=60))
    call = Call("Op", opset=1, constant_inputs=frozenset({1}), context=context)
    for _ in range(2):
        call.derived(0, "f", make_form)
    assert len(made) == 2
    for _ in range(2):
        call.derived(1, "f", make_form)
    assert len(made) == 3
    for _ in range(2):
        call.derived(1, "g", make_form)  # 40 of 60 bytes are taken
    assert len(made) == 5
