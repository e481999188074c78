"""Files: external data in and out, and saving that leaves nothing half-written."""

from __future__ import annotations

import errno
import io
import os
import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from optimizer.io import load, parse, save, stage, to_proto
from optimizer.ir import InvalidModel, Model, Origin, StorageError

HEAD = '<ir_version: 10, opset_import: ["": 21]>\n'
SIZE = 600
BODIES = (
    f"g (float[{SIZE}] x, bool c) => (float[{SIZE}] y) {{ a = Add(x, w) y = If(c)"
    f" <then_branch = t () => (float[{SIZE}] r) <float[{SIZE}] k = {{{','.join(map(str, range(SIZE)))}}}>"
    f" {{ r = Add(a, k) }}, else_branch = e () => (float[{SIZE}] s) {{ s = Add(a, small) }}> }}"
)
WEIGHTS = {"w": np.arange(SIZE, dtype=np.float32) / 7, "small": np.array([3], np.float32)}


def model() -> Model:
    return parse(HEAD + BODIES, WEIGHTS)


def run(path: Path, c: bool = True) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options)
    (found,) = session.run(None, {"x": np.zeros(SIZE, np.float32), "c": np.array(c)})
    return found


def test_external_data_round_trip(tmp_path: Path) -> None:
    result = save(model(), tmp_path / "m.onnx", external_data=True)
    data = result.data_path
    assert data is not None
    assert re.fullmatch(r"m\.onnx-[0-9a-f]{16}\.data", data.name)
    assert result.bytes == data.stat().st_size + result.path.stat().st_size
    proto = onnx.load(result.path, load_external_data=False)
    places = {t.name: {e.key: e.value for e in t.external_data} for t in proto.graph.initializer}
    assert places["small"] == {}
    assert places["w"]["location"] == data.name
    onnx.checker.check_model(str(result.path))
    k = np.arange(SIZE, dtype=np.float32)
    np.testing.assert_array_equal(run(result.path), WEIGHTS["w"] + k)
    np.testing.assert_array_equal(run(result.path, c=False), WEIGHTS["w"] + 3)
    again = load(result.path)
    for value in again.graph.constants:
        array = again.graph.const(value)
        assert array is not None
        assert array.flags.aligned
        np.testing.assert_array_equal(array, WEIGHTS[again.graph.info(value).name])
    inline = save(again, tmp_path / "inline.onnx")
    assert inline.data_path is None
    np.testing.assert_array_equal(run(inline.path), WEIGHTS["w"] + k)
    assert to_proto(again).graph.initializer[0].data_location == TensorProto.DEFAULT


def test_files_are_deterministic(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        save(model(), tmp_path / folder / "m.onnx", external_data=True)
    first, second = (sorted((tmp_path / folder).iterdir()) for folder in ("a", "b"))
    assert [path.name for path in first] == [path.name for path in second]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    save(model(), tmp_path / "a" / "m.onnx", external_data=True)
    assert sorted((tmp_path / "a").iterdir()) == first


def test_a_model_may_be_saved_over_its_own_data(tmp_path: Path) -> None:
    """The weights that are being read are never overwritten."""
    path = tmp_path / "m.onnx"
    save(model(), path, external_data=True)
    loaded = load(path)
    value = next(v for v in loaded.graph.constants if loaded.graph.info(v).name == "w")
    loaded.graph.add_constant(np.asarray(loaded.graph.const(value)) * 2, "double")
    second = save(loaded, path, external_data=True)
    assert second.data_path is not None
    k = np.arange(SIZE, dtype=np.float32)
    np.testing.assert_array_equal(run(path), WEIGHTS["w"] + k)


def external(folder: Path, **entries: str) -> Path:
    """A model with one external tensor of 8 bytes."""
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2])
    weights.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        weights.external_data.add(key=key, value=value)
    graph = helper.make_graph([], "g", [], [helper.make_tensor_value_info("w", 1, [2])], [weights])
    path = folder / "m.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    return path


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ({"location": "w.bin"}, [1, 2]),
        ({"location": "w.bin", "length": "8"}, [1, 2]),
        ({"location": "w.bin", "offset": "4", "length": "8"}, [2, 3]),
        ({"location": "sub/odd.bin", "offset": "1"}, [1, 2]),
    ],
)
def test_reading_external_data(tmp_path: Path, entries: dict[str, str], expected: list[float]) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "w.bin").write_bytes(np.array([1, 2, 3], np.float32).tobytes())
    (tmp_path / "sub" / "odd.bin").write_bytes(b"x" + np.array([1, 2], np.float32).tobytes())
    graph = load(external(tmp_path, **entries)).graph
    array = graph.const(graph.constants[0])
    assert array is not None
    assert array.flags.aligned
    assert array.tolist() == expected


@pytest.mark.parametrize(
    ("entries", "word"),
    [
        ({"location": "gone.bin"}, "is missing"),
        ({"location": ""}, "relative"),
        ({}, "relative"),
        ({"location": "/etc/hostname"}, "relative"),
        ({"location": "../outside.bin"}, "outside the model's folder"),
        ({"location": "link.bin"}, "outside the model's folder"),
        ({"location": "w.bin", "offset": "8"}, "too short"),
        ({"location": "w.bin", "offset": "-4"}, "too short"),
        ({"location": "w.bin", "offset": "99999999999999999999"}, "too short"),
        ({"location": "w.bin", "length": "4"}, "4 bytes of raw data, 8 are needed"),
        ({"location": "w.bin", "length": "-8"}, "too short"),
        ({"location": "w.bin", "offset": "four"}, "no number"),
        ({"location": "empty.bin"}, "too short"),
        ({"location": "."}, "is missing"),
    ],
)
def test_bad_external_data(tmp_path: Path, entries: dict[str, str], word: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "outside.bin").write_bytes(bytes(8))
    (folder / "link.bin").symlink_to(tmp_path / "outside.bin")
    (folder / "w.bin").write_bytes(bytes(12))
    (folder / "empty.bin").touch()
    path = external(folder, **entries)
    with pytest.raises(InvalidModel) as caught:
        load(path)
    assert word in str(caught.value)
    assert "'w'" in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_external_data_needs_a_folder(tmp_path: Path) -> None:
    data = external(tmp_path, location="w.bin").read_bytes()
    with pytest.raises(InvalidModel, match="not loaded from a file"):
        load(data)


# ---------------------------------------------------------------- saving that fails


@pytest.mark.parametrize("external_data", [False, True])
@pytest.mark.parametrize("fail_at", [1, 2, 3, 4])
def test_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, external_data: bool, fail_at: int
) -> None:
    """Whichever write fails, nothing new is left and an earlier file is as it was."""
    path = tmp_path / "m.onnx"
    path.write_bytes(b"earlier")
    real = Path.open
    writes = 0

    class Full(io.BufferedWriter):
        def write(self, data) -> int:
            nonlocal writes
            writes += 1
            if writes == fail_at:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(data)

        def writelines(self, pieces) -> None:
            for piece in pieces:
                self.write(piece)

    def open_(self: Path, mode: str = "r"):
        file = real(self, mode)
        return Full(file.detach()) if mode == "xb" else file

    monkeypatch.setattr(Path, "open", open_)
    with pytest.raises(StorageError, match="No space left") as caught:
        save(model(), path, external_data=external_data)
    assert caught.value.exit_code == 4
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.onnx"]
    assert path.read_bytes() == b"earlier"


def test_failed_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    path = tmp_path / "m.onnx"
    path.write_bytes(b"earlier")
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(StorageError, match="Permission denied"):
        save(model(), path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.onnx"]
    assert path.read_bytes() == b"earlier"


@pytest.mark.parametrize(
    ("place", "word"),
    [("folder", "is a directory"), ("gone/m.onnx", "there is no folder"), ("file/m.onnx", "no folder")],
)
def test_impossible_targets(tmp_path: Path, place: str, word: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=word):
        save(model(), tmp_path / place)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]


def test_special_files_are_not_replaced() -> None:
    with pytest.raises(StorageError, match="not a regular file"):
        save(model(), "/dev/null")
    assert Path("/dev/null").is_char_device()


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "m.onnx"
    link.symlink_to(tmp_path / "real" / "target.onnx")
    result = save(model(), link, external_data=True)
    assert link.is_symlink()
    assert result.path == tmp_path / "real" / "target.onnx"
    np.testing.assert_array_equal(run(result.path, c=False), WEIGHTS["w"] + 3)


@pytest.mark.parametrize("external_data", [False, True])
def test_staging(tmp_path: Path, external_data: bool) -> None:
    """What is staged loads, and leaves no trace when discarded."""
    path = tmp_path / "m.onnx"
    path.write_bytes(b"earlier")
    staged = stage(model(), path, external_data=external_data)
    np.testing.assert_array_equal(run(staged.path, c=False), WEIGHTS["w"] + 3)
    staged.discard()
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.onnx"]
    assert path.read_bytes() == b"earlier"
    stage(model(), path, external_data=external_data).commit()
    np.testing.assert_array_equal(run(path, c=False), WEIGHTS["w"] + 3)
    assert len(list(tmp_path.iterdir())) == 1 + external_data


def test_discarding_keeps_data_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    save(model(), path, external_data=True)
    stage(model(), path, external_data=True).discard()
    np.testing.assert_array_equal(run(path, c=False), WEIGHTS["w"] + 3)


def test_too_large_for_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optimizer.io.saver.PROTOBUF_LIMIT", 5000)
    assert save(model(), tmp_path / "m.onnx").data_path is not None
    with pytest.raises(StorageError, match="external data"):
        save(model(), tmp_path / "n.onnx", external_data=False)
    monkeypatch.setattr("optimizer.io.saver.PROTOBUF_LIMIT", 100)
    with pytest.raises(StorageError, match="its nodes alone"):
        save(model(), tmp_path / "o.onnx")
    assert len(list(tmp_path.iterdir())) == 2


def test_annotate() -> None:
    made = parse(HEAD + "g (float[2] x) => (float[2] y) { y = Relu(x) }")
    origin = Origin(rule="some-rule", sources=("a", "b"))
    made.graph.set_outputs([made.graph.add("Neg", [made.graph.inputs[0]], origin=origin).value()], ["y"])
    pairs = [("oinfer.rule", "some-rule"), ("oinfer.sources", "a b")]
    for annotate, expected in ((False, []), (True, pairs)):
        node = to_proto(made, annotate=annotate).graph.node[1]
        assert [(entry.key, entry.value) for entry in node.metadata_props] == expected


def test_typed_weights_can_become_external(tmp_path: Path) -> None:
    array = np.arange(SIZE, dtype=np.float32)
    weights = helper.make_tensor("w", TensorProto.FLOAT, [SIZE], array)
    graph = helper.make_graph([], "g", [], [helper.make_tensor_value_info("w", 1, [SIZE])], [weights])
    result = save(load(helper.make_model(graph)), tmp_path / "m.onnx", external_data=True)
    np.testing.assert_array_equal(numpy_helper.to_array(onnx.load(result.path).graph.initializer[0]), array)
    assert result.data_path is not None
