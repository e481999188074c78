"""What is known about values without running the model: types, shapes, symbolic dimensions, contents."""

from optimizer.analysis import ops as _ops  # declares the inference rules
from optimizer.analysis.atoms import Atom
from optimizer.analysis.computed import broadcast, maximum, minimum, scaled
from optimizer.analysis.context import Inconsistent, InferContext, fresh_shape, normal_axis
from optimizer.analysis.dims import Dim, DimLike
from optimizer.analysis.elements import Element, Elements, Ratio
from optimizer.analysis.fact import UNKNOWN, Fact, Shape, conflict, meet
from optimizer.analysis.facts import Facts
from optimizer.analysis.ranges import SizeRange
from optimizer.analysis.registry import infer, rule_for
from optimizer.analysis.shapes import broadcast_shapes, broadcasts_to, product, same_shape

__all__ = [
    "UNKNOWN",
    "Atom",
    "Dim",
    "DimLike",
    "Element",
    "Elements",
    "Fact",
    "Facts",
    "Inconsistent",
    "InferContext",
    "Ratio",
    "Shape",
    "SizeRange",
    "broadcast",
    "broadcast_shapes",
    "broadcasts_to",
    "conflict",
    "fresh_shape",
    "infer",
    "maximum",
    "meet",
    "minimum",
    "normal_axis",
    "product",
    "rule_for",
    "same_shape",
    "scaled",
]

del _ops
