"""Makes the shared body of the rule tests importable and lets its assertions explain themselves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("harness", "equal_outputs")
