"""Rare ops through ``onnx.reference``: those on a list of what it gets right at every version.

The only module of the executor that touches onnx's protobuf classes and its evaluator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from optimizer.ir import DType, SparseTensor
from optimizer.runtime.call import Call
from optimizer.runtime.precision import true_value
from optimizer.runtime.registry import Kernel

if TYPE_CHECKING:
    from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, TypeProto

TRUSTED: dict[str, dict[str, int]] = {
    "": {
        "ImageDecoder": 20,
        "TfIdfVectorizer": 9,
        "DFT": 17,
        "STFT": 17,
        "BlackmanWindow": 17,
        "HammingWindow": 17,
        "HannWindow": 17,
        "MelWeightMatrix": 17,
        "DeformConv": 19,
        "Col2Im": 18,
        "AffineGrid": 20,
        "Det": 11,
        "NegativeLogLikelihoodLoss": 12,
        "SoftmaxCrossEntropyLoss": 12,
        "LinearAttention": 27,
        "CausalConvWithState": 27,
    },
    "ai.onnx.ml": {
        "FeatureVectorizer": 1,
        "Imputer": 1,
        "OneHotEncoder": 1,
        "SVMClassifier": 1,
        "SVMRegressor": 1,
        "TreeEnsemble": 5,
        "TreeEnsembleClassifier": 1,
        "TreeEnsembleRegressor": 1,
    },
    "ai.onnx.preview.training": {"Adagrad": 1, "Adam": 1, "Momentum": 1},
}
"""The first version of each op that ``onnx.reference`` is trusted with."""


def _one_sided(call: Call) -> bool:
    """Two labels, but weights for one of them: what the other one's score is depends on the runtime."""
    labels = call.attr("classlabels_int64s") or call.attr("classlabels_strings") or ()
    ids = set(call.attr("class_ids") or ())
    if len(labels) != 2 or len(ids) != 1:
        return False
    weights = call.attr("class_weights") or ()
    agreed = "NONE" if min(weights, default=0) >= 0 else "LOGISTIC"
    base = call.attr("base_values") or ()
    return ids != {0} or len(base) > 1 or call.attr("post_transform", "NONE") != agreed


def _coupled(call: Call) -> bool:
    """Scores of more than two labels made of pairwise probabilities; two labels after a softmax."""
    labels = call.attr("classlabels_ints") or call.attr("classlabels_strings") or ()
    softmax = call.attr("post_transform", "NONE").startswith("SOFTMAX")
    return (len(labels) > 2 and bool(call.attr("prob_a"))) or (len(labels) == 2 and softmax)


_NOT_TRUSTED = {"TreeEnsembleClassifier": _one_sided, "SVMClassifier": _coupled}
"""Nodes for which it gives something else than onnxruntime, and the standard does not say who is right."""
_NOT_FOLDABLE = frozenset({"ImageDecoder"})


def find_delegate(domain: str, op_type: str, opset: int) -> Kernel | None:
    """A kernel that asks ``onnx.reference``, if the op is on the list."""
    plain = "" if domain == "ai.onnx" else domain
    since = TRUSTED.get(plain, {}).get(op_type)
    if since is None or opset < since:
        return None
    foldable = op_type not in _NOT_FOLDABLE
    return Kernel(since, plain, op_type, run_reference, foldable=foldable, may_alias=True, runs_graphs=True)


def run_reference(call: Call, *inputs: Any) -> tuple[Any, ...]:
    """Runs one node in ``onnx.reference``; its evaluator is kept per input types."""
    from onnx.reference import ReferenceEvaluator

    distrusted = _NOT_TRUSTED.get(call.op_type)
    if distrusted is not None and distrusted(call):
        raise ValueError("runtimes do not agree on what these attributes mean together")
    types = tuple(_key(value) for value in inputs)
    evaluator = call.once(("reference", types), lambda: ReferenceEvaluator(one_node_model(call, inputs)))
    feeds = {f"x{i}": value for i, value in enumerate(inputs) if value is not None}
    found = evaluator.run(None, feeds)
    results = iter([true_value(v) for v in found] if call.truth else found)
    return tuple(next(results) if call.wants(i) else None for i in range(call.output_count))


def _key(value: Any) -> Any:
    if isinstance(value, list):
        return ("sequence", *{_key(v) for v in value})
    return None if value is None else value.dtype


def one_node_model(call: Call, inputs: Sequence[Any], domain: str | None = None) -> ModelProto:
    """A model of just this node, its inputs declared with the types of ``inputs``.

    Args:
        domain: the domain to put the node into; its own by default.
    """
    from onnx import helper

    node = node_proto(call, inputs)
    node.domain = call.domain if domain is None else domain
    declared = [
        helper.make_value_info(f"x{i}", type_of(value)) for i, value in enumerate(inputs) if value is not None
    ]
    results = [
        helper.make_value_info(name, helper.make_tensor_type_proto(0, None)) for name in node.output if name
    ]
    opsets = [helper.make_opsetid(node.domain, call.opset)]
    graph = helper.make_graph([node], "node", declared, results)
    return helper.make_model(graph, opset_imports=opsets)


def node_proto(call: Call, inputs: Sequence[Any]) -> NodeProto:
    """The node, reading ``x0, x1, ...`` and making ``y0, y1, ...`` where wanted."""
    from onnx import helper

    reads = ["" if value is None else f"x{i}" for i, value in enumerate(inputs)]
    makes = [f"y{i}" if call.wants(i) else "" for i in range(call.output_count)]
    node = helper.make_node(call.op_type, reads, makes, name=call.name, domain=call.domain)
    node.attribute.extend(_attribute(name, value) for name, value in call.attributes.items())
    return node


def _attribute(name: str, value: Any) -> AttributeProto:
    from onnx import AttributeProto, helper, numpy_helper

    if isinstance(value, np.ndarray):
        return helper.make_attribute(name, _tensor(value))
    if isinstance(value, SparseTensor):
        return helper.make_attribute(
            name,
            helper.make_sparse_tensor(
                numpy_helper.from_array(value.values.array),
                numpy_helper.from_array(value.indices.array),
                value.shape,
            ),
        )
    if value == ():
        return helper.make_attribute(name, [], attr_type=AttributeProto.INTS)
    return helper.make_attribute(name, list(value) if isinstance(value, tuple) else value)


def _tensor(value: np.ndarray) -> TensorProto:
    from onnx import TensorProto, numpy_helper

    if value.dtype.kind == "O":
        texts = [v if isinstance(v, bytes) else v.encode() for v in value.reshape(-1)]
        return TensorProto(data_type=DType.STRING, dims=value.shape, string_data=texts)
    return numpy_helper.from_array(value)


def type_of(value: Any) -> TypeProto:
    """The type of a run-time value, shapes left open."""
    from onnx import helper

    if isinstance(value, list):
        elem = type_of(value[0]) if value else helper.make_tensor_type_proto(int(DType.FLOAT), None)
        return helper.make_sequence_type_proto(elem)
    return helper.make_tensor_type_proto(int(DType.from_numpy(value.dtype)), None)
