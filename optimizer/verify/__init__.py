"""Checking results: every rewrite where it happens, the whole model in two engines, and what to undo."""

from optimizer.verify.bisect import SavedModelCheck, find_culprit, first_wrong, roll_back, undo_culprit
from optimizer.verify.compare import Comparison, check_models
from optimizer.verify.engines import EngineError, NumPy, OnnxRuntime
from optimizer.verify.feeds import FeedMaker, NoFeed, make_feeds
from optimizer.verify.local import LocalCheck
from optimizer.verify.metrics import OutputError, compare_arrays, compare_values
from optimizer.verify.race import ModelRace
from optimizer.verify.reference import Case, Reference
from optimizer.verify.sizes import FoundSizes, find_sizes
from optimizer.verify.tolerance import Tolerance, network_tolerance, node_tolerance
from optimizer.verify.upstream import relied_on
from optimizer.verify.values import FILLS
from optimizer.verify.verification import Focus, OutputReport, Verification
from optimizer.verify.whole import Judge, verify_files

__all__ = [
    "FILLS",
    "Case",
    "Comparison",
    "EngineError",
    "FeedMaker",
    "Focus",
    "FoundSizes",
    "Judge",
    "LocalCheck",
    "ModelRace",
    "NoFeed",
    "NumPy",
    "OnnxRuntime",
    "OutputError",
    "OutputReport",
    "Reference",
    "SavedModelCheck",
    "Tolerance",
    "Verification",
    "check_models",
    "compare_arrays",
    "compare_values",
    "find_culprit",
    "find_sizes",
    "first_wrong",
    "make_feeds",
    "network_tolerance",
    "node_tolerance",
    "relied_on",
    "roll_back",
    "undo_culprit",
    "verify_files",
]
