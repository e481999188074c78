"""Patterns: terms that read like the expression they match.

``P.BatchNormalization(P.Conv("x", "w", P.maybe("b"), name="conv").once(), "scale", ...)`` matches a
node and, through its inputs, the nodes before it. A string is a variable: it matches any value,
and the same value wherever it stands again. ``name=`` binds the node itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from optimizer.ir import IR_DOMAIN


@dataclass(frozen=True, slots=True)
class Var:
    """Any value, bound to ``name``; with ``constant``, only a constant."""

    name: str
    constant: bool = False


@dataclass(frozen=True, slots=True)
class Maybe:
    """An optional input: ``term`` where it is given, ``None`` bound to its variables where not."""

    term: Term


@dataclass(frozen=True, slots=True)
class Absent:
    """An optional input that is not given."""


@dataclass(frozen=True, slots=True)
class Rest:
    """All inputs from here on (at least ``least``), bound to ``name`` as a tuple."""

    name: str
    least: int = 0


@dataclass(frozen=True, slots=True)
class Scalar:
    """A constant with exactly one element, within ``rel`` of ``value`` (relative error)."""

    value: float
    rel: float = 0.0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Filled:
    """A constant that has elements, all of them equal to ``value``."""

    value: float
    name: str = ""


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The first of several terms that matches; the others are tried when the rule refuses."""

    terms: tuple[Term, ...]


class Op(NamedTuple):
    """Output ``output`` of an operator of one of ``ops`` whose inputs match ``inputs``.

    ``attributes`` must be equal where named (absent ones count as ``None``).
    """

    ops: tuple[str, ...]
    inputs: tuple[Term, ...] = ()
    domain: str = ""
    attributes: Mapping[str, Any] = MappingProxyType({})
    name: str = ""
    output: int = 0
    single_use: bool = False
    commutative: bool = False

    def once(self) -> Op:
        """Only where this value has a single use (being a graph output is a use)."""
        return self._replace(single_use=True)

    def commutes(self) -> Op:
        """The first two inputs match in either order."""
        return self._replace(commutative=True)

    def out(self, index: int) -> Op:
        """Another output of the operator than its first."""
        return self._replace(output=index)


_NAMED = (Var, Rest, Scalar, Filled, Op)
Term: TypeAlias = Var | Maybe | Absent | Rest | Scalar | Filled | AnyOf | Op


class PatternError(TypeError):
    """A pattern that cannot work, found when it is declared."""


class PatternBuilder:
    """``P.Conv(...)`` is a term for the operator Conv; the other methods make the other terms.

    The arguments of an operator are terms for its inputs in ONNX's order (a string: a variable; inputs
    that are not mentioned must be absent), ``name=`` for the node, ``domain=``, and attributes that must
    be equal. Its term can be narrowed: ``.once()``, ``.commutes()``, ``.out(index)``. What a name was
    bound to is an attribute of the match: a value for a variable, a node for an operator.
    """

    def __getattr__(self, op_type: str) -> _OpMaker:
        if not op_type[:1].isupper():
            raise AttributeError(op_type)
        return _OpMaker((op_type,))

    @staticmethod
    def one_of(*op_types: str) -> _OpMaker:
        """A term for any of several operators."""
        return _OpMaker(op_types)

    @staticmethod
    def var(name: str) -> Var:
        """A variable (the same as the bare string)."""
        return Var(name)

    @staticmethod
    def const(name: str) -> Var:
        """A variable that only matches a constant."""
        return Var(name, constant=True)

    @staticmethod
    def maybe(term: Term | str) -> Maybe:
        """An optional input."""
        return Maybe(as_term(term))

    @staticmethod
    def absent() -> Absent:
        """An optional input that must be absent."""
        return Absent()

    @staticmethod
    def rest(name: str, least: int = 0) -> Rest:
        """All remaining inputs."""
        return Rest(name, least)

    @staticmethod
    def scalar(value: float, rel: float = 0.0, name: str = "") -> Scalar:
        """A one-element constant of (about) this value."""
        return Scalar(value, rel, name)

    @staticmethod
    def filled(value: float, name: str = "") -> Filled:
        """A constant of any shape that is this value throughout."""
        return Filled(value, name)

    @staticmethod
    def any_of(*terms: Term | str) -> AnyOf:
        """Alternatives."""
        return AnyOf(tuple(as_term(term) for term in terms))


@dataclass(frozen=True, slots=True)
class _OpMaker:
    ops: tuple[str, ...]

    def __call__(self, *inputs: Term | str, name: str = "", domain: str = "", **attributes: Any) -> Op:
        return Op(self.ops, tuple(as_term(term) for term in inputs), domain, attributes, name)


P = PatternBuilder()


def as_term(term: Term | str) -> Term:
    """A bare string stands for a variable."""
    return Var(term) if isinstance(term, str) else term


def subterms(term: Term) -> list[Term]:
    """The term and all below it, outer ones first."""
    found = [term]
    for inner in found:
        if isinstance(inner, Op):
            found += inner.inputs
        elif isinstance(inner, AnyOf):
            found += inner.terms
        elif isinstance(inner, Maybe):
            found.append(inner.term)
    return found


def with_constants(term: Term, names: frozenset[str]) -> Term:
    """The term with its variables of these names bound to constants only."""
    if isinstance(term, Var):
        return Var(term.name, constant=True) if term.name in names else term
    if isinstance(term, Maybe):
        return Maybe(with_constants(term.term, names))
    if isinstance(term, AnyOf):
        return AnyOf(tuple(with_constants(option, names) for option in term.terms))
    if isinstance(term, Op):
        return term._replace(inputs=tuple([with_constants(below, names) for below in term.inputs]))
    return term


def depth(term: Term) -> int:
    """How many operators lie on the longest path from the root down."""
    if isinstance(term, Op):
        return 1 + max((depth(t) for t in term.inputs), default=0)
    if isinstance(term, AnyOf):
        return max(depth(t) for t in term.terms)
    return depth(term.term) if isinstance(term, Maybe) else 0


def bound_names(term: Term) -> set[str]:
    """Every name the term binds."""
    named = (t for t in subterms(term) if isinstance(t, _NAMED) and t.name)
    return {t.name for t in named}


def check_pattern(term: Term, constants: frozenset[str]) -> None:
    """Refuses a pattern that cannot work.

    Raises:
        PatternError: the root is no operator, a name is bound in two ways, ``Rest`` is not last,
            or ``constants`` names a variable that does not occur.
    """
    roots = term.terms if isinstance(term, AnyOf) else (term,)
    if not all(isinstance(root, Op) for root in roots):
        raise PatternError("the root of a pattern must be an operator")
    kinds: dict[str, type] = {}
    for inner in subterms(term):
        if isinstance(inner, _NAMED) and inner.name:
            kind = kinds.setdefault(inner.name, type(inner))
            if kind is not type(inner):
                raise PatternError(f"'{inner.name}' is bound as {kind.__name__} and {type(inner).__name__}")
        if isinstance(inner, Op):
            if inner.domain == IR_DOMAIN:
                raise PatternError(f"{'|'.join(inner.ops)} of domain {IR_DOMAIN} is no operator")
            if any(isinstance(t, Rest) for t in inner.inputs[:-1]):
                raise PatternError(f"rest() must be the last input of {'|'.join(inner.ops)}")
            if inner.commutative and len(inner.inputs) < 2:
                raise PatternError(f"{'|'.join(inner.ops)} needs two inputs to commute")
    unbound = constants - kinds.keys()
    if unbound:
        raise PatternError(f"constants names what the pattern does not bind: {', '.join(sorted(unbound))}")
