"""``oinfer check-rules``: try the rules of a file on graphs grown from their own patterns."""

from __future__ import annotations

import click

from optimizer.cli.errors import reported


@click.command("check-rules")
@click.argument("path", metavar="FILE.py")
@click.option("--graphs", type=click.IntRange(min=1), default=300, metavar="N", help="Graphs per rule [300].")
@click.option("--seed", type=int, default=0, metavar="N", help="Other graphs for another seed [0].")
@click.option("--debug", is_flag=True, help="Print the traceback of an error.")
def check_rules(path: str, graphs: int, seed: int, debug: bool) -> None:
    """Tries each rule of FILE.py on generated graphs that it matches or nearly matches.

    Ranks, sizes of 0 and 1, broadcasts, element types, opsets, shared and captured intermediates and telling
    constants vary. Prints the smallest graph that a rule gets wrong; exit code 1 where there is one.
    """
    with reported(debug):
        from optimizer.rewrite import Rule, extensions
        from optimizer.verify.adversary import try_rule

        wrong = 0
        for item in extensions([path]):
            if not isinstance(item, Rule):
                click.echo(f"{item.name}: has no pattern to grow graphs from; runs check its edits")
                continue
            found = try_rule(item, graphs=graphs, seed=seed)
            click.echo(str(found))
            wrong += bool(found.wrong)
        if wrong:
            raise click.exceptions.Exit(1)
