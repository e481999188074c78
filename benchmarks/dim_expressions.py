"""Values of dims that other tools write as text: integers, names, arithmetic, floor, Max, ..."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: Fraction(a) / Fraction(b),
    ast.FloorDiv: lambda a, b: Fraction(a) // Fraction(b),
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "floor": math.floor,
    "ceiling": math.ceil,
    "ceil": math.ceil,
    "Max": max,
    "max": max,
    "Min": min,
    "min": min,
    "Mod": operator.mod,
    "Abs": abs,
    "abs": abs,
}


def evaluate(dim: int | str | None, sizes: Mapping[str, int]) -> int | None:
    """The value, ``None`` where it depends on anything but ``sizes``, or is not understood."""
    if dim is None or isinstance(dim, int):
        return dim
    try:
        value = _value(_parsed(dim), sizes)
    except (SyntaxError, KeyError, TypeError, ValueError, ZeroDivisionError):
        return None
    return int(value) if value == int(value) else None


@lru_cache(maxsize=4096)
def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _value(node: ast.expr, sizes: Mapping[str, int]) -> Any:
    match node:
        case ast.Name(id=name):
            return sizes[name]
        case ast.Constant(value=int() | float() as number):
            return Fraction(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, sizes)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_value(left, sizes), _value(right, sizes))
        case ast.Call(func=ast.Name(id=name), args=args):
            return _FUNCTIONS[name](*(_value(a, sizes) for a in args))
    raise ValueError
