"""Model-local functions: each call becomes what the function does."""

from __future__ import annotations

from optimizer.io.schemas import schema_of
from optimizer.ir import Function, Graph, Node, Value
from optimizer.rewrite import Context, Refusal
from passes.splice import names_in, splice

MAX_DEPTH = 32


class FunctionInlining:
    """f(x) -> the operators of the function f, in every scope, calls inside of functions included."""

    name = "inline"

    def run(self, ctx: Context) -> bool:
        """Inlines until no call is left that may be."""
        if not ctx.model.functions:
            return False
        changed = False
        for _ in range(MAX_DEPTH):
            rounds = [self._scope(ctx, path, graph) for path, graph in ctx.scopes()]
            if not any(rounds):
                break
            changed = True
        return changed

    def _scope(self, ctx: Context, path: tuple[str, ...], graph: Graph) -> bool:
        changed = False
        calls = [(node, f) for node in graph.topological() if (f := _called(ctx, node)) is not None]
        taken = names_in(graph) if calls else set()
        for node, function in calls:
            node = graph.node(node)
            if ctx.is_kept(node) or not ctx.allows(self.name, path, graph, node):
                continue
            try:
                with ctx.application(self.name, graph, node, scope=path) as entry:
                    entry.pairs.extend(_inlined(ctx, graph, node, function, taken))
                    for old, new in entry.pairs:
                        ctx.redirect(graph, old, new)
                    ctx.erase_dead(graph, node.id)
            except Refusal as refusal:
                ctx.stats[self.name].refused[refusal.reason] += 1
                continue
            if ctx.accept(entry):
                ctx.stats[self.name].fired += 1
                changed = True
        return changed


def _called(ctx: Context, node: Node) -> Function | None:
    kept = ctx.settings.keep_functions
    if "*" in kept or node.domain in kept:
        return None
    return ctx.model.functions.get((node.domain, node.op_type, node.overload))


def _inlined(
    ctx: Context, graph: Graph, node: Node, function: Function, taken: set[str]
) -> list[tuple[Value, Value]]:
    """Puts the function's operators next to the call; gives what stands for each of its outputs."""
    for domain, version in _imports(ctx, graph, function).items():
        graph.opsets.setdefault(domain, version)
    given = {**function.defaults, **node.attributes}
    bound = {formal: node.input(i) for i, formal in enumerate(function.graph.inputs)}
    results = splice(graph, function.graph, bound, taken, given)
    pairs = []
    for index, result in enumerate(results[: len(node.outputs)]):
        if result is None and graph.has_uses(node.value(index)):
            raise Refusal("an output is an input that is not given")
        if result is not None:
            pairs.append((node.value(index), result))
    return pairs


def _imports(ctx: Context, graph: Graph, function: Function) -> dict[str, int]:
    """The operator sets that the caller must import as well.

    Raises:
        Refusal: an operator means something else at the caller's version.
    """
    wanted: dict[str, int] = {}
    for _, scope in function.graph.scopes():
        for node in scope.nodes:
            version = function.graph.opset(node.domain)
            wanted[node.domain] = version
            if (node.domain, node.op_type, node.overload) in ctx.model.functions:
                continue
            own = graph.opset(node.domain)
            if own and own != version:
                theirs = schema_of(node.op_type, node.domain, version)
                ours = schema_of(node.op_type, node.domain, own)
                if theirs is None or ours is None or theirs.since != ours.since:
                    raise Refusal("the function uses another version of an operator set")
    return wanted


INLINE = FunctionInlining()
