"""Trying a rule on graphs grown from its own pattern, to find one that it gets wrong."""

from optimizer.verify.adversary.grow import Barren, Grower, Growth
from optimizer.verify.adversary.mutate import Mutant, Seed
from optimizer.verify.adversary.trials import Counterexample, RuleTrials, try_rule

__all__ = ["Barren", "Counterexample", "Grower", "Growth", "Mutant", "RuleTrials", "Seed", "try_rule"]
