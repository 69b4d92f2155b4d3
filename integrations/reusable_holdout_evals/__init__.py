"""Evaluations of language models: a gate on score files, and readers of what evaluation tools write."""

from reusable_holdout_evals.readers import read_inspect, read_lm_eval, read_mlflow, read_scores

__all__ = ["read_inspect", "read_lm_eval", "read_mlflow", "read_scores"]
