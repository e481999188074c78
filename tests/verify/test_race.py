"""Two states of a model timed against each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optimizer.io import parse
from optimizer.rewrite import Context
from optimizer.verify import race
from optimizer.verify.race import ModelRace

FEEDS: dict[str, Any] = {"x": np.linspace(-3, 3, 1 << 14, dtype=np.float32)}


def snapshot(body: str, found: ModelRace) -> bytes:
    model = parse(f'<ir_version: 8, opset_import: ["" : 17]> g (float[N] x) => (float[N] y) {{ {body} }}')
    return found.snapshot(Context(model))


def test_much_less_work_is_found_faster() -> None:
    found = ModelRace(lambda: FEEDS)
    much, little = (
        snapshot("a = Softplus(x) b = Softplus(a) y = Softplus(b)", found),
        snapshot("y = Relu(x)", found),
    )
    assert found.is_faster(much, little) is True
    assert found.is_faster(little, much) is False


def test_what_cannot_be_tried_settles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ModelRace(lambda: FEEDS)
    plain = snapshot("y = Relu(x)", found)
    assert ModelRace(lambda: None).is_faster(plain, plain) is None
    assert found.is_faster(b"", plain) is None
    assert found.is_faster(b"no model", plain) is None
    assert ModelRace(lambda: {"x": np.zeros((2, 2), np.float32)}).is_faster(plain, plain) is None
    monkeypatch.setattr(race, "LARGEST", -1)
    assert found.snapshot(Context(parse(TEXT))) == b""


def test_the_number_of_races_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "MOST_RACES", 1)
    asked: list[int] = []

    def feeds() -> None:
        asked.append(1)

    found = ModelRace(feeds)
    for _ in range(3):
        assert found.is_faster(b"a", b"b") is None
    assert len(asked) == 1


TEXT = '<ir_version: 8, opset_import: ["" : 17]> g (float[N] x) => (float[N] y) { y = Relu(x) }'
