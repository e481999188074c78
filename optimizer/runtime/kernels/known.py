"""Kernels of operators with more options than they implement refuse the others instead of ignoring them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from optimizer.runtime.call import Call


def implements(
    attributes: str,
    *,
    inputs: int,
    outputs: int,
    ignored: Mapping[str, tuple[Any, ...]] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that refuses what a kernel does not implement.

    Args:
        attributes: names of those it implements, separated by spaces.
        inputs: number of inputs it takes; further ones have to be omitted.
        outputs: number of outputs it gives; further ones must not be read.
        ignored: other attributes, with the values that change nothing; none named: any value.

    Raises:
        ValueError: (the decorated kernel) an attribute, input or output is none of these.
    """
    known, harmless = frozenset(attributes.split()), ignored or {}

    def refusing(run: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(run)
        def checked(call: Call, *given: Any) -> Any:
            call.once("implemented", lambda: _check(call, known, harmless, outputs))
            for position, value in enumerate(given[inputs:], inputs):
                if value is not None:
                    raise ValueError(f"input {position} is not implemented")
            return run(call, *given[:inputs])

        return checked

    return refusing


def _check(call: Call, known: frozenset[str], harmless: Mapping[str, tuple[Any, ...]], outputs: int) -> bool:
    for name, value in call.attributes.items():
        if name not in known and (name not in harmless or (harmless[name] and value not in harmless[name])):
            raise ValueError(f"attribute '{name}' = {value!r} is not implemented")
    for position in range(outputs, call.output_count):
        if call.outputs[position].name and call.wants(position):
            raise ValueError(f"output {position} is not implemented")
    return True
