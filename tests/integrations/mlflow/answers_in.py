"""What a run has of a guard's answers."""

from collections import Counter

METRICS = ["answer", "prior", "gap", "low", "high", "charged", "charges_left", "queries_left", "nats"]


def check_complete(client, run_id, history):
    """Every answer is there, with every number, once."""
    for name in METRICS:
        logged = client.get_metric_history(run_id, f"holdout_{name}")
        assert Counter(metric.step for metric in logged) == Counter(history["query"].tolist()), name
    answers = {metric.step: metric.value for metric in client.get_metric_history(run_id, "holdout_answer")}
    assert answers == dict(zip(history["query"], history["value"], strict=True))
