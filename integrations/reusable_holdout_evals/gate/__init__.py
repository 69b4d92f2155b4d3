"""A gate for releases: it tells only whether the new model is better than the old one by a named improvement."""

from reusable_holdout_evals.gate.gate import Gate, Possible, make_gate, open_gate, what_is_possible
from reusable_holdout_evals.gate.verdict import NoWorse, Verdict, ask_gate

__all__ = ["Gate", "NoWorse", "Possible", "Verdict", "ask_gate", "make_gate", "open_gate", "what_is_possible"]
