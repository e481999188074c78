"""The shape of the house: who may import whom, who may write the graph, how long a file may be.

Everything is read from the source with ``ast``; only the last tests import the project.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = (
    "ir",
    "io",
    "analysis",
    "runtime",
    "rewrite",
    "verify",
    "report",
    "options",
    "workflow",
    "api",
    "cli",
)
"""Lowest first. Whatever lies in ``optimizer/__init__.py`` counts as ``api``."""
LOADS_PASSES = ("optimizer/api.py",)
BELOW_PASSES = LAYERS[: LAYERS.index("rewrite") + 1]

PROTOBUF_PLACES = (
    "optimizer/io/",
    "optimizer/analysis/onnx_fallback.py",
    "optimizer/runtime/delegate.py",
    "optimizer/runtime/function_body.py",
)
TAKES_A_PROTOBUF_MODEL = (  # may name its type in annotations
    "optimizer/runtime/session.py",
    "optimizer/verify/",
    "optimizer/options.py",
    "optimizer/api.py",
)
REFERENCE_PLACES = ("optimizer/runtime/delegate.py",)
ONNXRUNTIME_PLACES = ("optimizer/verify/", "optimizer/cli/")  # it judges results, it never makes them
RICH_AT_TOP = ("optimizer/report/", "optimizer/cli/")  # modules that are themselves loaded when used

INTERNALS = {"_write", "_dag", "_vertices", "_successors", "_interface", "_relink"}

MAX_FILE, MAX_FUNCTION = 350, 60


@dataclass(frozen=True)
class Import:
    """One imported module, as written at ``path:line``."""

    path: str
    line: int
    module: str
    function: str
    """The function it stands in; empty at the top of the module."""
    type_only: bool

    def __str__(self) -> str:
        return f"{self.path}:{self.line} imports {self.module}"


# ------------------------------------------------------------------ reading the source


@cache
def sources() -> dict[str, ast.Module]:
    files = sorted(path for package in ("optimizer", "passes") for path in (ROOT / package).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text("utf-8")) for path in files}


def imports_of(path: str, tree: ast.Module) -> Iterator[Import]:
    yield from _imports(path, tree, function="", type_only=False)


def _imports(path: str, node: ast.AST, function: str, type_only: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import():
                for alias in child.names:
                    yield Import(path, child.lineno, alias.name, function, type_only)
            case ast.ImportFrom():
                for module in _imported_modules(path, child):
                    yield Import(path, child.lineno, module, function, type_only)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _imports(path, child, child.name, type_only)
            case ast.If() if ast.unparse(child.test).endswith("TYPE_CHECKING"):
                yield from _imports(path, ast.Module(child.body, []), function, type_only=True)
                yield from _imports(path, ast.Module(child.orelse, []), function, type_only)
            case _:
                yield from _imports(path, child, function, type_only)


def _imported_modules(path: str, statement: ast.ImportFrom) -> list[str]:
    """``from optimizer import ir`` imports the module optimizer.ir, not the package alone."""
    module = statement.module or ""
    if statement.level:
        package = path.split("/")[: -statement.level]
        module = ".".join([*package, *filter(None, [module])])
    if module in ("optimizer", "onnx"):
        return [f"{module}.{alias.name}" for alias in statement.names]
    return [module]


def all_imports() -> list[Import]:
    return [found for path, tree in sources().items() for found in imports_of(path, tree)]


def layer_of_path(path: str) -> str:
    package, _, rest = path.partition("/")
    if package == "passes":
        return "passes"
    top = rest.split("/")[0].removesuffix(".py")
    return "api" if top == "__init__" else top


def layer_of_module(module: str) -> str | None:
    """The layer of one of our modules, ``None`` for anybody else's."""
    package, *rest = module.split(".")
    if package == "passes":
        return "passes"
    if package != "optimizer":
        return None
    return rest[0] if rest and rest[0] in LAYERS else "api"


def may_import(importer: str, imported: str) -> bool:
    if importer == imported:
        return True
    if importer not in LAYERS and importer != "passes":
        return False
    if importer == "passes":
        return imported in BELOW_PASSES
    if imported == "passes":
        return False  # but see test_one_function_loads_the_catalogue
    return LAYERS.index(imported) < LAYERS.index(importer)


def within(path: str, places: tuple[str, ...]) -> bool:
    return path.startswith(places)


# ------------------------------------------------------------------ imports


def test_every_module_is_in_a_known_layer() -> None:
    known = {*LAYERS, "passes"}
    assert [path for path in sources() if layer_of_path(path) not in known] == []


def test_imports_only_go_down() -> None:
    wrong = []
    for found in all_imports():
        imported = layer_of_module(found.module)
        if imported is None or (imported == "passes" and within(found.path, LOADS_PASSES)):
            continue
        if not may_import(layer_of_path(found.path), imported):
            wrong.append(str(found))
    assert wrong == []


def test_one_function_loads_the_catalogue() -> None:
    places = {
        (found.path, found.function)
        for found in all_imports()
        if layer_of_module(found.module) == "passes" and layer_of_path(found.path) != "passes"
    }
    assert len(places) <= 1, places
    assert all(function for _, function in places), "passes must not load together with the engine"


def test_protobuf_stays_in_its_adapters() -> None:
    wrong = []
    for found in all_imports():
        package, *rest = found.module.split(".")
        if package not in ("onnx", "google") or rest[:1] in (["defs"], ["reference"]):
            continue
        annotation = found.type_only and within(found.path, TAKES_A_PROTOBUF_MODEL)
        if not annotation and not within(found.path, PROTOBUF_PLACES):
            wrong.append(str(found))
    assert wrong == []


@pytest.mark.parametrize(
    ("module", "places", "places_at_top"),
    [
        ("onnx.reference", REFERENCE_PLACES, ()),
        ("onnxruntime", ONNXRUNTIME_PLACES, ()),
        ("rich", RICH_AT_TOP, RICH_AT_TOP),
    ],
)
def test_heavy_imports_wait_until_used(
    module: str, places: tuple[str, ...], places_at_top: tuple[str, ...]
) -> None:
    wrong = []
    for found in all_imports():
        if not f"{found.module}.".startswith(f"{module}."):
            continue
        late = found.function or found.type_only or within(found.path, places_at_top)
        if not late or not within(found.path, places):
            wrong.append(str(found))
    assert wrong == []


def test_importing_the_project_loads_nothing_heavy() -> None:
    heavy = ("onnxruntime", "onnx.reference", "rich", "PIL", "matplotlib", "passes")
    program = f"import sys, optimizer; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "[]"


# ------------------------------------------------------------------ the engine knows no rewrite


def test_the_engine_names_no_rewrite() -> None:
    names = {name for path, tree in sources().items() if within(path, ("passes/",)) for name in _rules(tree)}
    wrong = []
    for path, tree in sources().items():
        if within(path, ("optimizer/",)):
            wrong += [f"{path}:{line} names {word}" for line, word in _words(tree) if word in names]
    assert wrong == []


def _rules(tree: ast.Module) -> Iterator[str]:
    """Names given to rewrites in a file of the catalogue, with dashes and as functions are called.

    One-word names (``fold``, ``shape``) are ordinary words elsewhere and are left out.
    """
    for node in ast.walk(tree):
        name = ""
        if isinstance(node, ast.FunctionDef) and any(map(_declares_a_rewrite, node.decorator_list)):
            name = node.name
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value if re.fullmatch(r"[a-z]+(-[a-z0-9]+)+", node.value) else ""
        if "-" in name.replace("_", "-"):
            yield from (name.replace("_", "-"), name.replace("-", "_"))


def _declares_a_rewrite(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(target).split(".")[-1] == "graph_optimizer"


def _words(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every string, name and attribute of a module with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(word)) | ast.Name(id=word) | ast.Attribute(attr=word):
                yield node.lineno, word
            case ast.FunctionDef(name=word) | ast.ClassDef(name=word):
                yield node.lineno, word


def test_only_the_graph_writes_the_graph() -> None:
    wrong = []
    for path, tree in sources().items():
        if not within(path, ("optimizer/ir/",)):
            wrong += [f"{path}:{line} touches {name}" for line, name in _internals_touched(tree)]
    assert wrong == []


def _internals_touched(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Other classes may have such names of their own, so ``self`` counts in a kind of Graph only."""
    graph_classes = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base).split(".")[-1] == "Graph" for base in node.bases)
    )
    inside = {id(node) for graph_class in graph_classes for node in ast.walk(graph_class)}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=receiver, attr=name) if name in INTERNALS:
                own = isinstance(receiver, ast.Name) and receiver.id in ("self", "cls")
                if not own or id(node) in inside:
                    yield node.lineno, name
            case ast.Call(func=ast.Name(id="getattr" | "setattr"), args=[_, ast.Constant(value=name), *_]):
                if name in INTERNALS:
                    yield node.lineno, name


# ------------------------------------------------------------------ sizes


def test_files_stay_short() -> None:
    long = {}
    for path in sources():
        length = len((ROOT / path).read_text("utf-8").splitlines())
        if length > MAX_FILE:
            long[path] = length
    assert long == {}


def test_functions_stay_short() -> None:
    """Docstrings do not count: an interface with many options needs a long one."""
    long = {}
    for path, tree in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if ast.get_docstring(node) is not None:
                    length -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
                if length > MAX_FUNCTION:
                    long[f"{path}:{node.lineno} {node.name}"] = length
    assert long == {}


# ------------------------------------------------------------------ the public face


def test_public_names_exist() -> None:
    import optimizer

    public = getattr(optimizer, "__all__", [])
    assert [name for name in public if not hasattr(optimizer, name)] == []
    assert len(public) == len(set(public))
