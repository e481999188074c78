"""One run: load, optimize, write to a temporary file, verify what was written, publish.

Where the verification fails, the journal is bisected, the guilty rewrite undone and excluded, and
the run goes on from there.
"""

from optimizer.workflow.checks import VerificationFailed
from optimizer.workflow.preparation import Catalogue
from optimizer.workflow.single_run import find_first_wrong, run

__all__ = ["Catalogue", "VerificationFailed", "find_first_wrong", "run"]
