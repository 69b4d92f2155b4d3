"""The rules of a competition. They are public, and stored as JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, Self

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import Metric
from reusable_holdout_leaderboard.metrics import also_of, metric_of

__all__ = ["CHANGEABLE", "SIGN_UPS", "WORDS", "Class", "Rules"]

Class = int | str
SIGN_UPS = ("closed", "code", "open")
WORDS = frozenset({"title", "description"})
CHANGEABLE = WORDS | {
    *("opens_at", "closes_at", "sign_up", "most_teams", "final_picks", "also"),
    *("submissions_per_day", "submissions_per_team"),
}
_MOST_PICKS = 10
_SHARE_OF_ONE = 100  # by default, a team may send one hundredth of all queries
_LIMITS = ("submissions_per_day", "submissions_per_team", "charges", "most_teams")
_ELSEWHERE = {"blind": "use unblind", "queries": "set another number in a rotation"}
_EARLIER = {"policy", "tolerance", "threshold", "charges_per_team"}
_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,46}[a-z0-9])?")
_MOST_TEXT = {"title": 200, "description": 100_000}


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules of one competition.

    With each submission, a team claims a score, which it measured on rows of its own. A claim that the holdout does not
    contradict is certified and costs nothing. A claim clearly above the lead is measured. A wrong claim costs the team
    one of its own charges. So no team can use up the budget of the others.

    All rules are public. They are not checked before :meth:`check`, which :class:`Competition` calls.

    Parameters
    ----------
    slug : str
        Name in URLs and folders: small letters, digits and hyphens.
    title, description : str
        Texts for people. The description is Markdown, without HTML and images.
    metric : str
        Name of a metric in the catalogue.
    metric_parameters : mapping of str to float
        Bounds of the targets, for "mae", "mse", "rmse", "r2" and "quantile_loss", or the clip of "log_loss". Targets
        outside the bounds are moved to the nearest bound, without a warning.
    also : tuple of str
        Additional metrics that the final standings show for the same predictions; see :func:`also_of`.
    queries : int
        Number of submissions of all teams together that are answered in each epoch.
    charges : int or None
        Number of charges of each team. By default 2.
    estimate : float or None
        Expected score, in the metric's unit. Intervals are narrowest there.
    prior_error : float or None
        Expected error of honest claims, in the metric's unit. By default, it is 0.005 of the metric's range, or
        0.5 / sqrt(rows) of the range if that is more.
    confidence : float
        Probability that all intervals and certified comparisons of an epoch hold at the same time.
    id_column : str or None
        Column that identifies rows. None if the rows of a submission have the order of the labels.
    prediction_columns : tuple of str
        Names of the columns of predictions. If there are none, the default names are used: "prediction", or for
        probabilities the names of the classes. If there are two classes, a single column may hold the probability of
        the second class, in sorted order.
    classes : tuple of int or str, or None
        All classes that may occur. None to use the classes of the labels. The classes are public.
    submissions_per_day : int or None
        Largest number of submissions of each team from midnight to midnight UTC.
    submissions_per_team : int or None
        Largest number of submissions of each team in each epoch. By default, a hundredth of `queries`.
    sign_up : {"closed", "code", "open"}
        Who may create teams: only the organiser, holders of the newest invitation code, or everyone.
    most_teams : int or None
        Largest number of teams. An open sign-up needs this limit.
    final_picks : int
        Number of submissions that a team may pick for the final standings, at most 10. If a team picks none, its best
        submissions are entered.
    blind : bool
        True to hide all scores until the organiser unblinds the competition.
    vacuous : bool
        True to allow a competition whose answers may be off by more than a quarter of the metric's range.
    opens_at, closes_at : datetime or None
        Times, with a time zone, at which the competition opens and closes.

    Examples
    --------
    >>> Rules(slug="adult", title="Adult income").check().most_submissions
    100
    """

    slug: str
    title: str
    description: str = ""
    metric: str = "accuracy"
    metric_parameters: Mapping[str, float] = field(default_factory=dict, hash=False)
    also: tuple[str, ...] = ()
    queries: int = 10_000
    charges: int | None = None
    estimate: float | None = None
    prior_error: float | None = None
    confidence: float = 0.95
    id_column: str | None = "id"
    prediction_columns: tuple[str, ...] = ()
    classes: tuple[Class, ...] | None = None
    submissions_per_day: int | None = None
    submissions_per_team: int | None = None
    sign_up: Literal["closed", "code", "open"] = "closed"
    most_teams: int | None = None
    final_picks: int = 1
    blind: bool = False
    vacuous: bool = False
    opens_at: datetime | None = None
    closes_at: datetime | None = None

    def check(self) -> Self:
        """Check the rules, and return them.

        Raises
        ------
        InputError
            If a rule is invalid. The message names it.
        """
        self._check_words()
        self._check_whole_numbers()
        self._check_values()
        self._check_columns()
        self._check_dates()
        self.made_also()
        return self

    def made_metric(self) -> Metric:
        """Return the metric by which teams are ranked.

        Raises
        ------
        InputError
            If there is no such metric, or its parameters do not fit.
        """
        return metric_of(self.metric, self.metric_parameters)

    def made_also(self) -> tuple[Metric, ...]:
        """Return the additional metrics of the final standings.

        Raises
        ------
        InputError
            If there is no such metric, or a metric needs another kind of predictions than the ranking metric.
        """
        return also_of(self.also, self.metric, self.metric_parameters)

    @cached_property
    def most_submissions(self) -> int:
        """Largest number of submissions of each team in an epoch."""
        if self.submissions_per_team is not None:
            return self.submissions_per_team
        return max(1, self.queries // _SHARE_OF_ONE)

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """Return a checked copy with some rules changed. Only rules that do not affect the guard can be changed.

        Parameters
        ----------
        changes : mapping of str to object
            New values by the names of rules, in the form that :meth:`from_dict` reads. None removes a limit.

        Raises
        ------
        InputError
            If a rule cannot be changed at all, or not to this value.
        """
        known = {one.name for one in fields(self)}
        fixed = [name for name in changes if name in known and name not in CHANGEABLE]
        if fixed:
            ways = [f"for {name}, {_ELSEWHERE[name]}" for name in fixed if name in _ELSEWHERE]
            raise InputError(
                f"{', '.join(fixed)} cannot be changed: the guard's answers depend on it; nothing was changed; "
                + "; ".join([*ways, "make another competition, with another slug and fresh labels"])
                + f"; these can be changed: {', '.join(sorted(CHANGEABLE))}"
            )
        try:
            return type(self).from_dict({**self.as_dict(), **changes}).check()
        except InputError as error:
            raise InputError(f"{error}; nothing was changed") from None

    # ---- JSON

    def as_dict(self) -> dict[str, Any]:
        """Return the rules as a dictionary of JSON values."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    def to_json(self) -> str:
        """Return the rules as JSON text. Equal rules give equal text."""
        return json.dumps(self.as_dict(), sort_keys=True, allow_nan=False)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Return rules from a dictionary of JSON values. The rules are not checked.

        Raises
        ------
        InputError
            If a name is unknown or missing.
        """
        values = dict(given)
        earlier = sorted(_EARLIER & values.keys())
        if earlier:
            raise InputError(
                f"rules must not name {', '.join(earlier)}: these belong to earlier versions, and every board now "
                "compares a submission with the score that its team claims; leave them out"
            )
        unknown = sorted(set(values) - {one.name for one in fields(cls)})
        missing = [name for name in ("slug", "title") if name not in values]
        if unknown or missing:
            raise InputError(
                f"rules must have slug and title, and only names that Rules has; unknown: "
                f"{', '.join(unknown) or 'none'}; missing: {', '.join(missing) or 'none'}"
            )
        for name in ("prediction_columns", "classes", "also"):
            if isinstance(values.get(name), list):
                values[name] = tuple(values[name])
        for name in ("opens_at", "closes_at"):
            if isinstance(values.get(name), str):
                values[name] = _moment(values[name], name)
        return cls(**values)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return rules from the JSON text that :meth:`to_json` returned. The rules are not checked.

        Raises
        ------
        InputError
            If the text is not a JSON object, or has an unknown name, or lacks the slug or the title.
        """
        try:
            given = json.loads(text)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise InputError("rules must be a JSON object; got something else")
        return cls.from_dict(given)

    # ---- checks

    def _check_words(self) -> None:
        if not isinstance(self.slug, str) or not _SLUG.fullmatch(self.slug):
            raise InputError(
                "slug must be 1 to 48 small letters, digits and hyphens, a letter or digit first and last; "
                f"got {self.slug!r}"
            )
        for name, most in _MOST_TEXT.items():
            text = getattr(self, name)
            if not _is_text(text) or len(text) > most or (name == "title" and not text.strip()):
                raise InputError(f"{name} must be text of at most {most:,} characters; a title is not empty")
        if self.sign_up not in SIGN_UPS:
            raise InputError(f"sign_up must be one of {', '.join(SIGN_UPS)}; got {self.sign_up!r}")
        if self.sign_up == "open" and self.most_teams is None:
            raise InputError("an open sign_up needs most_teams, because anyone can make many teams; name it")

    def _check_whole_numbers(self) -> None:
        for name in ("queries", "final_picks", *_LIMITS):
            value = getattr(self, name)
            if value is None and name in _LIMITS:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name} must be a whole number, 1 or more; got {value!r}")
        if self.final_picks > _MOST_PICKS:
            raise InputError(f"final_picks must be at most {_MOST_PICKS}; got {self.final_picks}")

    def _check_values(self) -> None:
        for name in ("estimate", "prior_error", "confidence"):
            value = getattr(self, name)
            if value is None and name != "confidence":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise InputError(f"{name} must be a finite number; got {value!r}")
        for name in ("blind", "vacuous"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} must be true or false; got {getattr(self, name)!r}")
        if not isinstance(self.metric_parameters, Mapping):
            raise InputError("metric_parameters must map names to numbers; got something else")

    def _check_columns(self) -> None:
        columns = [*self.prediction_columns, *([] if self.id_column is None else [self.id_column])]
        if not isinstance(self.prediction_columns, tuple) or not all(
            _is_text(name) and name == name.strip() and 0 < len(name) <= 200 for name in columns
        ):
            raise InputError("a column's name must have 1 to 200 characters, without space before or after")
        if len(set(columns)) < len(columns):
            raise InputError(f"each column must have a name of its own; got {', '.join(columns)}")
        if self.classes is None:
            return
        kinds = {type(one) for one in self.classes}
        if not isinstance(self.classes, tuple) or kinds not in ({int}, {str}) or len(set(self.classes)) < 2:
            raise InputError("classes must be two or more, all whole numbers or all text, and none twice")

    def _check_dates(self) -> None:
        for name in ("opens_at", "closes_at"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, datetime) or value.tzinfo is None):
                raise InputError(f"{name} must be a date and time with a time zone; got {value!r}")
        if self.opens_at is not None and self.closes_at is not None and self.opens_at >= self.closes_at:
            raise InputError("opens_at must be before closes_at; it is not")


def _is_text(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in value  # PostgreSQL cannot store it


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def _moment(text: str, name: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{name} must be a date and time in ISO 8601; got {text!r}") from None
