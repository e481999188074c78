"""Rules from outside: single files and installed plugins. They run only when named."""

from __future__ import annotations

import importlib.util
import sys
import zlib
from collections.abc import Iterable
from importlib.metadata import entry_points
from os import PathLike
from pathlib import Path
from types import ModuleType

from optimizer.ir import UsageError
from optimizer.rewrite.rule import Declared, GraphPass, Rule, default_registry

ENTRY_POINTS = "oinfer_opt.passes"
"""Entry point group under which packages offer modules of rules."""


def extensions(
    rules: Iterable[Declared | str | PathLike[str]], plugins: Iterable[str] = ()
) -> tuple[Declared, ...]:
    """Rules and passes given as objects, as Python files, or as names of plugins, in that order.

    Raises:
        UsageError: a file is missing, fails to load or declares nothing; no such plugin.
    """
    found: list[Declared] = []
    for item in rules:
        found.extend([item] if isinstance(item, (Rule, GraphPass)) else _of_file(Path(item)))
    for name in plugins:
        found.extend(_of_plugin(name))
    return tuple(found)


def _of_file(path: Path) -> list[Declared]:
    if not path.is_file():
        raise UsageError(f"no rule file {path}")
    name = f"oinfer_rules_{path.stem}_{zlib.crc32(str(path.resolve()).encode()):08x}"
    default_registry.forget(name)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{path} fails to load: {type(error).__name__}: {error}") from error
    return _declared_in(module, str(path))


def _of_plugin(name: str) -> list[Declared]:
    points = entry_points(group=ENTRY_POINTS)
    if name not in points.names:
        known = ", ".join(sorted(points.names)) or "none is installed"
        raise UsageError(f"no plugin '{name}' in the entry point group {ENTRY_POINTS} ({known})")
    try:
        module = points[name].load()
    except Exception as error:
        raise UsageError(f"plugin {name} fails to load: {type(error).__name__}: {error}") from error
    return _declared_in(module, f"plugin {name}")


def _declared_in(module: ModuleType, where: str) -> list[Declared]:
    found = default_registry.of_module(module.__name__)
    if not found:
        raise UsageError(f"{where} declares no rule with @graph_optimizer")
    return found
