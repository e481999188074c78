"""``python -m benchmarks.scaling``: how the time of ``optimize`` grows with the length of a chain.

In process, start-up excluded, on chains of N and 2 N nodes: linear work gives a ratio of 2.
With ``--peers``, also whole processes on the chain of N nodes against onnxsim, in turns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import peer_tools, process


def main() -> None:
    options = _options()
    if options.in_process:
        _time_in_process(options.in_process, options.repeats)
        return
    with tempfile.TemporaryDirectory(prefix="oinfer-scaling-") as folder:
        scratch = Path(folder)
        chains = [_made(scratch, size) for size in (options.nodes, 2 * options.nodes)]
        _print_growth(chains, options)
        if options.peers:
            _print_whole_process(chains[0], scratch / "out.onnx", options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    add = parser.add_argument
    add("--nodes", type=int, default=10_000, metavar="N")
    add("--repeats", type=int, default=3, metavar="R", help="the fastest of R counts (default: 3)")
    add("--command", default="oinfer-opt", help="the optimizer, called with IN OUT --no-verify")
    add("--peers", metavar="PYTHON", help="a Python that has onnxsim")
    add("--timeout", type=float, default=600, metavar="S")
    add("--in-process", nargs="+", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _made(scratch: Path, nodes: int) -> Path:
    path = scratch / f"chain_{nodes}.onnx"
    program = f"import onnx\nfrom benchmarks.synthetic import chain\nonnx.save(chain({nodes}), {str(path)!r})"
    run = process.run([sys.executable, "-c", program], timeout=120)
    if run.failure:
        raise SystemExit(f"benchmarks: cannot make a chain: {run.failure}")
    return path


def _print_growth(chains: list[Path], options: argparse.Namespace) -> None:
    command = [sys.executable, "-m", "benchmarks.scaling", "--repeats", str(options.repeats), "--in-process"]
    run = process.run([*command, *map(str, chains)], timeout=options.timeout)
    if run.failure:
        print(f"in process: {run.failure}")
        return
    seconds = [float(word) for word in run.stdout.split()]
    for factor, value in zip((1, 2), seconds, strict=True):
        print(f"in process, {factor * options.nodes} nodes: {value:.3f} s CPU")
    print(f"ratio: {seconds[1] / seconds[0]:.2f}")


def _time_in_process(paths: Sequence[Path], repeats: int) -> None:
    """Prints the CPU seconds of loading, optimizing and making the new model, per path."""
    from optimizer import optimize

    models = [path.read_bytes() for path in paths]
    optimize(models[0], verify="off")  # whatever loads on first use is loaded now
    best = [float("inf")] * len(models)
    for _ in range(repeats):
        for i, model in enumerate(models):
            start = time.process_time()
            _ = optimize(model, verify="off").model
            best[i] = min(best[i], time.process_time() - start)
    print(*best)


def _print_whole_process(chain: Path, target: Path, options: argparse.Namespace) -> None:
    commands = {
        "oinfer-opt": [*process.command_of(options.command), str(chain), str(target), "--no-verify"],
        "onnxsim": [options.peers, peer_tools.__file__, "onnxsim", str(chain), str(target)],
    }
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(options.repeats):
        for name, command in commands.items():
            target.unlink(missing_ok=True)
            run = process.run(command, timeout=options.timeout)
            if run.failure:
                print(f"{name}: {run.failure}")
                continue
            best[name] = min(best[name], run.cpu)
    for name, value in best.items():
        print(f"whole process, {options.nodes} nodes, {name}: {value:.2f} s CPU")
    print(f"oinfer-opt / onnxsim: {best['oinfer-opt'] / best['onnxsim']:.2f}")


if __name__ == "__main__":
    main()
