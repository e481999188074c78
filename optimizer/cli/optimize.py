"""``oinfer-opt IN OUT``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from optimizer.cli import parsing
from optimizer.cli.errors import reported, spelled
from optimizer.cli.process import run_process
from optimizer.ir import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from optimizer.report import Report
    from optimizer.rewrite import Explainer, Instrument, TimePasses

MAX_MISSES = 20
"""Lines printed for one --why-not or --explain."""

_OPTIONS = (
    click.option("--passes", metavar="A,B,...", help="Run just these passes or rules, once each, in order."),
    click.option("--skip", metavar="A,B,...", default="", help="Leave out these passes or rules."),
    click.option("--list-passes", is_flag=True, help="List the passes and exit."),
    click.option("--keep", multiple=True, metavar="PATTERN", help="Leave these nodes or outputs alone."),
    click.option("--input-shape", multiple=True, metavar="NAME:N,N,...", help="Fix the shape of an input."),
    click.option("--dim", multiple=True, metavar="NAME=N",
                 help="Fix a dim, or say what sizes it may have: batch=1..64, seq%8=0."),
    click.option("--assume-nonzero-dims", is_flag=True, help="No open dim is ever 0."),
    click.option("--fp", type=click.Choice(["strict", "default", "fast"]), default="default",
                 help="Rewrites that keep every bit; that round differently; that approximate [default]."),
    click.option("--optimize-for", type=click.Choice(["balanced", "latency", "nodes"]), default="balanced",
                 help="What decides where fewer nodes and lower latency conflict [balanced]."),
    click.option("--size-limit", metavar="SIZE|none", help="Bytes the file may grow [1 MiB + 10 %]."),
    click.option("--target", type=click.Choice(["onnxruntime"]), help="Admit this runtime's own operators."),
    click.option("--measure", is_flag=True, help="Time close choices in onnxruntime."),
    click.option("--layout", type=click.Choice(["nchw", "nhwc"]),
                 help="Run what lies between convolutions with the channels first, or last."),
    click.option("--opset", metavar="N|fused", help="Convert to it first (fused: with all fused operators)."),
    click.option("--freeze-initializers", is_flag=True, help="Treat overridable initializers as constants."),
    click.option("--keep-functions", is_flag=False, flag_value="*", metavar="[=DOMAIN]", multiple=True,
                 help="Do not inline functions (of this domain)."),
    click.option("--annotate", is_flag=True, help="Write into each new node which rule made it."),
    click.option("--rules", multiple=True, metavar="FILE.py", help="Run the rules of this file as well."),
    click.option("--plugin", multiple=True, metavar="NAME", help="Run the rules of this installed plugin."),
    click.option("--verify", type=click.Choice(["full", "local", "whole", "each", "off"]), default="full",
                 help="Each rewrite and the file; one of both; the whole file anew at each rewrite, which "
                 "takes long on large models; nothing [full]."),
    click.option("--no-verify", is_flag=True, help="The same as --verify off."),
    click.option("--check", type=click.IntRange(min=1), default=2, metavar="N", help="Inputs per size [2]."),
    click.option("--max-abs-error", type=float, callback=parsing.bound, metavar="E",
                 help="Fail above this absolute error."),
    click.option("--input-data", metavar="DIR", help="Check with these: .npy, .npz, test_data_set_0/."),
    click.option("--require-verified", is_flag=True, help="Fail unless both engines could verify it."),
    click.option("--no-rollback", is_flag=True, help="Fail on a wrong rewrite instead of undoing it."),
    click.option("--stop", is_flag=True, help="With --verify each: end at the first wrong rewrite."),
    click.option("--save-log", metavar="L.json", help="Write which rule was applied where (oinfer replay)."),
    click.option("--report", metavar="FILE.json", help="Write the report as JSON."),
    click.option("--external-data", is_flag=True, help="Constants into a file beside OUT."),
    click.option("--print-after", metavar="PASS|all", help="Print what a pass changed, as a diff."),
    click.option("--time-passes", is_flag=True, help="Print the seconds each pass took."),
    click.option("--rule-stats", is_flag=True, help="Print tries, hits and time of each rule."),
    click.option("--why-not", multiple=True, metavar="RULE", help="Print why this rule was not applied."),
    click.option("--explain", multiple=True, metavar="NODE", help="Print why this node is still there."),
    click.option("-q", "--quiet", is_flag=True, help="Print errors only."),
    click.option("-v", "--verbose", is_flag=True, help="Print unchanged operators and refusals too."),
    click.option("--debug", is_flag=True, help="Print the traceback of an error."),
)  # fmt: skip


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("source", metavar="IN", required=False)
@click.argument("output", metavar="OUT", required=False)
@click.version_option(package_name="oinfer-opt")
def main(source: str | None, output: str | None, list_passes: bool, debug: bool, **options: Any) -> None:
    """Optimizes the ONNX model IN, checks that its outputs stay the same, and writes OUT.

    Exit codes: 0 written; 1 a comparison failed; 2 usage, or a rule of --rules or --plugin failed; 3 invalid
    or unsupported model; 4 input or output error; 70 an error of this program; 130, 143 stopped by Ctrl-C or
    SIGTERM.
    """
    with reported(debug):
        if list_passes:
            _list_passes()
            return
        if source is None or output is None:
            raise click.UsageError("give the model to read and the file to write: oinfer-opt IN OUT")
        if "-" in (source, output):
            raise click.UsageError("'-' is no file: models are read from, and written to, files with names")
        _optimize(source, output, options)


for _option in _OPTIONS:
    main = _option(main)


def command() -> None:
    """The entry of the console script: ``main`` in a process of its own."""
    run_process(main)


def _optimize(source: str, output: str, options: dict[str, Any]) -> None:
    from optimizer.api import optimize
    from optimizer.rewrite import Explainer

    quiet = options["quiet"]
    if options["stop"] and options["verify"] != "each":
        raise click.UsageError("--stop goes with --verify each; the other modes have --no-rollback")
    for name in filter(None, (options["report"], options["save_log"])):
        parsing.check_writable(name)
    instruments, timing = _instruments(options)
    explainer = Explainer(options["why_not"])
    if options["why_not"] or options["explain"]:
        instruments.append(explainer)
    with _progress(quiet or not sys.stderr.isatty()) as progress:
        result = optimize(
            source, output=output, instruments=instruments, progress=progress, **_keywords(options)
        )
    if timing is not None:
        result.report.passes = dict(timing.seconds)
    if options["report"]:
        Path(options["report"]).write_text(result.report.to_json(), encoding="utf-8")
    if not quiet:
        _print(result.report, options)
    _print_answers(explainer, options)


def _print_answers(explainer: Explainer, options: dict[str, Any]) -> None:
    """Why rules were not applied and nodes are left; a node that the result has not is a warning."""
    answers = list(map(explainer.why_not, options["why_not"]))
    for node in options["explain"]:
        try:
            answers.append(explainer.explain(node))
        except UsageError as error:  # the file is written by now
            click.echo(f"warning: --explain: {error}", err=True)
    for misses in answers:
        for miss in misses[:MAX_MISSES]:
            click.echo(spelled(str(miss)))
        if len(misses) > MAX_MISSES:
            click.echo(f"... and {len(misses) - MAX_MISSES} more")


def _keywords(options: dict[str, Any]) -> dict[str, Any]:
    """The options as keyword arguments of ``optimizer.optimize``."""
    limit = options["size_limit"]
    return {
        "passes": parsing.names(options["passes"]),
        "skip": parsing.names(options["skip"]),
        "rules": options["rules"],
        "plugins": options["plugin"],
        "fp": options["fp"],
        "optimize_for": options["optimize_for"],
        "target": options["target"] or "",
        "layout": options["layout"] or "",
        "measure": options["measure"],
        "size_limit": -1 if limit is None else parsing.byte_count(limit),
        "opset": parsing.opset(options["opset"]),
        "keep": options["keep"],
        "input_shapes": parsing.input_shapes(options["input_shape"]),
        "dims": parsing.dims(options["dim"]),
        "assume_nonzero_dims": options["assume_nonzero_dims"],
        "freeze_initializers": options["freeze_initializers"],
        "keep_functions": options["keep_functions"],
        "annotate": options["annotate"],
        "external_data": options["external_data"] or None,
        "verify": "off" if options["no_verify"] else options["verify"],
        "seeds": options["check"],
        "max_abs_error": options["max_abs_error"],
        "input_data": options["input_data"],
        "save_log": options["save_log"],
        "rollback": not (options["no_rollback"] or options["stop"]),
        "require_verified": options["require_verified"],
    }


def _instruments(options: dict[str, Any]) -> tuple[list[Instrument], TimePasses | None]:
    from optimizer.api import steps_of
    from optimizer.rewrite import PrintAfter, TimePasses

    instruments: list[Instrument] = []
    if options["print_after"]:
        named = options["print_after"]
        wanted = (named,) if named == "all" else (named, *steps_of(named))
        instruments.append(PrintAfter(wanted, lambda text: _console().print(text, markup=False)))
    timing = TimePasses() if options["time_passes"] or options["report"] else None
    if timing is not None:
        instruments.append(timing)
    return instruments, timing


def _print(report: Report, options: dict[str, Any]) -> None:
    from optimizer.report import table

    console = _console()
    report.warnings = [spelled(warning) for warning in report.warnings]
    table.print_report(report, console, verbose=options["verbose"])
    if options["time_passes"]:
        console.print(table.pass_table(report))
    if options["rule_stats"]:
        console.print(table.rule_table(report))


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


class _progress:
    """A spinner on the terminal that says which phase is running; silent elsewhere."""

    def __init__(self, silent: bool) -> None:
        self._status = None
        if not silent:
            from rich.console import Console

            self._status = Console(stderr=True).status("load")

    def __enter__(self) -> Any:
        if self._status is None:
            return None
        self._status.start()
        return self._status.update

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()


def _list_passes() -> None:
    from optimizer.api import pass_names

    for name, description in pass_names():
        click.echo(f"{name:<12} {description}")
