"""Every element type in every encoding reads right, and is written back as it was."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, numpy_helper

from optimizer.io import load, to_proto
from optimizer.io.tensors import pack, unpack
from optimizer.ir import DType

MODEL = '<ir_version: 11, opset_import: ["": 23]> g (float x) => (float y) { y = Relu(x) }'


def read(*tensors: TensorProto, sparse: tuple[onnx.SparseTensorProto, ...] = ()) -> onnx.ModelProto:
    model = onnx.parser.parse_model(MODEL)
    model.graph.initializer.extend(tensors)
    model.graph.sparse_initializer.extend(sparse)
    return model


def samples(dtype: DType) -> np.ndarray:
    """Every bit pattern of small types, extremes and a few numbers of the others; odd in number."""
    if dtype is DType.STRING:
        return np.array(["", "é", "a\nb"], object)
    if dtype is DType.BOOL:
        return np.array([True, False, True])
    held = dtype.numpy
    if dtype.bits < 8:
        codes = np.arange(1 << dtype.bits).astype(np.uint8)
        if dtype.is_float:
            return codes[:-1].view(held)
        return (codes.astype(np.int8) - (0 if "U" in dtype.name else 1 << (dtype.bits - 1))).astype(held)[:-1]
    if dtype.is_integer:
        info = np.iinfo(held)
        return np.array([info.min, info.max, 1], held)
    if held.itemsize == 1:
        return np.arange(256, dtype=np.uint8).view(held)
    return np.array([0.5, -2.25, np.inf, np.nan, 3e4], np.float64).astype(held)


DENSE = [dtype for dtype in DType if dtype is not DType.UNDEFINED]
PACKED = [dtype for dtype in DENSE if dtype is not DType.STRING]


def bits(array: np.ndarray) -> bytes | list[object]:
    return array.tolist() if array.dtype == object else array.tobytes()


def typed_field(dtype: DType) -> TensorProto:
    """The samples in the element type's own field, spelled from the format's description."""
    array = samples(dtype)
    tensor = TensorProto(name="w", data_type=int(dtype), dims=[array.size])
    if dtype is DType.STRING:
        tensor.string_data.extend(s.encode() for s in array)
    elif dtype in (DType.FLOAT, DType.COMPLEX64):
        tensor.float_data.extend(array.view(np.float32).tolist())
    elif dtype in (DType.DOUBLE, DType.COMPLEX128):
        tensor.double_data.extend(array.view(np.float64).tolist())
    elif dtype is DType.INT64:
        tensor.int64_data.extend(array.tolist())
    elif dtype in (DType.UINT32, DType.UINT64):
        tensor.uint64_data.extend(array.tolist())
    elif dtype.is_float and dtype.bits >= 8:
        tensor.int32_data.extend(array.view(f"u{array.itemsize}").tolist())
    elif dtype.bits < 8:
        tensor.int32_data.extend(numpy_helper.from_array(array).raw_data)
    else:
        tensor.int32_data.extend(array.astype(np.int64).tolist())
    return tensor


@pytest.mark.parametrize("dtype", DENSE, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("encoding", ["raw", "typed"])
def test_dense(dtype: DType, encoding: str) -> None:
    array = samples(dtype)
    proto = typed_field(dtype) if encoding == "typed" else numpy_helper.from_array(array, "w")
    proto.doc_string = "kept"
    graph = load(read(proto)).graph
    tensor = graph.tensor(graph.constants[0])
    assert tensor is not None
    assert (tensor.dtype, tensor.shape) == (dtype, array.shape)
    assert bits(tensor.array) == bits(array)
    model = load(read(proto))
    assert to_proto(model).graph.initializer[0] == proto


@pytest.mark.parametrize("dtype", DENSE, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("shape", [(), (0, 3), (3,)])
def test_made_here(dtype: DType, shape: tuple[int, ...]) -> None:
    """A constant that a pass made is written so that onnx and we read the same."""
    array = np.resize(samples(dtype), shape)
    model = load(read())
    model.graph.add_constant(array, "w")
    proto = to_proto(model).graph.initializer[0]
    back = numpy_helper.to_array(proto)
    assert (back.shape, proto.data_type) == (shape, int(dtype))
    tensor = load(to_proto(model)).graph
    again = tensor.const(tensor.constants[0])
    assert again is not None
    assert again.shape == shape
    assert bits(again) == bits(array)
    if dtype is not DType.STRING:
        assert bits(back) == bits(array)


@pytest.mark.parametrize("dtype", PACKED, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 5])
def test_pack_agrees_with_onnx(dtype: DType, count: int) -> None:
    array = np.resize(samples(dtype), (count,))
    expected = numpy_helper.from_array(array).raw_data
    assert bytes(pack(array, dtype)) == expected
    assert bits(unpack(expected, dtype, (count,))) == bits(array)


def test_raw_data_is_not_copied() -> None:
    data = bytes(range(16))
    array = unpack(memoryview(data), DType.INT32, (4,))
    assert np.shares_memory(array, np.frombuffer(data, np.uint8))
    shifted = unpack(memoryview(bytes(17))[1:], DType.INT32, (4,))
    assert shifted.flags.aligned


def test_invalid_utf8_stays_bytes() -> None:
    proto = TensorProto(name="w", data_type=TensorProto.STRING, dims=[2], string_data=[b"\xff", b"ok"])
    model = load(read(proto))
    array = model.graph.const(model.graph.constants[0])
    assert array is not None
    assert array.tolist() == [b"\xff", "ok"]
    assert to_proto(model).graph.initializer[0] == proto


@pytest.mark.parametrize(
    ("indices", "shape", "expected"),
    [
        ([1, 5], [2, 3], [[0, 7, 0], [0, 0, 8]]),
        ([[0, 1], [1, 2]], [2, 3], [[0, 7, 0], [0, 0, 8]]),
        ([0, 3], [4], [7, 0, 0, 8]),
    ],
)
@pytest.mark.parametrize("held", [np.float32, ml_dtypes.bfloat16, np.int64, object])
def test_sparse(indices: list[int], shape: list[int], expected: list[int], held: type) -> None:
    values = np.array([7, 8]).astype(held) if held is not object else np.array(["7", "8"], object)
    proto = onnx.SparseTensorProto(
        values=numpy_helper.from_array(values, "s"),
        indices=numpy_helper.from_array(np.array(indices, np.int64)),
        dims=shape,
    )
    model = load(read(sparse=(proto,)))
    array = model.graph.const(model.graph.constants[0])
    assert array is not None
    wanted = np.array(expected).astype(held)
    if held is object:
        wanted = np.where(wanted == 0, "", wanted.astype(str)).astype(object)
    assert array.dtype == wanted.dtype
    assert array.tolist() == wanted.tolist()
    written = to_proto(model).graph
    assert [node.op_type for node in written.node] == ["Constant", "Relu"]
    assert written.node[0].attribute[0].sparse_tensor == proto


def test_large_sparse_stays_an_operator() -> None:
    proto = onnx.SparseTensorProto(
        values=numpy_helper.from_array(np.ones(1, np.float32), "s"),
        indices=numpy_helper.from_array(np.zeros(1, np.int64)),
        dims=[1 << 20, 1 << 20],
    )
    model = load(read(sparse=(proto,)))
    assert not model.graph.constants
    assert sorted(node.op_type for node in model.graph.nodes) == ["Constant", "Relu"]
    assert to_proto(model).graph.node[0].attribute[0].sparse_tensor == proto


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ({"value_float": 1.5}, np.float32(1.5)),
        ({"value_floats": [1.5, 2]}, np.array([1.5, 2], np.float32)),
        ({"value_int": -3}, np.int64(-3)),
        ({"value_ints": [1, 2]}, np.array([1, 2])),
        ({"value_string": "a"}, np.array("a", object)),
        ({"value_strings": ["a", "b"]}, np.array(["a", "b"], object)),
        ({"value": numpy_helper.from_array(np.array([[1, 2]], np.uint8))}, np.array([[1, 2]], np.uint8)),
    ],
)
def test_constant_nodes_become_constants(attribute: dict[str, object], expected: np.ndarray) -> None:
    model = read()
    model.graph.node.insert(0, onnx.helper.make_node("Constant", [], ["k"], **attribute))
    graph = load(model).graph
    assert [node.op_type for node in graph.nodes] == ["Relu"]
    (value,) = graph.constants
    array = graph.const(value)
    assert graph.info(value).name == "k"
    assert array is not None
    assert (array.dtype, array.shape) == (np.asarray(expected).dtype, np.shape(expected))
    assert array.tolist() == expected.tolist()
