"""``parse``: ONNX text syntax, for tests and examples."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx.parser

from optimizer.io.loader import load
from optimizer.io.tensors import write_tensor
from optimizer.ir import InvalidModel, Model, Tensor

_NONE: Mapping[str, np.ndarray] = {}


def parse(text: str, constants: Mapping[str, np.ndarray] = _NONE) -> Model:
    """A model from ONNX text syntax.

    Args:
        constants: elements of initializers that are tedious to spell, by name; they replace those in
            the text, or come on top.

    Raises:
        InvalidModel: the text is malformed, or the model is.
    """
    try:
        proto = onnx.parser.parse_model(text)
    except onnx.parser.ParseError as error:
        detail = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise InvalidModel(f"the text is no model: {' '.join(detail.split())}") from None
    for name, array in constants.items():
        for index, initializer in enumerate(proto.graph.initializer):
            if initializer.name == name:
                del proto.graph.initializer[index]
                break
        write_tensor(Tensor.of(array), name, proto.graph.initializer.add(), keep_raw=True)
    return load(proto)
