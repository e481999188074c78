"""``PYTHON peer_tools.py TOOL IN OUT``: runs another optimizer with its defaults.

Stands alone: the Python that runs it has the tools, not this project.
"""

from __future__ import annotations

import json
import sys
from importlib import metadata


def onnxsim(source: str, target: str) -> None:
    import onnx
    import onnxsim as tool

    model, verified = tool.simplify(onnx.load(source))
    if not verified:
        raise SystemExit("its own check failed")
    onnx.save(model, target)


def onnxslim(source: str, target: str) -> None:
    import onnxslim as tool

    tool.slim(source, target)


def onnxoptimizer(source: str, target: str) -> None:
    import onnx
    import onnxoptimizer as tool

    onnx.save(tool.optimize(onnx.load(source)), target)


def onnxscript(source: str, target: str) -> None:
    import onnx
    from onnxscript import optimizer, rewriter

    onnx.save(rewriter.rewrite(optimizer.optimize(onnx.load(source))), target)


def onnxruntime(source: str, target: str) -> None:
    import onnxruntime as tool

    options = tool.SessionOptions()
    options.graph_optimization_level = tool.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = target
    options.log_severity_level = 4
    tool.InferenceSession(source, options, providers=["CPUExecutionProvider"])


TOOLS = {tool.__name__: tool for tool in (onnxsim, onnxslim, onnxoptimizer, onnxscript, onnxruntime)}


def installed() -> dict[str, str]:
    """The tools that this Python has, with their versions."""
    found = {}
    for name in TOOLS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print(json.dumps(installed()))
    else:
        TOOLS[sys.argv[1]](*sys.argv[2:4])
