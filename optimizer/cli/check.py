"""``oinfer check A B``: do two models compute the same? For people's own builds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import click

from optimizer.cli import parsing
from optimizer.cli.errors import reported
from optimizer.ir import OptimizerError

if TYPE_CHECKING:
    from optimizer.verify import Comparison


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option(
    "--max-abs-error", type=float, callback=parsing.bound, metavar="E", help="Fail above this absolute error."
)
@click.option(
    "--check", "seeds", type=click.IntRange(min=1), default=2, metavar="N", help="Inputs per size [2]."
)
@click.option("--thresholds", metavar="FILE.toml", help='Limits: [outputs."NAME"] max_abs_error = E.')
@click.option("--baseline", metavar="R.json", help="Fail where an error exceeds that of this earlier result.")
@click.option("--input-data", metavar="DIR", help="Take these inputs: .npy, .npz, test_data_set_0/.")
@click.option(
    "--json", "as_json", is_flag=False, flag_value="-", metavar="[R.json]", help="Write or print JSON."
)
@click.option("--junit", metavar="R.xml", help="Write the result as JUnit XML, a test case per output.")
@click.option("--debug", is_flag=True, help="Print the traceback of an error.")
def check(
    a: str,
    b: str,
    max_abs_error: float | None,
    seeds: int,
    thresholds: str | None,
    baseline: str | None,
    input_data: str | None,
    as_json: str | None,
    junit: str | None,
    debug: bool,
) -> None:
    """Compares model B with the reference A.

    Exit code 1 where their outputs differ, 3 where nothing could be compared.
    """
    with reported(debug):
        from optimizer.api import check as compare

        for name in (as_json, junit):
            if name not in (None, "-"):
                parsing.check_writable(str(name))
        found = compare(
            a,
            b,
            max_abs_error=max_abs_error,
            seeds=seeds,
            thresholds=thresholds,
            baseline=baseline,
            input_data=input_data,
        )
        text = json.dumps(found.to_dict(), indent=2, default=str)
        click.echo(text if as_json == "-" else str(found))
        if as_json not in (None, "-"):
            Path(str(as_json)).write_text(text + "\n", encoding="utf-8")
        if junit is not None:
            Path(junit).write_bytes(junit_xml(found, f"{a} {b}"))
        if not found:
            raise click.exceptions.Exit(1 if found.faults else OptimizerError.exit_code)


def junit_xml(found: Comparison, suite: str) -> bytes:
    """The comparison as a JUnit test suite: the whole, then each output in each engine."""
    root = ElementTree.Element("testsuite", name=suite)
    cases = [("comparison", "", "\n".join(found.faults))]
    for output in found.outputs:
        error = output.error
        figures = f"max-abs-error {error.max_abs:.9g}, scale {error.scale:.9g}" if error.compared else ""
        cases.append((f"{output.name} in {output.engine}", figures, error.fault))
    for name, figures, fault in cases:
        case = ElementTree.SubElement(root, "testcase", classname="oinfer.check", name=name)
        if fault:
            ElementTree.SubElement(case, "failure", message=fault.splitlines()[0]).text = fault
        if figures:
            ElementTree.SubElement(case, "system-out").text = figures
    unknown = found.verdict == "not compared"
    if unknown:
        ElementTree.SubElement(root[0], "error", message=f"not compared: {found.reason}")
    root.set("errors", str(int(unknown)))
    root.set("tests", str(len(cases)))
    root.set("failures", str(sum(bool(fault) for _, _, fault in cases)))
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))
