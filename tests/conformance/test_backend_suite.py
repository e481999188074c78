"""onnx's backend suite through load and Session. Long: ``pytest -m sweep tests/conformance``."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from backend_cases import KINDS, Case, differences, load_cases

from optimizer.io import load
from optimizer.runtime import Session, reuse

RANDOM = "random output: no two engines agree"
AUTODIFF = "Gradient is automatic differentiation, not an operator with a value"

NOT_COUNTED = {
    "test_bernoulli": RANDOM,
    "test_bernoulli_double": RANDOM,
    "test_bernoulli_double_expanded": RANDOM,
    "test_bernoulli_expanded": RANDOM,
    "test_bernoulli_seed": RANDOM,
    "test_bernoulli_seed_expanded": RANDOM,
    "test_gradient_of_add": AUTODIFF,
    "test_gradient_of_add_and_mul": AUTODIFF,
}


@pytest.mark.sweep
@pytest.mark.parametrize("kind", KINDS)
def test_backend_suite(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    cases = load_cases(kind)
    failed = {case.name: fault for case in cases if (fault := _fault(case))}
    unexpected = {name: fault for name, fault in failed.items() if name not in NOT_COUNTED}
    right = len(cases) - len(failed)
    with capsys.disabled():
        print(f"\n{kind}: {right} of {len(cases)} right, {len(unexpected)} unexpected failures")
    assert unexpected == {}
    passed = {case.name for case in cases} - failed.keys()
    assert not passed & NOT_COUNTED.keys(), "cases that are listed as not counted pass now"


@pytest.mark.sweep
@pytest.mark.parametrize("kind", KINDS)
def test_reuse_of_memory_changes_no_byte(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "SMALLEST", 0)
    differing = [case.name for case in load_cases(kind) if not _same_bytes(case)]
    assert differing == []


def _same_bytes(case: Case) -> bool:
    """Whether a case gives the same with memory reused and without, and leaves its inputs alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = load(case.model)
        if case.name in NOT_COUNTED and NOT_COUNTED[case.name] == AUTODIFF:
            return True
        sessions = [Session(model, reuse_memory=reused) for reused in (True, False)]
        names = [model.graph.info(value).name for value in model.graph.inputs]
        for inputs, _ in case.data_sets:
            feeds = dict(zip(names, inputs, strict=False))
            before = _bytes(list(feeds.values()))
            first, again, plain = (
                _bytes(list(session.run(feeds).values())) for session in (sessions[0], *sessions)
            )
            if not first == again == plain or before != _bytes(list(feeds.values())):
                return False
    return True


def _bytes(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_bytes(v) for v in value]
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tolist() if value.dtype == object else value.tobytes()
    return repr(value)


def _fault(case: Case) -> str:
    """What goes wrong with a case, or nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = load(case.model)
        try:
            session = Session(model)
            names = [model.graph.info(value).name for value in model.graph.inputs]
            for inputs, expected in case.data_sets:
                got = session.run(dict(zip(names, inputs, strict=False)))
                for fault in _faults(got, expected, case):
                    return fault
        except Exception as error:  # a crash is one more way to fail a case
            return f"{type(error).__name__}: {error}"
    return ""


def _faults(got: dict[str, Any], expected: list[Any], case: Case) -> list[str]:
    found = ((n, differences(g, e, case)) for (n, g), e in zip(got.items(), expected, strict=True))
    return [f"{name}: {fault}" for name, fault in found if fault]
