"""Evaluations of language models: a release gate on files of scores, and readers of evaluation tools' files."""

from reusable_holdout_evals.readers import read_inspect, read_lm_eval, read_mlflow, read_scores

__all__ = ["read_inspect", "read_lm_eval", "read_mlflow", "read_scores"]
