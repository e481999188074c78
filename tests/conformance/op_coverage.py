"""A pytest plugin: which versions of which operators ran in tests that passed.

``pytest tests/runtime -p op_coverage`` (with this folder on the path) writes the list to the file that
``$OINFER_OP_COVERAGE`` names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

FILE = "OINFER_OP_COVERAGE"
Version = tuple[str, str, int]

_running: set[Version] = set()
_passed: set[Version] = set()


def pytest_configure() -> None:
    from optimizer.runtime import call

    made = call.Call.__init__

    def noted(self: call.Call, *args: object, **options: object) -> None:
        made(self, *args, **options)  # type: ignore[arg-type]
        _running.add((self.domain, self.op_type, self.opset))

    call.Call.__init__ = noted  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if call.when == "call":
        if report.passed:  # type: ignore[attr-defined]
            _passed.update(_running)
        _running.clear()
    return report


def pytest_sessionfinish() -> None:
    Path(os.environ[FILE]).write_text(json.dumps(sorted(_passed)))


def schema_versions() -> list[Version]:
    """Every (domain, operator, since version >= 7) of the main domain that is not deprecated."""
    from onnx import defs

    return sorted(
        (schema.domain, schema.name, schema.since_version)
        for schema in defs.get_all_schemas_with_history()
        if schema.domain == "" and schema.since_version >= 7
    )


def covered(ran: list[Version]) -> set[Version]:
    """The schema versions that those opsets of those operators mean."""
    from onnx import defs

    found = set()
    for domain, op_type, opset in ran:
        try:
            schema = defs.get_schema(op_type, opset, domain)
        except defs.SchemaError:
            continue
        found.add((domain, op_type, schema.since_version))
    return found
