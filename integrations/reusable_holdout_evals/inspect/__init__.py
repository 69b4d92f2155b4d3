"""Evaluations by Inspect on a private set of samples: the log has a guard's answers, and no sample's score."""

from reusable_holdout.errors import of_extra

with of_extra("inspect", "reusable_holdout_evals.inspect"):
    import inspect_ai  # noqa: F401 - the modules below need it

from reusable_holdout_evals.inspect.task import guarded_task, new_guard
from reusable_holdout_evals.redaction import redact_inspect as redact

__all__ = ["guarded_task", "new_guard", "redact"]
