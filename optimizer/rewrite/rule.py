"""Rules, passes written as functions, and the decorator that declares both."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from optimizer.ir import Graph, Value
from optimizer.rewrite.exactness import Exactness
from optimizer.rewrite.pattern import (
    AnyOf,
    Filled,
    Op,
    PatternError,
    Scalar,
    Term,
    Var,
    check_pattern,
    depth,
    with_constants,
)

if TYPE_CHECKING:
    from optimizer.rewrite.match import Match
    from optimizer.rewrite.rewriter import Rewriter

Replacement: TypeAlias = Value | Sequence[Value | None]
RuleFunction: TypeAlias = "Callable[[Match, Rewriter], Replacement]"
GraphFunction: TypeAlias = Callable[[Graph], Any]


class Refusal(Exception):
    """A precondition does not hold: data for the report, not an error."""

    @property
    def reason(self) -> str:
        """What does not hold."""
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class Alternative:
    """One of the operators that a pattern may be rooted at, and what can be told of it at a glance.

    Attributes:
        feeders: sets of op types of which one must feed the root.
        anywhere: sets of op types of which one must occur in the graph.
        depth: operators on the longest path down from the root.
    """

    term: Op
    feeders: tuple[frozenset[str], ...]
    anywhere: tuple[frozenset[str], ...]
    depth: int

    @classmethod
    def of(cls, term: Op) -> Alternative:
        """What there is to tell of ``term``."""
        feeders = dict.fromkeys(ops for operand in term.inputs if (ops := _feeder_ops(operand)))
        return cls(term, tuple(feeders), tuple(dict.fromkeys(_ops_within(term))), depth(term))

    def may_occur(self, present: frozenset[str]) -> bool:
        """Whether it may match somewhere in a graph of these op types."""
        return not any(map(present.isdisjoint, self.anywhere))

    def may_match(self, op_type: str, feeders: frozenset[str]) -> bool:
        """Whether it may match at an ``op_type`` fed by these op types."""
        return op_type in self.term.ops and not any(map(feeders.isdisjoint, self.feeders))


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A local rewrite: where ``pattern`` matches, ``function`` builds what replaces the root.

    Attributes:
        name: ``verb-noun`` of the function's name.
        lhs_rhs: first line of the docstring, ``lhs -> rhs``.
        key: module and qualified name, the identity of the declaration.
        alternatives: the operators it may be rooted at, in order.
    """

    name: str
    pattern: Term
    function: RuleFunction
    tag: Exactness
    lhs_rhs: str
    key: tuple[str, str]
    alternatives: tuple[Alternative, ...]

    @property
    def depth(self) -> int:
        """Operators on the longest path of the pattern."""
        return max(alternative.depth for alternative in self.alternatives)

    @property
    def roots(self) -> Iterator[tuple[str, str]]:
        """The (domain, op type) pairs it can match at."""
        for alternative in self.alternatives:
            for op in alternative.term.ops:
                yield alternative.term.domain, op


@dataclass(frozen=True, slots=True)
class GraphPass:
    """A pass written as a function of one graph; it is run in every scope.

    A truthy result of ``function`` means that it changed the graph.
    """

    name: str
    function: GraphFunction
    tag: Exactness
    doc: str
    key: tuple[str, str]


Declared: TypeAlias = Rule | GraphPass


class Registry:
    """What has been declared, in order. Declaring an item again (same key) replaces it."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, str], Declared] = {}

    def declare(self, item: Declared) -> None:
        """Adds ``item``, or replaces the one with the same module and qualified name."""
        self._items[item.key] = item

    def __iter__(self) -> Iterator[Declared]:
        return iter(self._items.values())

    def forget(self, module: str) -> None:
        """Drops what a module declared, before it is loaded anew."""
        self._items = {key: item for key, item in self._items.items() if key[0] != module}

    def of_module(self, module: str) -> list[Declared]:
        """What one module declares, in order."""
        return [item for item in self if item.key[0] == module]


default_registry = Registry()


@overload
def graph_optimizer(pattern: GraphFunction, /) -> GraphPass: ...
@overload
def graph_optimizer(
    pattern: Op | AnyOf,
    /,
    *,
    constants: str | Iterable[str] = ...,
    tag: Exactness | str = ...,
    name: str = ...,
    registry: Registry | None = ...,
) -> Callable[[RuleFunction], Rule]: ...
@overload
def graph_optimizer(
    pattern: None = ..., /, *, tag: Exactness | str = ..., name: str = ..., registry: Registry | None = ...
) -> Callable[[GraphFunction], GraphPass]: ...


def graph_optimizer(
    pattern: Any = None,
    /,
    *,
    constants: str | Iterable[str] = (),
    tag: Exactness | str = Exactness.E2,
    name: str = "",
    registry: Registry | None = None,
) -> Any:
    """Declares a rewrite. Declaring never activates it: name it in a pipeline or give it to a run.

    Bare, on ``def f(graph)``, it makes a pass: the function may loop over ``graph.nodes`` and use
    the five mutators. With a pattern, on ``def f(m, rw)``, it makes a rule: ``m`` holds what the
    pattern bound, ``rw`` builds the new nodes, and the returned value replaces the root's output
    (a sequence: its outputs, ``None`` where one stays).

    Args:
        constants: variables of the pattern that must be constants, as names or one string of names.
        tag: how exactly the rewrite keeps the outputs.
        name: instead of the function's name with dashes.

    Raises:
        PatternError: the pattern cannot work, or the function takes other arguments.
    """
    registry = default_registry if registry is None else registry
    exactness = Exactness[tag] if isinstance(tag, str) else tag
    if pattern is None or isinstance(pattern, (Op, AnyOf)):
        names = frozenset(constants.split() if isinstance(constants, str) else constants)
        if pattern is not None:
            check_pattern(pattern, names)
            pattern = with_constants(pattern, names) if names else pattern

        def declare(function: Callable[..., Any]) -> Declared:
            made = (
                _make_pass(function, name, exactness)
                if pattern is None
                else _make_rule(function, name, exactness, pattern)
            )
            registry.declare(made)
            return made

        return declare
    if not callable(pattern):
        raise PatternError(f"graph_optimizer takes a pattern or a function, not {type(pattern).__name__}")
    made = _make_pass(pattern, name, exactness)
    registry.declare(made)
    return made


def _make_pass(function: GraphFunction, name: str, tag: Exactness) -> GraphPass:
    _check_arguments(function, 1, "one argument, the graph")
    doc = inspect.getdoc(function) or ""
    return GraphPass(name or _name_of(function), function, tag, doc, _key_of(function))


def _make_rule(function: RuleFunction, name: str, tag: Exactness, pattern: Op | AnyOf) -> Rule:
    _check_arguments(function, 2, "two arguments, the match and the rewriter")
    first_line = (inspect.getdoc(function) or "").partition("\n")[0]
    terms = pattern.terms if isinstance(pattern, AnyOf) else (pattern,)
    return Rule(
        name or _name_of(function),
        pattern,
        function,
        tag,
        first_line,
        _key_of(function),
        tuple(Alternative.of(term) for term in terms if isinstance(term, Op)),
    )


def _ops_within(term: Term) -> Iterator[frozenset[str]]:
    """For each operator that a match must contain, the op types it may be of."""
    if isinstance(term, Op):
        yield frozenset(term.ops)
        for below in term.inputs:
            yield from _ops_within(below)
    elif isinstance(term, AnyOf) and all(isinstance(option, Op) for option in term.terms):
        yield frozenset(op for option in term.terms if isinstance(option, Op) for op in option.ops)


def _feeder_ops(term: Term) -> frozenset[str]:
    """The op types one of which must feed this input; empty where anything may."""
    if isinstance(term, Op):
        return frozenset(term.ops)
    if isinstance(term, (Scalar, Filled)) or (isinstance(term, Var) and term.constant):
        return _CONSTANT
    if isinstance(term, AnyOf):
        options = [_feeder_ops(option) for option in term.terms]
        return frozenset().union(*options) if all(options) else frozenset()
    return frozenset()


_CONSTANT = frozenset({"Constant"})


def _check_arguments(function: Callable[..., Any], count: int, wanted: str) -> None:
    parameters = inspect.signature(function).parameters.values()
    if sum(p.default is p.empty and p.kind is not p.VAR_KEYWORD for p in parameters) != count:
        raise PatternError(f"{function.__qualname__} must take {wanted}")


def _name_of(function: Callable[..., Any]) -> str:
    return function.__name__.strip("_").replace("_", "-")


def _key_of(function: Callable[..., Any]) -> tuple[str, str]:
    return function.__module__, function.__qualname__
