"""``oinfer bisect``: the first wrong rewrite."""

from __future__ import annotations

import click

from optimizer.cli import parsing
from optimizer.cli.errors import reported


@click.command()
@click.argument("source", metavar="IN")
@click.option("--rules", multiple=True, metavar="R.py", help="Run the rules of this file as well.")
@click.option("--plugin", multiple=True, metavar="NAME", help="Run the rules of this installed plugin.")
@click.option("--passes", metavar="A,B,...", help="Run just these passes or rules, once each, in order.")
@click.option("--skip", metavar="A,B,...", default="", help="Leave out these passes or rules.")
@click.option(
    "--fp",
    type=click.Choice(["strict", "default", "fast"]),
    default="default",
    help="Rewrites that keep every bit; that round differently; that approximate [default].",
)
@click.option("--debug", is_flag=True, help="Print the traceback of an error.")
def bisect(
    source: str,
    rules: tuple[str, ...],
    plugin: tuple[str, ...],
    passes: str | None,
    skip: str,
    fp: str,
    debug: bool,
) -> None:
    """Names the first rewrite of IN that is wrong; exit code 1 where there is one."""
    with reported(debug):
        from optimizer import api

        found = api.bisect(
            source,
            rules,
            plugins=plugin,
            passes=parsing.names(passes),
            skip=parsing.names(skip) or (),
            fp=fp,
        )
        if found is None:
            click.echo("no rewrite is wrong")
            return
        rule, anchor, fault = found
        click.echo(f"first wrong rewrite: {rule} at {anchor}: {fault}")
        raise click.exceptions.Exit(1)
