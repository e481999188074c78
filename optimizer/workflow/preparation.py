"""Before the first rewrite: the model as the options want it, the settings, the pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from optimizer.analysis.specialize import specialize
from optimizer.io import convert_opset, fuse_opset, load
from optimizer.ir import Model, UsageError
from optimizer.options import Options, Source
from optimizer.report import ModelStats
from optimizer.rewrite import Context, Declared, Pass, Pipeline, Settings, default_registry


class Catalogue(Protocol):
    """Where the passes come from: the module ``passes.pipelines``."""

    PASSES: Mapping[str, tuple[Pass, ...]]

    def passes_of(self, name: str) -> tuple[Pass, ...]:
        """What a name stands for; ``UsageError`` where it is nothing."""
        ...

    def default_pipeline(self, extra_rules: Iterable[Declared], skip: Iterable[str]) -> Pipeline:
        """The pipeline that runs to a fixpoint."""
        ...

    def named_pipeline(self, names: Sequence[str], extra_rules: Iterable[Declared]) -> Pipeline:
        """These passes, once each, in this order."""
        ...


def load_source(source: Source, options: Options) -> Model:
    """The model as it was given: what the result is compared with."""
    return load(source, freeze_initializers=options.freeze_initializers)


def prepare(model: Model, source: Source, options: Options) -> Model:
    """The loaded model at the opset and with the sizes that are asked for; changes ``model``.

    Raises:
        UsageError: it cannot be brought to the opset, or has no such input or dim.
    """
    if options.opset == "fused":
        model = _with_fused_operators(model, source, options)
    elif isinstance(options.opset, int):
        model = convert_opset(model, options.opset)
    specialize(model, options.input_shapes, options.sizes, options.ranges)
    return model


def _with_fused_operators(model: Model, source: Source, options: Options) -> Model:
    """The model at the opset of the fused operators, or as it is where that cannot be."""
    try:
        return fuse_opset(model)
    except UsageError as reason:
        # The attempt may have changed the model.
        model = load_source(source, options)
        return replace(model, warnings=[*model.warnings, f"kept its opset: {reason}"])


def settings_of(options: Options, before: ModelStats) -> Settings:
    """What rules may ask about the run; ``before`` sets how far the file may grow by default."""
    growth = options.size_limit
    if growth is not None and growth < 0:
        size = before.constant_bytes if before.file_bytes is None else before.file_bytes
        growth = (1 << 20) + size // 10
    return Settings(
        fp=options.fp,
        objective=options.optimize_for,
        target=options.target,
        layout=options.layout,
        growth=growth,
        keep=tuple(options.keep),
        keep_functions=tuple(options.keep_functions),
        dims=options.ranges,
        nonzero_dims=options.assume_nonzero_dims,
    )


def pipeline_of(ctx: Context, options: Options, extra: Sequence[Declared], catalogue: Catalogue) -> Pipeline:
    """The passes to run, ``extra`` among them; rules to skip are banned for the run.

    Raises:
        UsageError: a name in ``options.passes`` or ``options.skip`` stands for nothing.
    """
    ctx.banned |= {item.name for item in (*default_registry, *extra)} & set(options.skip)
    ctx.forgiven = frozenset(item.name for item in default_registry) - {item.name for item in extra}
    skip = [name for name in options.skip if name not in ctx.banned or name in catalogue.PASSES]
    if options.passes is None:
        return catalogue.default_pipeline(extra, skip)
    return catalogue.named_pipeline([n for n in options.passes if n not in skip], extra)
