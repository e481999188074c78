"""ONNX files in and out: the only layer that turns whole models into protobuf messages and back."""

from optimizer.io.data import read_data_sets
from optimizer.io.loader import load
from optimizer.io.opset import FUSED_OPSET, convert_opset, fuse_opset
from optimizer.io.saver import SaveResult, Staged, save, stage
from optimizer.io.text import parse
from optimizer.io.writer import to_proto

__all__ = [
    "FUSED_OPSET",
    "SaveResult",
    "Staged",
    "convert_opset",
    "fuse_opset",
    "load",
    "parse",
    "read_data_sets",
    "save",
    "stage",
    "to_proto",
]
