"""One shared body for the tests of all rewrites: a test file is a table of rows in ONNX text syntax.

A row that fires is ``(id, before, after)``; one that refuses is ``(id, before, reason)``. In the text

- ``y``, ``y2``, ... are the outputs;
- ``f32([1, 2])``, ``i64(3)``, ``bool([...])`` are constants (``normal(4, 3)`` inside draws one);
- ``_`` in an ``after`` text is any constant;
- ``y = Identity(x)`` in an ``after`` text says that ``y`` is ``x`` itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from equal_outputs import compare
from graph_difference import ANY, difference

from optimizer.io import parse
from optimizer.ir import Model, verify_graph
from optimizer.ir.text import dump
from optimizer.rewrite import Context, Pass, Rule, RulePass, Settings

_DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "bool": np.bool_,
    "str": object,
}
_LITERAL = re.compile(rf"\b({'|'.join(_DTYPES)})\(((?:[^()]|\([^()]*\))*)\)")


@dataclass(frozen=True)
class Setup:
    """What the rows of a table share.

    Attributes:
        inputs: the graph's inputs as in ONNX text, ``float[N,4] x, bool c``.
        constants: further tensors the rows may name.
        imports: further operator sets, ``"com.microsoft" : 1``.
        functions: text of model-local functions.
        sizes: values of the named dims, one mapping for each run; primes and ones by default.
        feeds: inputs that must not be random.
        rtol: of rewrites that are not exact, times the largest magnitude of an output.
        special: feed NaN, infinities and -0 too where the rewrite claims to be bit-exact.
        ort: compare in onnxruntime as well (off only for what it cannot run).
    """

    inputs: str = "float[N,4] x"
    opset: int = 17
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    imports: str = ""
    functions: str = ""
    sizes: Sequence[Mapping[str, int]] = ()
    feeds: Mapping[str, Any] = field(default_factory=dict)
    settings: Settings = field(default_factory=lambda: Settings(fp="fast", growth=None))
    rtol: float = 1e-5
    special: bool = True
    ort: bool = True
    wildcard: type = np.float32

    def model(self, body: str) -> Model:
        """The model that a row's text stands for."""
        constants = dict(self.constants)

        def literal(found: re.Match[str]) -> str:
            name = f"literal_{len(constants)}"
            constants[name] = _array(found[1], found[2])
            return name

        def wildcard(_: re.Match[str]) -> str:
            name = f"{ANY}{len(constants)}"
            constants[name] = np.zeros((), self.wildcard)
            return name

        body = re.sub(r"(?<![\w.])_(?![\w.])", wildcard, _LITERAL.sub(literal, body))
        outputs = ", ".join(dict.fromkeys(re.findall(r"\by\d*\b", body)))
        imports = f", {self.imports}" if self.imports else ""
        head = f'<ir_version: 10, opset_import: ["" : {self.opset}{imports}]>'
        used = {name: array for name, array in constants.items() if re.search(rf"\b{name}\b", body)}
        return parse(f"{head}\nrow ({self.inputs}) => ({outputs}) {{ {body} }}\n{self.functions}", used)


@dataclass(frozen=True)
class Row:
    """One row of one rewrite. ``after`` is ``None`` where it must refuse because of ``reason``."""

    rewrite: Rule | Pass
    id: str
    setup: Setup
    before: str
    after: str | None = None
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.rewrite.name}:{self.id}"

    def check(self) -> None:
        """Runs the row."""
        if self.after is None:
            self._check_refusal()
        else:
            self._check_application(self.after)

    def _check_refusal(self) -> None:
        model = self.setup.model(self.before)
        text = dump(model)
        ctx = self._apply(model)
        assert dump(model) == text
        assert not ctx.journal.entries
        assert self.reason in ctx.stats[self.rewrite.name].refused, dict(ctx.stats[self.rewrite.name].refused)

    def _check_application(self, after: str) -> None:
        original, model = self.setup.model(self.before), self.setup.model(self.before)
        ctx = self._apply(model)
        assert ctx.journal.entries, f"did not fire: {dict(ctx.stats[self.rewrite.name].refused)}"
        for graph in (model.graph, *(f.graph for f in model.functions.values())):
            verify_graph(graph)
        fault = difference(model.graph, self.setup.model(after).graph)
        assert not fault, f"{fault}\n{dump(model)}"
        assert not self._apply(model).journal.entries, "it fires again on its own result"
        tags = [entry.tag for entry in ctx.journal.entries]
        compare(original, model, self.setup, max(tags))

    def _apply(self, model: Model) -> Context:
        ctx = Context(model, self.setup.settings)
        rewrite = (
            RulePass(self.rewrite.name, [self.rewrite]) if isinstance(self.rewrite, Rule) else self.rewrite
        )
        rewrite.run(ctx)
        return ctx


def rows(
    rewrite: Rule | Pass,
    setup: Setup,
    fires: Sequence[tuple[str, str, str]] = (),
    refuses: Sequence[tuple[str, str, str]] = (),
) -> list[Row]:
    """The rows of one rewrite: FIRES of (id, before, after), REFUSES of (id, before, reason)."""
    return [Row(rewrite, i, setup, before, after) for i, before, after in fires] + [
        Row(rewrite, i, setup, before, None, reason) for i, before, reason in refuses
    ]


def table_test(table: Sequence[Row]) -> Callable[[Row], None]:
    """The test of a whole table: ``test_rows = table_test(ROWS)``."""

    @pytest.mark.parametrize("row", table, ids=str)
    def test(row: Row) -> None:
        row.check()

    return test


def _array(dtype: str, text: str) -> np.ndarray:
    names = {
        "inf": np.inf,
        "nan": np.nan,
        "true": True,
        "false": False,
        "arange": np.arange,
        "ones": lambda *shape: np.ones(shape),
        "zeros": lambda *shape: np.zeros(shape),
        "normal": lambda *shape: np.random.default_rng(len(text) + 7).standard_normal(shape),
        "positive": lambda *shape: np.random.default_rng(len(text) + 7).uniform(0.5, 2, shape),
    }
    return np.asarray(eval(text, names)).astype(_DTYPES[dtype])


@cache
def all_rows() -> tuple[Row, ...]:
    """The rows of every test file next to this one."""
    import importlib
    from pathlib import Path

    found: list[Row] = []
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        found.extend(getattr(importlib.import_module(path.stem), "ROWS", ()))
    return tuple(found)
