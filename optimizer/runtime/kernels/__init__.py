"""One file of kernels per family of operators. Importing a file registers its kernels."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache


@cache
def load_kernels() -> None:
    """Imports every module of this package, which fills ``registry.REGISTRY``."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
