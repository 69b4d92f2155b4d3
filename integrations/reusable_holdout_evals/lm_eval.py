"""Evaluations by lm-evaluation-harness whose documents are a holdout: a guard's answer, and no document's score.

The harness is not imported: its files are read.
"""

from reusable_holdout_evals.redaction import redact_lm_eval as redact
from reusable_holdout_evals.redaction import samples_of

__all__ = ["redact", "samples_of"]
