"""The table of inference rules: ``@infer("Op")``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from optimizer.analysis.fact import Fact

if TYPE_CHECKING:
    from optimizer.analysis.context import InferContext

InferResult: TypeAlias = Fact | Sequence[Fact | None] | None
InferRule: TypeAlias = "Callable[[InferContext], InferResult]"
_AnyRule = TypeVar("_AnyRule", bound="Callable[[InferContext], InferResult]")

_rules: dict[tuple[str, str], dict[int, InferRule]] = {}


def infer(*op_types: str, domain: str = "", since: int = 1) -> Callable[[_AnyRule], _AnyRule]:
    """Declares how to infer the outputs of these operators, from opset ``since`` on.

    The rule gets an ``InferContext`` and returns a ``Fact``, or one (or ``None``: nothing known) for
    each output. It states only what is true of every run that succeeds. Declaring the same operator
    and version again replaces the rule.
    """

    def declare(rule: _AnyRule) -> _AnyRule:
        for op_type in op_types:
            _rules.setdefault((domain, op_type), {})[since] = rule
        rule_for.cache_clear()
        return rule

    return declare


@cache
def rule_for(domain: str, op_type: str, opset: int) -> InferRule | None:
    """The rule of the highest version up to ``opset`` (0: the newest)."""
    versions = _rules.get((domain, op_type), {})
    since = max((v for v in versions if not opset or v <= opset), default=None)
    return None if since is None else versions[since]
