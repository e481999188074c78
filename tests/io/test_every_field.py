"""Nothing a model can say is lost on the way through."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from optimizer.io import load, to_proto


def test_every_field_survives() -> None:
    """One model with texts and metadata at every level, every attribute kind and every type."""
    model = everything()
    again = to_proto(load(model))
    for message in (model, again):  # the order of declarations means nothing
        message.functions[0].value_info.sort(key=lambda info: info.name)
    assert again == model


def everything() -> onnx.ModelProto:
    types = [
        helper.make_tensor_type_proto(1, ["N", 3, None]),
        helper.make_tensor_type_proto(16, None),
        helper.make_tensor_type_proto(8, []),
        helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [2])),
        helper.make_optional_type_proto(
            helper.make_sequence_type_proto(helper.make_tensor_type_proto(7, None))
        ),
        helper.make_map_type_proto(7, helper.make_tensor_type_proto(1, [])),
        helper.make_sparse_tensor_type_proto(1, [4, "M"]),
        onnx.TypeProto(opaque_type=onnx.TypeProto.Opaque(domain="d", name="n"), denotation="thing"),
    ]
    types[0].tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    types[0].denotation = "IMAGE"
    tensor = numpy_helper.from_array(np.array([1, 2], np.float16), "t")
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("v", 1, [1], [2.0]), helper.make_tensor("i", 7, [1], [3]), [4]
    )
    body = helper.make_graph([], "body", [], [])
    body.output.add(name="w").type.CopyFrom(types[0])
    body.initializer.append(numpy_helper.from_array(np.ones(1, np.float32), "w"))
    body.doc_string = "a body"
    attributes = {
        "f": 1.5, "i": 3, "s": "text", "t": tensor, "g": body, "sp": sparse, "tp": types[3],
        "fs": [1.0, 2.5], "is": [1, 2], "ss": ["a", b"\xff"], "ts": [tensor, tensor],
        "sps": [sparse], "tps": types[:2],
    }  # fmt: skip
    node = helper.make_node(
        "Custom", ["x0", "", "x1"], ["y", "", "z"], "n", "doc", "dom.ain", "over", **attributes
    )
    node.attribute.add(name="none", type=onnx.AttributeProto.INTS)
    node.attribute[0].doc_string = "an attribute"
    node.metadata_props.add(key="node", value="1")
    graph = helper.make_graph([node], "main", [], [], [tensor], "graph doc")
    for index, declared in enumerate(types):
        graph.input.add(name=f"x{index}", doc_string=f"input {index}").type.CopyFrom(declared)
    graph.input[0].metadata_props.add(key="input", value="2")
    graph.output.add(name="y")
    graph.value_info.add(name="z", doc_string="inner").type.CopyFrom(types[4])
    graph.initializer[0].doc_string = "weights"
    graph.initializer[0].metadata_props.add(key="tensor", value="3")
    graph.metadata_props.add(key="graph", value="4")
    annotation = graph.quantization_annotation.add(tensor_name="z")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="t")
    model = helper.make_model(graph, ir_version=11, opset_imports=[helper.make_opsetid("dom.ain", 7)])
    model.opset_import.append(helper.make_opsetid("", 21))
    model.producer_name, model.producer_version, model.domain = "p", "0.1", "my.domain"
    model.model_version, model.doc_string = 5, "model doc"
    model.metadata_props.add(key="model", value="5")
    model.training_info.add().update_binding.add(key="t", value="y")
    model.configuration.add(name="c", num_devices=2)
    function = model.functions.add(name="fn", domain="dom.ain", overload="o", doc_string="function doc")
    function.opset_import.append(helper.make_opsetid("", 18))
    function.input.extend(["a", "b"])
    function.output.append("r")
    function.attribute.append("needed")
    function.attribute_proto.append(helper.make_attribute("default", 2))
    function.node.append(helper.make_node("Add", ["a", "b"], ["m"]))
    function.node.append(helper.make_node("Foo", ["m"], ["r"]))
    function.node[1].attribute.add(name="k", ref_attr_name="needed", type=onnx.AttributeProto.INT)
    function.metadata_props.add(key="function", value="6")
    for name in ("a", "m", "r"):
        function.value_info.add(name=name).type.CopyFrom(types[0])
    return model
