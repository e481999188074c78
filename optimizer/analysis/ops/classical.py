"""Operators of ai.onnx.ml."""

from __future__ import annotations

from optimizer.analysis.context import InferContext
from optimizer.analysis.dims import Dim
from optimizer.analysis.fact import UNKNOWN, Fact, Shape
from optimizer.analysis.registry import infer
from optimizer.ir import DType, MapType, SequenceType, TensorType

__all__: list[str] = []

ML = "ai.onnx.ml"


@infer("Scaler", "Normalizer", domain=ML)
def to_float(context: InferContext) -> Fact:
    """Floats whatever comes in."""
    return (context.inputs[0] or UNKNOWN).of_dtype(DType.FLOAT)


@infer("Imputer", "Binarizer", domain=ML)
def same_as_input(context: InferContext) -> Fact:
    """Output of the type and shape of the input."""
    return (context.inputs[0] or UNKNOWN).without_value()


@infer("TreeEnsembleRegressor", "LinearRegressor", "SVMRegressor", domain=ML)
def regressor(context: InferContext) -> Fact:
    """[rows, targets] for an input of rank 2."""
    targets = context.attr("n_targets", context.attr("targets", 1))
    return Fact(DType.FLOAT, _rows(context, Dim.of(targets)))


@infer("TreeEnsembleClassifier", "LinearClassifier", "SVMClassifier", domain=ML)
def classifier(context: InferContext) -> list[Fact]:
    """A label for each row, and scores, one for each class where there are more than two."""
    names = ("classlabels_strings", "classlabels_int64s", "classlabels_ints")
    labels = {name: context.attr(name) for name in names}
    texts = bool(labels["classlabels_strings"])
    classes = max(len(given) for given in labels.values() if given) if any(labels.values()) else 0
    scores = (
        Dim.of(classes) if classes > 2 and context.node.op_type != "SVMClassifier" else Dim.fresh("scores")
    )
    label = Fact(DType.STRING if texts else DType.INT64, _rows(context, None))
    return [label, Fact(DType.FLOAT, _rows(context, scores))]


def _rows(context: InferContext, columns: Dim | None) -> Shape | None:
    shape = context.shape(0)
    if shape is None or len(shape) != 2:
        return None
    return shape[:1] if columns is None else (shape[0], columns)


@infer("ZipMap", domain=ML)
def zip_map(context: InferContext) -> Fact:
    """A sequence of maps from class to score."""
    key = DType.STRING if context.attr("classlabels_strings") else DType.INT64
    return Fact(type=SequenceType(MapType(key, TensorType(DType.FLOAT, ()))))


@infer("OneHotEncoder", domain=ML)
def one_hot_encoder(context: InferContext) -> Fact:
    """A new last axis with one entry for each category."""
    shape = context.shape(0)
    count = len(context.attr("cats_int64s") or context.attr("cats_strings") or ())
    return Fact(DType.FLOAT, None if shape is None else (*shape, Dim.of(count)))


@infer("FeatureVectorizer", domain=ML)
def feature_vectorizer(context: InferContext) -> Fact:
    """The inputs side by side."""
    shape = context.shape(0)
    total = Dim.of(sum(context.attr("inputdimensions", ())))
    return Fact(DType.FLOAT, None if shape is None or len(shape) != 2 else (shape[0], total))


@infer("TreeEnsemble", domain=ML)
def tree_ensemble(context: InferContext) -> Fact:
    return Fact(context.dtype(0), _rows(context, Dim.of(context.attr("n_targets", 1))))


@infer("LabelEncoder", domain=ML)
def label_encoder(context: InferContext) -> Fact:
    """The type of the values it maps to; before version 2, texts become numbers and numbers texts."""
    fact = (context.inputs[0] or UNKNOWN).without_value()
    types = {"values_strings": DType.STRING, "values_int64s": DType.INT64, "values_floats": DType.FLOAT}
    for name, dtype in types.items():
        if context.attr(name) is not None:
            return fact.of_dtype(dtype)
    values = context.attr("values_tensor")
    if values is not None:
        return fact.of_dtype(values.dtype)
    return fact.of_dtype(DType.INT64 if fact.dtype is DType.STRING else DType.STRING)


@infer("CategoryMapper", domain=ML)
def category_mapper(context: InferContext) -> Fact:
    """Texts become numbers and numbers texts."""
    fact = (context.inputs[0] or UNKNOWN).without_value()
    return fact.of_dtype(DType.INT64 if fact.dtype is DType.STRING else DType.STRING)


@infer("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(context: InferContext) -> Fact:
    """Columns of a matrix; a vector becomes a matrix of one row."""
    fact, indices = (context.inputs[0] or UNKNOWN), context.fact(1)
    count = indices.numel if indices is not None else None
    if not fact.shape:
        return Fact(fact.dtype)
    lead = fact.shape[:-1] if len(fact.shape) > 1 else (Dim.of(1),)
    return Fact(fact.dtype, (*lead, count or Dim.fresh("features")))


@infer("DictVectorizer", domain=ML)
def dict_vectorizer(context: InferContext) -> Fact:
    """A row with a column for each entry of the vocabulary."""
    words = context.attr("string_vocabulary") or context.attr("int64_vocabulary") or ()
    kind = (context.inputs[0] or UNKNOWN).type
    value = kind.value if isinstance(kind, MapType) else None
    dtype = value.dtype if isinstance(value, TensorType) else None
    return Fact.tensor(dtype, (1, len(words)))


@infer("CastMap", domain=ML)
def cast_map(context: InferContext) -> Fact:
    """A row of the map's values, as floats, texts or integers."""
    types = {"TO_FLOAT": DType.FLOAT, "TO_STRING": DType.STRING, "TO_INT64": DType.INT64}
    sparse = context.attr("map_form", "DENSE") == "SPARSE"
    columns = Dim.of(context.attr("max_map", 1)) if sparse else Dim.fresh("entries")
    return Fact(types[context.attr("cast_to", "TO_FLOAT")], (Dim.of(1), columns))
