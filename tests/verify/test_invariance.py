"""What must not matter for the size of a result: the order of the nodes, and how inner tensors are called."""

from __future__ import annotations

import os
import random
from pathlib import Path

import onnx
import pytest

import optimizer
from benchmarks.invariance import disguise
from optimizer.io import parse, save

NETS = sorted(Path(os.environ.get("OINFER_MODELS", "/nowhere")).glob("*.onnx"))
LARGEST = 256 << 20

SHAPES = """<ir_version: 10, opset_import: ["" : 17]>
g (float[N, T, 8] x, float[N, 3] z) => (float[A, B] m, float[C, D, E] e, int64 u, int64 y, int64 w) <
    int64 first = {0}, int64 second = {1}, int64 two = {2}> {
    m = Abs (z) s = Shape (m) a = Gather (s, first) u = Neg (a)
    e = Exp (x) t = Shape (e) c = Gather (t, first) d = Gather (t, second)
    y = Mul (d, two) w = Sub (c, two) }"""


def sizes(source: Path) -> dict[str, int]:
    return dict(optimizer.optimize(source, size_limit=None, verify="off").report.after.histogram)


def looks_do_not_matter(source: Path, folder: Path, seed: int) -> None:
    other = folder / "disguised.onnx"
    onnx.save(disguise(onnx.load(source), random.Random(seed)), other)
    assert sum(sizes(other).values()) == sum(sizes(source).values())


@pytest.mark.parametrize("seed", range(4))
def test_a_small_net(tmp_path: Path, seed: int) -> None:
    save(parse(SHAPES), tmp_path / "net.onnx")
    assert sizes(tmp_path / "net.onnx")["Shape"] == 1
    looks_do_not_matter(tmp_path / "net.onnx", tmp_path, seed)


@pytest.mark.sweep
@pytest.mark.parametrize("path", NETS, ids=lambda path: path.stem)
def test_nets(path: Path, tmp_path: Path) -> None:
    if path.stat().st_size > LARGEST:
        pytest.skip("disguising it takes long")
    looks_do_not_matter(path, tmp_path, 5)
