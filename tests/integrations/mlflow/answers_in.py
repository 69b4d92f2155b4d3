"""A guard's answers in a run."""

from collections import Counter

__all__ = ["METRICS", "by_step", "check_complete"]

METRICS = ["answer", "prior", "gap", "low", "high", "charged", "charges_left", "queries_left", "nats"]
_COLUMNS = {"answer": "value"}  # of the history, where the name is another


def by_step(client, run_id, name):
    return {metric.step: metric.value for metric in client.get_metric_history(run_id, name)}


def check_complete(client, run_id, history):
    """Check that every answer of a history is there, with every number, once."""
    for name in METRICS:
        logged = client.get_metric_history(run_id, f"holdout_{name}")
        assert Counter(metric.step for metric in logged) == Counter(history["query"].tolist()), name
        column = _COLUMNS.get(name, name)
        if column in history:
            expected = dict(zip(history["query"], history[column].astype(float), strict=True))
            assert by_step(client, run_id, f"holdout_{name}") == expected
