"""The exceptions every layer raises, so that a caller can catch one base class."""

from __future__ import annotations


class OptimizerError(Exception):
    """Base of all errors of this project. Its text is one line a user can act on.

    Attributes:
        exit_code: the process exit code the command line gives for this error.
    """

    exit_code = 3


class InvalidModel(OptimizerError):
    """The model cannot mean anything (cycle, undefined tensor, duplicate producer, bad file)."""


class InvalidGraph(OptimizerError):
    """An invariant of the graph is broken: a fault of a pass or of this project, not of the model."""


class UsageError(OptimizerError):
    """The caller asked for something that does not exist or makes no sense."""

    exit_code = 2


class StorageError(OptimizerError):
    """A file could not be read or written."""

    exit_code = 4
