"""``dump``: a graph or model in ONNX text syntax, one line for each node.

With ``max_elements=None`` the text is complete as far as the syntax goes: ``optimizer.io.parse`` reads it
back. Shorter texts leave out the elements of long constants (they can be given to ``parse`` as arrays) and
show the types of intermediate values as remarks. The syntax has no words for texts and metadata of
nodes and values, quantization annotations, sparse constants, and lists of anything but numbers and strings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from optimizer.ir.graph import Graph
from optimizer.ir.literals import (
    elements,
    identifier,
    is_short,
    remark,
    spell_attribute,
    spell_type,
    string,
    tensor_type,
    word,
)
from optimizer.ir.model import Function, Model
from optimizer.ir.names import Namer, ScopeNames
from optimizer.ir.node import Attribute, Node, Value, ValueInfo
from optimizer.ir.tensor import Tensor


def dump(obj: Graph | Model, *, max_elements: int | None = 8, canonical: bool = False) -> str:
    """The text of a graph or model.

    Args:
        max_elements: constants with more elements show their type only; ``None`` shows all.
        canonical: leave out node names, the names of inner values, and dead nodes, and order nodes by
            how the outputs reach them: texts of graphs that do the same in the same way are equal.
    """
    style = _Style(max_elements, canonical)
    if isinstance(obj, Graph):
        return "\n".join(_Printer(obj, style).main(obj)) + "\n"
    lines = [*_header(obj), *_Printer(obj.graph, style).main(obj.graph)]
    for function in obj.functions.values():
        lines += _Printer(function.graph, style).function(function)
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class _Style:
    max_elements: int | None
    canonical: bool

    @property
    def complete(self) -> bool:
        return self.max_elements is None and not self.canonical


def _header(model: Model) -> list[str]:
    entries = [f"ir_version: {model.ir_version}", f"opset_import: [{_opsets(model.opsets)}]"]
    for key in ("producer_name", "producer_version", "domain", "doc_string"):
        if text := getattr(model, key):
            entries.append(f"{key}: {string(text)}")
    if model.model_version:
        entries.append(f"model_version: {model.model_version}")
    if model.metadata:
        pairs = ", ".join(f"{string(key)}: {string(value)}" for key, value in model.metadata)
        entries.append(f"metadata_props: [{pairs}]")
    return ["<", *(f"  {entry}," for entry in entries[:-1]), f"  {entries[-1]}", ">"]


def _opsets(opsets: Mapping[str, int]) -> str:
    return ", ".join(f"{string(domain)}: {version}" for domain, version in opsets.items())


class _Printer:
    """Prints one main graph or function with its bodies."""

    def __init__(self, root: Graph, style: _Style) -> None:
        self._style = style
        self._namer = Namer(
            root,
            _canonical_name if style.canonical else _name_by_id,
            lambda graph, value: True,
            keep=not style.canonical,
        )

    def main(self, graph: Graph) -> list[str]:
        """The lines of a main graph."""
        return self._graph(graph, identifier(graph.name), (), fixed=True)

    def function(self, function: Function) -> list[str]:
        """The lines of a function. It has no initializers: its constants are nodes."""
        graph, style = function.graph, self._style
        constants, nodes = self._ordered(graph)
        names = self._namer.name(graph, (), (*constants, *nodes), fixed=True)
        keys = [f"domain: {string(function.domain)}", f"opset_import: [{_opsets(graph.opsets)}]"]
        keys += [f"overload: {string(function.overload)}"] if function.overload else []
        keys += [f"doc_string: {string(function.doc_string)}"] if function.doc_string else []
        formal = [identifier(name) for name in function.attributes]
        formal += [
            f"{identifier(name)}: {a.kind.name.lower()} = " + _value_of(a, style)
            for name, a in function.defaults.items()
        ]
        attributes = f" <{', '.join(formal)}>" if formal else ""
        inputs = self._interface(names.values[v] for v in graph.inputs)
        lines = [f"<{', '.join(keys)}>"]
        lines.append(
            f"{identifier(function.name)}{attributes} ({inputs}) => ({self._interface(names.outputs)})"
        )
        lines.append("{")
        for constant in constants:
            made = spell_attribute("value", constant.attributes["value"], style.max_elements, str)
            lines.append(f"  {identifier(names.values[constant.value()])} = Constant <{made}> ()")
        return [*lines, *self._nodes(graph, nodes, names), "}"]

    def _interface(self, names: Iterator[str] | Sequence[str]) -> str:
        return ", ".join(map(identifier, names))

    # ---------------------------------------------------------------- graphs

    def _graph(self, graph: Graph, title: str, captured: Sequence[str], *, fixed: bool) -> list[str]:
        constants, nodes = self._ordered(graph)
        names = self._namer.name(graph, captured, (*constants, *nodes), fixed=fixed)
        inputs = ", ".join(_declare(graph.info(v), names.values[v]) for v in graph.inputs)
        results = zip(graph.sink.outputs, names.outputs, strict=True)
        outputs = ", ".join(_declare(info, name) for info, name in results)
        return [
            f"{title} ({inputs}) => ({outputs})",
            *self._declarations(graph, constants, nodes, names),
            "{",
            *self._nodes(graph, nodes, names),
            "}",
        ]

    def _declarations(
        self, graph: Graph, constants: Sequence[Node], nodes: Sequence[Node], names: ScopeNames
    ) -> list[str]:
        """The part in angle brackets: initializers, and in complete texts the types of inner values."""
        entries: list[tuple[str, str]] = []
        for value in graph.inputs:
            default = graph.node(value).attr("default")
            if default is not None:
                entries.append(self._initializer(default, names.values[value]))
        entries += [self._initializer(c.attr("value"), names.values[c.value()]) for c in constants]
        if self._style.complete:
            entries += [
                (_declare(info, names.values[Value(node.id, i)]), "")
                for node in nodes
                for i, info in enumerate(node.outputs)
                if info.type is not None and names.values[Value(node.id, i)] not in ("", *names.outputs)
            ]
        if not entries:
            return []
        lines = [f"  {entry}," + (f"  # {note}" if note else "") for entry, note in entries[:-1]]
        entry, note = entries[-1]
        return ["<", *lines, f"  {entry}" + (f"  # {note}" if note else ""), ">"]

    def _initializer(self, tensor: Tensor, name: str) -> tuple[str, str]:
        declared = f"{tensor_type(tensor)} {identifier(name)}"
        if is_short(tensor, self._style.max_elements):
            return f"{declared} = {elements(tensor)}", remark(tensor)
        return declared, f"{tensor.size} elements"

    # ---------------------------------------------------------------- nodes

    def _nodes(self, graph: Graph, nodes: Sequence[Node], names: ScopeNames) -> Iterator[str]:
        for node in nodes:
            lines = self._node(node, names.values).split("\n")
            types = [spell_type(info.type) for info in node.outputs if info.type is not None]
            if types and self._style.max_elements is not None and not self._style.canonical:
                lines[-1] += f"  # {', '.join(types)}"
            yield from (f"  {line}" for line in lines)
        for name, value in names.aliases:
            yield f"  {identifier(name)} = Identity ({identifier(names.values[value])})"

    def _node(self, node: Node, names: Mapping[Value, str]) -> str:
        label = f"[{identifier(node.name)}] " if node.name and not self._style.canonical else ""
        outputs = ", ".join(
            identifier(names[Value(node.id, i)]) if names[Value(node.id, i)] else '""'
            for i in range(len(node.outputs))
        )
        op = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        if node.overload:
            op += f":{node.overload}"
        inputs = ", ".join('""' if v is None else identifier(names[v]) for v in node.inputs)
        attributes = self._attributes(node, names)
        return f"{label}{outputs} = {op}{attributes} ({inputs})"

    def _attributes(self, node: Node, names: Mapping[Value, str]) -> str:
        if not node.attributes:
            return ""
        positions = {id(body): index for index, (_, body) in enumerate(node.bodies)}

        def spell_graph(body: Graph) -> str:
            captured = [names[value] for value in node.captures_of(positions[id(body)])]
            return "\n".join(self._graph(body, word(body.name, "body"), captured, fixed=False))

        spelled = [
            spell_attribute(name, node.attributes[name], self._style.max_elements, spell_graph)
            for name in (sorted(node.attributes) if self._style.canonical else node.attributes)
        ]
        return f" <{', '.join(spelled)}>"

    # ---------------------------------------------------------------- order

    def _ordered(self, graph: Graph) -> tuple[Sequence[Node], Sequence[Node]]:
        """Constants and operators."""
        if not self._style.canonical:
            return [graph.node(value) for value in graph.constants], graph.topological()
        reached = _reached(graph)
        constants = [v for v in reached if not v.is_operator and v.op_type == "Constant"]
        return constants, [v for v in reached if v.is_operator]


def _reached(graph: Graph) -> list[Node]:
    """The vertices that the outputs need, operands first, in the order of the operands."""
    done: set[int] = set()
    found: list[Node] = []
    stack: list[tuple[Node, bool]] = [(graph.sink, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            found.append(node)
        elif node.id not in done:
            done.add(node.id)
            stack.append((node, True))
            operands = [*node.inputs, *_captures_as_reached(node)]
            stack += [(graph.node(v), False) for v in reversed(operands) if v is not None]
    return found


def _captures_as_reached(node: Node) -> Iterator[Value]:
    """The captures in the order in which the bodies, by name, reach them."""
    for index, (_, body) in sorted(enumerate(node.bodies), key=lambda entry: entry[1][0]):
        bound = dict(zip(body.captures, node.captures_of(index), strict=True))
        yield from (bound[v.value()] for v in _reached(body) if v.value() in bound)


def _name_by_id(node: Node, output: int) -> str:
    return f"_{node.id}" + (f"_{output}" if output else "")


def _canonical_name(node: Node, output: int) -> str:
    return "t" if node.is_operator else "i" if node.op_type == "Input" else "c"


def _declare(info: ValueInfo, name: str) -> str:
    declared = f"{spell_type(info.type)} " if info.type is not None else ""
    return declared + identifier(name)


def _value_of(attribute: Attribute, style: _Style) -> str:
    return spell_attribute("", attribute, style.max_elements, str).partition("= ")[2]
