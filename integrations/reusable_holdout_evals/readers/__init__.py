"""Readers of the files that evaluation tools write.

Each reader returns a table of scores by id, which a guard with a metric of judged scores can be asked about. No reader
imports the tool whose files it reads.
"""

from reusable_holdout_evals.readers.inspect_logs import read_inspect
from reusable_holdout_evals.readers.lm_eval_samples import read_lm_eval
from reusable_holdout_evals.readers.mlflow_results import read_mlflow
from reusable_holdout_evals.readers.score_files import read_scores

__all__ = ["read_inspect", "read_lm_eval", "read_mlflow", "read_scores"]
