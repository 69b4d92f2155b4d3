"""Evaluations by lm-evaluation-harness on a private set of documents.

The developer gets the guard's answer about all documents, and no document's score. The harness is not imported; only
its files are read.
"""

from reusable_holdout_evals.redaction import redact_lm_eval as redact
from reusable_holdout_evals.redaction import samples_of

__all__ = ["redact", "samples_of"]
