"""``python -m benchmarks.speed``: latency of our results against the original and against others.

Original and result run in turns in one process, all of onnxruntime's optimizations on, one thread, thread
CPU time. Prints result / original with 95 % bounds, and geometric means.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import models, nodes, peer_tools, process, rows

FIXED_SET = [
    "hf_bert12_ts_dyn",
    "hf_distilbert_ts_dyn",
    "hf_llama_ts_dyn",
    "hf_whisperenc_ts",
    "pkg_basicpitch_nmp",
    "pkg_onnx_light_densenet121",
    "pkg_rapidocr_ch_PP_OCRv4_det_infer",
    "pkg_rapidocr_ch_PP_OCRv4_rec_infer",
    "pkg_rapidocr_ch_ppocr_mobile_v2_0_cls_infer",
    "pkg_silero_silero_vad",
    "q_resnet18_qdq_int8",
    "timm_repvgg_a0_ts_dyn",
    "tv_densenet121_ts",
    "tv_efficientnet_b0_dyraw",
    "tv_mobilenet_v2_ts_dyn",
    "tv_mobilenet_v3_large_ts",
    "tv_resnet50_ts",
    "tv_shufflenet_v2_x1_0_ts_dyn",
    "tv_swin_t_ts",
    "ul_yolov5n_ts_dyn",
    "ul_yolov8n_ts",
]


def main() -> None:
    options = _options()
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="oinfer-speed-") as folder:
        plan = rows.Plan(
            process.command_of(options.command), Path(folder), options.pairs, 1200, options.peers or ""
        )
        for model in models.candidates(options.models, plan.scratch, options.only):
            if model.name in FIXED_SET or options.all:
                found[model.name] = measure(plan, model, shlex.split(options.options))
                print(line_of(model.name, found[model.name]), flush=True)
                if options.json:
                    options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print("\n".join(means(found)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    add = parser.add_argument
    add("--models", type=Path, required=True, metavar="DIR", help="measure DIR/*.onnx")
    add("--only", default="", metavar="PATTERN", help="models with such a name")
    add("--all", action="store_true", help="not only the fixed set of models")
    add("--command", default="oinfer-opt", help="the optimizer, called with IN OUT")
    add("--options", default="", metavar="TEXT", help="further options for it, in one text")
    add("--pairs", type=int, default=40, metavar="N", help="timed pairs (default: 40)")
    add("--peers", metavar="PYTHON", help="a Python that has other optimizers installed: measure them too")
    add("--json", type=Path, metavar="FILE", help="write everything measured")
    return parser.parse_args()


def measure(plan: rows.Plan, model: models.Candidate, options: Sequence[str]) -> dict[str, Any]:
    """The latency of our result, and of each other's valid one, by the tool's name."""
    target = plan.scratch / "result.onnx"
    target.unlink(missing_ok=True)
    limit = ["--size-limit", "none"] if nodes.NO_LIMIT in model.name else []
    run = process.run(
        [*plan.command, str(model.path), str(target), "-q", *limit, *options], timeout=plan.timeout
    )
    if run.failure:
        print(f"{model.name}: {run.failure}", file=sys.stderr)
    found: dict[str, Any] = {}
    if target.exists():
        found["ours"] = rows.time_against(plan, model, target)
    for peer in peer_tools.TOOLS if plan.peers_python else ():
        target.unlink(missing_ok=True)
        command = [plan.peers_python, peer_tools.__file__, peer, str(model.path), str(target)]
        if not process.run(command, timeout=plan.timeout).failure and target.exists():
            timed = rows.time_against(plan, model, target)
            if timed.get("max_rel", 1.0) <= rows.WRONG_FROM:
                found[peer] = timed
    return found


# ------------------------------------------------------------------ what is printed


def line_of(name: str, found: dict[str, Any]) -> str:
    cells = []
    for tool, row in found.items():
        latency = row.get("latency")
        if latency is None:
            cells.append(f"{tool} {row.get('failure', 'not measured')}")
        else:
            cells.append(f"{tool} {latency['ratio']:.3f} [{latency['low']:.3f}, {latency['high']:.3f}]")
    return f"{name:<46} " + "  ".join(cells)


def means(found: dict[str, dict[str, Any]]) -> list[str]:
    """The geometric mean of ours, and beside each other's over the models where both are valid."""
    ours = {name: row["ours"]["latency"] for name, row in found.items() if row.get("ours", {}).get("latency")}
    lines = [f"{len(ours)} models: geometric mean {_mean([t['ratio'] for t in ours.values()]):.3f}"]
    slower = [name for name, t in ours.items() if t["low"] > 1.03]
    lines.append(f"lower bound above 1.03: {', '.join(slower) or 'none'}")
    for peer in peer_tools.TOOLS:
        both = [(ours[n]["ratio"], row[peer]["latency"]["ratio"]) for n, row in found.items()
                if n in ours and row.get(peer, {}).get("latency")]  # fmt: skip
        if both:
            mine, theirs = (_mean(list(side)) for side in zip(*both, strict=True))
            lines.append(f"{peer}: {theirs:.3f}, ours on the same {len(both)} models {mine:.3f}")
    return lines


def _mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


if __name__ == "__main__":
    main()
