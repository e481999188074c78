"""The graph: nodes, values, types, lazy constants. Knows no file format and no operator."""

from optimizer.ir.errors import InvalidGraph, InvalidModel, OptimizerError, StorageError, UsageError
from optimizer.ir.graph import Change, Graph, Listener
from optimizer.ir.model import Function, Model
from optimizer.ir.node import (
    IR_DOMAIN,
    Attribute,
    AttributeKind,
    Node,
    Origin,
    SparseTensor,
    Use,
    Value,
    ValueInfo,
    attributes_of,
)
from optimizer.ir.queries import Role
from optimizer.ir.tensor import Tensor
from optimizer.ir.types import (
    DimDecl,
    DType,
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    ShapeDecl,
    TensorType,
    ValueType,
)
from optimizer.ir.verify import verify_graph

__all__ = [
    "IR_DOMAIN",
    "Attribute",
    "AttributeKind",
    "Change",
    "DType",
    "DimDecl",
    "Function",
    "Graph",
    "InvalidGraph",
    "InvalidModel",
    "Listener",
    "MapType",
    "Model",
    "Node",
    "OpaqueType",
    "OptimizerError",
    "OptionalType",
    "Origin",
    "Role",
    "SequenceType",
    "ShapeDecl",
    "SparseTensor",
    "StorageError",
    "Tensor",
    "TensorType",
    "UsageError",
    "Use",
    "Value",
    "ValueInfo",
    "ValueType",
    "attributes_of",
    "verify_graph",
]
