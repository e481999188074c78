"""What cannot mean anything is refused in one line that names the culprits."""

from __future__ import annotations

import os

import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

from optimizer.io import load, parse
from optimizer.ir import InvalidModel, StorageError

HEAD = '<ir_version: 10, opset_import: ["": 21]>\n'
VALID = HEAD + "g (float[2] x) => (float[2] y) { y = Relu(x) }"


def valid() -> onnx.ModelProto:
    return onnx.parser.parse_model(VALID)


BRANCHES = "g (bool c, float x) => (float y) {{ [o] y = If(c) <then_branch = {}, else_branch = {}> }}"
IMPORT = '<opset_import: ["": 21]>'
CALL = "g (float x) => (float y) { y = f(x) }"
GRAPHS = [
    ("g (float x) => (float y) { y = Add(x, z) }", "undefined|'z'|Add -> 'y'"),
    ("g (float x) => (float z) { y = Relu(x) }", "undefined|'z'|graph output"),
    ("g (float x) => (float y) { [a] y = Relu(x) [b] y = Neg(x) }", "duplicate|'y'|'a'|'b'"),
    ("g (float x) => (float x) { [a] x = Relu(x) }", "duplicate|'x'|'a'|graph input"),
    ("g (float x) => (float y) <float w={1}> { y = Relu(x) [a] w = Neg(x) }", "duplicate|'w'|'a'"),
    ("g (float x, float x) => (float y) { y = Relu(x) }", "duplicate|two inputs 'x'"),
    ("g (float x) => (float y) <float w={1}, float w={2}> { y = Add(x, w) }", "duplicate|initializers|'w'"),
    ("g (float x) => (float y, float y) { y = Relu(x) }", "output twice"),
    ("g (float x) => (float c) { [p] a = Add(x, b) [q] b = Relu(a) c = Neg(b) }", "cycle of 2|'p'|'q'"),
    ("g (float x) => (float a) { [p] a = Add(x, a) }", "cycle of 1|'p'"),
    (
        BRANCHES.format("t () => (float u) { u = Relu(q) }", "e () => (float v) { v = Relu(q) }"),
        "undefined|'q'|Relu -> 'u'",
    ),
    (
        BRANCHES.format("t () => (float u) { u = Relu(y) }", "e () => (float v) { v = Relu(x) }"),
        "cycle of 1|'o'",
    ),
    (
        BRANCHES.format("t () => (float u) { u = Relu(x) x = Neg(u) }", "e () => (float v) { v = Relu(x) }"),
        "'x'|before it is made|rename",
    ),
    ("g (float x) => (float y) <float[2] w={1}> { y = Add(x, w) }", "'w'|FLOAT[2]|1 entries|2 are"),
    ("g (float x) => (float y) { y = Add(x", "the text is no model"),
    (f"{CALL} {IMPORT} f (a) => (b) {{ b = Add(a, q) }}", "undefined|'q'|function '::f'"),
    (
        f"{CALL} {IMPORT} f (a) => (b) {{ b = Neg(a) }} {IMPORT} f (a) => (b) {{ b = Abs(a) }}",
        "two functions",
    ),
]


@pytest.mark.parametrize(("text", "words"), GRAPHS, ids=[words for _, words in GRAPHS])
def test_meaningless_graph(text: str, words: str) -> None:
    with pytest.raises(InvalidModel) as caught:
        parse(HEAD + text)
    message = str(caught.value)
    assert "\n" not in message
    assert [word for word in words.split("|") if word not in message] == [], message


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"data_type": 1, "dims": [2], "raw_data": b"1234"}, "'w'|4 bytes of raw data|8 are"),
        ({"data_type": 1, "dims": [2]}, "'w'|0 entries of float_data|2 are"),
        ({"data_type": 99, "dims": [0]}, "unknown element type 99"),
        ({"dims": [0]}, "'w'|no element type"),
        ({"data_type": 1, "dims": [-1]}, "'w'|negative size"),
        ({"data_type": 8, "dims": [1], "raw_data": b"x"}, "'w'|string_data"),
        ({"data_type": 22, "dims": [3], "int32_data": [1, 2, 3]}, "'w'|INT4[3]|3 entries|2 are"),
        ({"data_type": 14, "dims": [2], "float_data": [1, 2]}, "'w'|COMPLEX64[2]|2 entries|4 are"),
    ],
)
def test_meaningless_tensor(fields: dict[str, object], words: str) -> None:
    model = valid()
    model.graph.initializer.add(name="w", **fields)
    with pytest.raises(InvalidModel) as caught:
        load(model)
    assert [word for word in words.split("|") if word not in str(caught.value)] == [], str(caught.value)


def attribute_twice() -> onnx.ModelProto:
    model = valid()
    model.graph.node[0].attribute.extend([helper.make_attribute("a", 1), helper.make_attribute("a", 2)])
    return model


def attribute_without_value() -> onnx.ModelProto:
    model = valid()
    model.graph.node[0].attribute.add(name="empty")
    return model


def output_without_name() -> onnx.ModelProto:
    model = valid()
    model.graph.output.add()
    return model


def input_without_name() -> onnx.ModelProto:
    model = valid()
    model.graph.input.add()
    return model


def without_ir_version() -> onnx.ModelProto:
    model = valid()
    model.ClearField("ir_version")
    return model


def sparse_out_of_step() -> onnx.ModelProto:
    model = valid()
    sparse = model.graph.sparse_initializer.add(dims=[4])
    sparse.values.CopyFrom(helper.make_tensor("s", TensorProto.FLOAT, [2], [1.0, 2.0]))
    sparse.indices.CopyFrom(helper.make_tensor("i", TensorProto.INT64, [1], [1]))
    return model


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (attribute_twice, "attribute twice"),
        (attribute_without_value, "'empty'"),
        (output_without_name, "output of graph 'g' has no name"),
        (input_without_name, "input of graph 'g' has no name"),
        (without_ir_version, "ir_version"),
        (sparse_out_of_step, "'s'"),
    ],
)
def test_malformed_message(build: object, word: str) -> None:
    assert callable(build)
    with pytest.raises(InvalidModel, match=word):
        load(build())


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"# a recipe\nflour, water\n", "text file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        (b"\x18\0\0\0ORTMxxxx", "onnxruntime .ort"),
        (b"PK\x03\x04" + bytes(40), "zip"),
        (bytes(range(7, 256)) * 9, "another format"),
        (valid().SerializeToString()[:-3], "truncated"),
        (onnx.ModelProto(ir_version=8).SerializeToString(), "no graph"),
        (onnx.TensorProto(name="t", dims=[1]).SerializeToString(), "not an ONNX model"),
        (valid().SerializeToString().replace(b"Relu", b"\xff\xfe\xfd\xfc"), "UTF-8"),
        (valid().SerializeToString().replace(b"y", b"\xff"), "UTF-8"),
    ],
)
def test_file_that_is_no_model(tmp_path: os.PathLike[str], content: bytes, word: str) -> None:
    path = os.path.join(tmp_path, "m.onnx")
    with open(path, "wb") as file:
        file.write(content)
    with pytest.raises(InvalidModel) as caught:
        load(path)
    assert word in str(caught.value)
    assert str(caught.value).startswith(path)
    assert "\n" not in str(caught.value)


def test_file_that_cannot_be_read(tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StorageError, match="no such file"):
        load(os.path.join(tmp_path, "missing.onnx"))
    with pytest.raises(StorageError, match="is a directory"):
        load(tmp_path)
    with pytest.raises(StorageError, match="not a regular file"):
        load("/dev/zero")
    with pytest.raises(StorageError, match="cannot be read"):
        load("a\0b.onnx")
    path = os.path.join(tmp_path, "m.onnx")
    onnx.save(valid(), path)

    def refuse(self: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    with pytest.raises(StorageError, match="Permission denied"):
        load(path)


def test_a_missing_required_attribute_is_named() -> None:
    node = onnx.helper.make_node("Concat", ["x", "x"], ["y"], name="join")
    info = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in "xy"]
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", info[:1], info[1:]))
    with pytest.raises(InvalidModel, match=r"Concat 'join'.* lacks the required attribute axis"):
        load(model)


def test_a_default_domain_that_is_not_imported_is_refused() -> None:
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    info = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in "xy"]
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", info[:1], info[1:]))
    del model.opset_import[:]
    with pytest.raises(InvalidModel, match=r"no opset is imported for the default domain, which Relu"):
        load(model)
