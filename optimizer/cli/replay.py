"""``oinfer replay``: apply the rewrites of a log again."""

from __future__ import annotations

import click

from optimizer.cli.errors import reported, spelled


@click.command()
@click.argument("source", metavar="IN")
@click.argument("log", metavar="L.json")
@click.argument("output", metavar="OUT")
@click.option("--no-verify", is_flag=True, help="Do not check the result.")
@click.option("--debug", is_flag=True, help="Print the traceback of an error.")
def replay(source: str, log: str, output: str, no_verify: bool, debug: bool) -> None:
    """Applies the rewrites that `oinfer-opt --save-log L.json` wrote down, and no others, to IN.

    Constants are computed anew: the same model gives the same bytes, one with new weights the same
    structure. Exit code 1 where nothing of the log applies.
    """
    with reported(debug):
        from optimizer.api import optimize
        from optimizer.ir import UsageError
        from optimizer.options import recorded_options
        from optimizer.report.table import verdict
        from optimizer.rewrite import read_log

        try:
            found = read_log(log)
        except UsageError as error:
            raise UsageError(f"{error}; the order is IN L.json OUT") from error
        keywords = recorded_options(found.options)
        verify = "off" if no_verify else "full"
        report = optimize(source, output=output, verify=verify, replay=found, **keywords).report
        for warning in report.warnings:
            click.echo(f"warning: {spelled(warning)}", err=True)
        click.echo(f"{report.before.nodes} -> {report.after.nodes} nodes, {verdict(report)}")
