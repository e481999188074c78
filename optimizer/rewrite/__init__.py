"""The rewriting engine: patterns, rules, staged edits, driver, journal, pipelines. Knows no rewrite."""

from optimizer.rewrite.context import (
    ApplicationCheck,
    Context,
    Race,
    Rejected,
    RuleStats,
    Settings,
    anchor_of,
)
from optimizer.rewrite.driver import Driver, Outcome, RuleIndex, StopReason
from optimizer.rewrite.exactness import FP_LEVELS, Exactness
from optimizer.rewrite.explain import Explainer
from optimizer.rewrite.extensions import extensions
from optimizer.rewrite.failure import RuleFailed
from optimizer.rewrite.function_pass import FunctionPass
from optimizer.rewrite.instruments import Instrument, PrintAfter, TimePasses
from optimizer.rewrite.journal import Application, Journal
from optimizer.rewrite.log import RewriteLog, read_log
from optimizer.rewrite.match import Match
from optimizer.rewrite.pattern import P, PatternError
from optimizer.rewrite.pipeline import Group, ModelPass, Pass, Pipeline, RulePass, ScopePass, pass_of
from optimizer.rewrite.rewriter import Rewriter
from optimizer.rewrite.rule import (
    Declared,
    GraphPass,
    Refusal,
    Registry,
    Rule,
    default_registry,
    graph_optimizer,
)

__all__ = [
    "FP_LEVELS",
    "Application",
    "ApplicationCheck",
    "Context",
    "Declared",
    "Driver",
    "Exactness",
    "Explainer",
    "FunctionPass",
    "GraphPass",
    "Group",
    "Instrument",
    "Journal",
    "Match",
    "ModelPass",
    "Outcome",
    "P",
    "Pass",
    "PatternError",
    "Pipeline",
    "PrintAfter",
    "Race",
    "Refusal",
    "Registry",
    "Rejected",
    "RewriteLog",
    "Rewriter",
    "Rule",
    "RuleFailed",
    "RuleIndex",
    "RulePass",
    "RuleStats",
    "ScopePass",
    "Settings",
    "StopReason",
    "TimePasses",
    "anchor_of",
    "default_registry",
    "extensions",
    "graph_optimizer",
    "pass_of",
    "read_log",
]
