"""``PYTHON inference_peers.py TOOL FOLDER OUT.json``: another tool's shape inference.

Stands alone: the Python that runs it has the tools, not this project. Writes for each model its
seconds and, for each tensor of the main graph, the dims: numbers, expressions, or null.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import onnx

LIMIT = 120
"""Seconds for one model."""
Shapes = dict[str, "list[Any] | None"]


def symbolic_shape_infer(model: onnx.ModelProto) -> Shapes:
    """onnxruntime's script, with ``auto_merge``, which lets it go on where it can only guess."""
    from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

    tool = SymbolicShapeInference(2**31 - 1, auto_merge=True, guess_output_rank=False, verbose=0)
    tool._preprocess(model)
    while tool.run_:
        if not tool._infer_impl() and not tool.run_:
            break  # what it could find counts, although it is not everything
    tool._update_output_from_vi()
    return {info.name: _dims(info) for info in (*tool.out_mp_.graph.value_info, *tool.out_mp_.graph.output)}


def onnx_shape_inference(model: onnx.ModelProto) -> Shapes:
    import onnx_ir
    from onnx_shape_inference import infer_symbolic_shapes

    found = onnx_ir.from_proto(model)
    infer_symbolic_shapes(found, warn_on_missing=False)
    shapes: Shapes = {}
    for node in found.graph:
        for value in node.outputs:
            if value.name and value.shape is not None:
                shapes[value.name] = [d if isinstance(d, int) else _text(d) for d in value.shape]
    return shapes


def _text(dim: Any) -> str | None:
    return None if dim.value is None else str(dim.value)


def _dims(info: onnx.ValueInfoProto) -> list[Any] | None:
    if not info.type.HasField("tensor_type") or not info.type.tensor_type.HasField("shape"):
        return None
    dims = info.type.tensor_type.shape.dim
    return [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in dims]


TOOLS = {"symbolic_shape_infer": symbolic_shape_infer, "onnx_shape_inference": onnx_shape_inference}
PACKAGES = {"symbolic_shape_infer": "onnxruntime", "onnx_shape_inference": "onnx-shape-inference"}


def _give_up(*_: object) -> None:
    raise TimeoutError(f"no end within {LIMIT} s")


def main(tool: str, folder: str, target: str) -> None:
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGALRM, _give_up)
    found: dict[str, Any] = {}
    for path in sorted(Path(folder).glob("*.onnx")):
        model = onnx.load(path)
        start = time.perf_counter()
        signal.alarm(LIMIT)
        try:
            shapes = TOOLS[tool](model)
        except Exception as error:  # whatever the tool raises: it has found nothing
            found[path.stem] = {"failure": f"{type(error).__name__}: {error}"[:200], "shapes": {}}
        else:
            found[path.stem] = {"shapes": shapes}
        finally:
            signal.alarm(0)
        found[path.stem]["seconds"] = time.perf_counter() - start
    Path(target).write_text(
        json.dumps({"version": metadata.version(PACKAGES[tool]), "models": found}), encoding="utf-8"
    )


if __name__ == "__main__":
    main(*sys.argv[1:4])
