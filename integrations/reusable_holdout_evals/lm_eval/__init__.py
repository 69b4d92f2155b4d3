"""Evaluations by lm-evaluation-harness whose documents are a holdout: a guard's answer, and no document's score.

The harness is not imported; what it wrote is read.
"""

from reusable_holdout_evals.lm_eval.redaction import redact, samples_of

__all__ = ["redact", "samples_of"]
