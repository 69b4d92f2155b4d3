"""Texts of pages: dates, metrics, limits and changes in words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from markupsafe import Markup

from reusable_holdout import Metric
from reusable_holdout.plan import ALLOWANCE
from reusable_holdout.scales import decimals_of
from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.rules import Rules
from reusable_holdout_leaderboard.store.records import Event, Standing, Status

__all__ = [
    "PREDICTED",
    "RULES",
    "Change",
    "MetricText",
    "also_texts",
    "changes_of",
    "limits_of",
    "metric_text",
    "moment",
    "own_limits_of",
    "sentence",
]

_METRICS = {
    "f1": "F1",
    "mae": "Mean absolute error",
    "mse": "Mean squared error",
    "r2": "R²",
    "matthews_corrcoef": "Matthews correlation",
    "rmse": "Root mean squared error",
    "roc_auc": "ROC AUC",
    "roc_auc_ovr": "ROC AUC, one against the rest",
}
PREDICTED = {
    "labels": "the class you predict",
    "probabilities": "its probability, from 0 to 1",
    "scores": "a number; higher means more likely",
    "values": "the value you predict, a number",
}
"""Description of a prediction, for each kind of predictions that a metric may need."""

RULES = {
    "title": "Title",
    "description": "Description",
    "opens_at": "Opens",
    "closes_at": "Closes",
    "submissions_per_day": "Submissions of a team a day (UTC)",
    "submissions_per_team": "Submissions of a team",
    "sign_up": "Sign-up",
    "most_teams": "Largest number of teams",
    "final_picks": "Picks of a team for the final",
    "also": "Other metrics in the final",
}
"""Labels of the rules that can be changed while a competition runs."""


def moment(at: datetime) -> Markup:
    """Return an HTML element with a time in UTC, which a script on the page converts to the visitor's time zone.

    Examples
    --------
    >>> print(moment(datetime(2026, 3, 1, 12, tzinfo=UTC)))
    <time datetime="2026-03-01T12:00:00+00:00">2026-03-01 12:00 UTC</time>
    """
    there = at.astimezone(UTC)
    return Markup('<time datetime="{}">{} UTC</time>').format(there.isoformat(), f"{there:%Y-%m-%d %H:%M}")


def sentence(text: object) -> str:
    """Return text with a capital letter at the beginning and a full stop at the end."""
    said = str(text)
    return said[:1].upper() + said[1:] + ("" if said.endswith((".", "!", "?")) else ".")


# ---- metrics


class MetricText(NamedTuple):
    """A metric with the label and the decimals that pages show."""

    name: str
    label: str
    greater_is_better: bool
    decimals: int


def metric_text(competition: Competition) -> MetricText:
    """Return the ranking metric with the label and the decimals that pages show."""
    return _metric_text(competition.rules.metric, competition.metric)


def also_texts(rules: Rules) -> list[MetricText]:
    """Return the additional metrics of the final standings, with the labels and the decimals that pages show."""
    return [_metric_text(name, metric) for name, metric in zip(rules.also, rules.made_also(), strict=True)]


def _metric_text(name: str, metric: Metric) -> MetricText:
    label = _METRICS.get(name) or name.replace("_", " ").capitalize()
    return MetricText(name, label, metric.greater_is_better, decimals_of(metric.upper - metric.lower))


# ---- limits


def limits_of(rules: Rules, status: Status) -> list[tuple[str, str]]:
    """Return the labels and values of the competition's limits."""
    queries = status.queries_asked + status.queries_left
    limits = [
        ("Submissions of all teams together", f"{queries:,}"),
        ("Charges of each team", f"{status.charges:,}"),
    ]
    shown = {"submissions_per_day": rules.submissions_per_day, "submissions_per_team": rules.most_submissions}
    if status.has_fresh_labels:
        shown["final_picks"] = rules.final_picks
    shown["most_teams"] = rules.most_teams
    limits += [(RULES[name], f"{value:,}") for name, value in shown.items() if value is not None]
    dates = {"opens_at": rules.opens_at, "closes_at": rules.closes_at}
    return limits + [(RULES[name], moment(value)) for name, value in dates.items() if value is not None]


def own_limits_of(rules: Rules, own: Standing | None) -> list[tuple[str, str]]:
    """Return the labels of a team's limits, with the amounts that it has used."""
    submissions, charges = (0, 0) if own is None else (own.submissions, own.charges)
    limits = [("Submissions", f"{submissions:,} of {rules.most_submissions:,}")]
    if charges is not None:
        limits.append(("Charges", f"{charges:,} of {rules.charges or ALLOWANCE:,}"))
    if rules.submissions_per_day is not None:
        limits.append(("Most a day", f"{rules.submissions_per_day:,}"))
    return limits


# ---- changes


class Change(NamedTuple):
    """A change of the competition, as a page shows it.

    Attributes
    ----------
    at : datetime
    name : str
        Label of the rule or other thing that was changed.
    before, after : str
        Value before and after the change. Empty if the values are too long for a line.
    text : str
        Earlier text, if the text is long.
    """

    at: datetime
    name: str
    before: str
    after: str
    text: str = ""


def changes_of(events: Sequence[Event]) -> list[Change]:
    """Return the changes that events record, the newest first."""
    known = ((one.at, one.kind, one.detail) for one in reversed(events) if one.detail is not None)
    found = (_change(*one) for one in known)
    return [one for one in found if one is not None]


def _change(at: datetime, kind: str, detail: dict[str, Any]) -> Change | None:
    if kind == "rules":
        return _change_of_rule(at, detail)
    if kind == "restore":
        words = Markup("the backup of {}, with {} answers; later answers are forgotten")
        backup = moment(datetime.fromisoformat(detail["backup"]))
        return Change(at, "Restored", "", words.format(backup, f"{detail['answers']:,}"))
    if kind == "attach":
        return Change(at, "File added", "", f"{detail['file']}, {detail['bytes']:,} bytes")
    if kind == "rename":
        return Change(at, "Team renamed", detail["from"], detail["to"])
    others = {"detach": "File removed", "disqualify": "Disqualified", "reinstate": "Reinstated"}
    if kind not in others:
        return None
    return Change(at, others[kind], "", detail.get("file") or detail.get("team", ""))


def _change_of_rule(at: datetime, detail: dict[str, Any]) -> Change:
    name = detail["rule"]
    if name == "description":
        return Change(at, RULES[name], "", "", detail["from"])
    before, after = (_value(name, detail[end]) for end in ("from", "to"))
    return Change(at, RULES.get(name, name), before, after)


def _value(name: str, value: Any) -> str:
    if value is None:
        return "none"
    if name.endswith("_at"):
        return moment(datetime.fromisoformat(value))
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)
