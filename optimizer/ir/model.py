"""The model: a main graph, its functions, and what the file says about itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from optimizer.ir.graph import Graph
from optimizer.ir.node import Attribute


@dataclass(slots=True)
class Function:
    """A model-local function. Its graph's ``opsets`` are its own.

    ``attributes`` are the names it must be called with; ``defaults`` those with a default value.
    """

    domain: str
    name: str
    graph: Graph
    overload: str = ""
    attributes: tuple[str, ...] = ()
    defaults: dict[str, Attribute] = field(default_factory=dict)
    doc_string: str = ""
    metadata: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """What a call names: domain, name, overload."""
        return self.domain, self.name, self.overload


@dataclass(slots=True)
class Model:
    """A whole model.

    Attributes:
        warnings: what loading had to put up with, one line each.
        extras: parts of the file that no layer but ``io`` reads (training info, device
            configuration), serialized, by field name.
        external_files: paths of the files, beside the model's own, that its constants are read from.
    """

    graph: Graph
    ir_version: int = 10
    functions: dict[tuple[str, str, str], Function] = field(default_factory=dict)
    producer_name: str = ""
    producer_version: str = ""
    domain: str = ""
    model_version: int = 0
    doc_string: str = ""
    metadata: tuple[tuple[str, str], ...] = ()
    warnings: list[str] = field(default_factory=list)
    extras: dict[str, tuple[bytes, ...]] = field(default_factory=dict)
    external_files: tuple[str, ...] = ()

    @property
    def opsets(self) -> dict[str, int]:
        """Imported operator sets of the main graph, by domain."""
        return self.graph.opsets

    def graphs(self) -> Iterator[tuple[tuple[str, ...], Graph]]:
        """Every scope: the main graph, functions, and all bodies, each with its path."""
        yield from self.graph.scopes()
        for function in self.functions.values():
            yield from function.graph.scopes((f"{function.domain}::{function.name}",))

    def pruned(self) -> Model:
        """The same model without the functions that nothing calls; graphs are shared with this one."""
        return replace(self, functions=self.called_functions())

    def called_functions(self) -> dict[tuple[str, str, str], Function]:
        """The functions that the main graph calls, directly or through others."""
        called: set[tuple[str, str, str]] = set()
        pending = [self.graph]
        while pending:
            for _, scope in pending.pop().scopes():
                for node in scope.nodes:
                    key = node.domain, node.op_type, node.overload
                    if key in self.functions and key not in called:
                        called.add(key)
                        pending.append(self.functions[key].graph)
        return {key: function for key, function in self.functions.items() if key in called}

    def histogram(self) -> Counter[str]:
        """Operator nodes per op over all scopes."""
        return Counter(node.op for _, graph in self.graphs() for node in graph.nodes)

    def copy(self) -> Model:
        """An independent copy; constants are shared."""
        functions = {key: replace(f, graph=f.graph.copy()) for key, f in self.functions.items()}
        return replace(
            self,
            graph=self.graph.copy(),
            functions=functions,
            extras=dict(self.extras),
        )
