"""Rules of a competition: public, checked once, kept as JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, Literal, Self

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import Metric
from reusable_holdout.plan import round_up
from reusable_holdout_leaderboard.metrics import also_of, metric_of

__all__ = ["CHANGEABLE", "WORDS", "Class", "Rules"]

Class = int | str
_POLICIES = ("claims", "ladder", "thresholdout")
_SIGN_UPS = ("closed", "code", "open")
_MOST_PICKS = 10
_TOLERANCE, _STEP, _CHARGES = 0.05, 0.02, 50  # where nothing is named; the first two of the metric's range
_CLAIMS_OF_ONE = 100  # teams that can send all that are declared, if nothing is named
_CLAIMED_ERROR = 0.005  # of the range: of a validation score from some ten thousand rows
WORDS = frozenset({"title", "description"})
CHANGEABLE = WORDS | {
    *("opens_at", "closes_at", "sign_up", "most_teams", "final_picks", "also"),
    *("submissions_per_day", "submissions_per_team", "charges_per_team"),
}
_ELSEWHERE = {"blind": "use unblind", "queries": "a rotation may name others"}
_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,46}[a-z0-9])?")
_MOST_TEXT = {"title": 200, "description": 100_000}


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Rules of one competition.

    All of it is public. Nothing is checked before :meth:`check`, which :class:`Competition` calls.

    Parameters
    ----------
    slug : str
        Name in URLs and folders: small letters, digits and hyphens.
    title, description : str
        What people read; the description is Markdown, without HTML and images.
    metric : str
        A name of the catalogue.
    metric_parameters : mapping of str to float
        Bounds of the targets, for "mae", "mse", "rmse", "r2" and "quantile_loss"; the clip of "log_loss". Targets
        outside the bounds are moved to them, and nothing says so.
    also : tuple of str
        Other metrics of the catalogue that the final standings show, of the same predictions; see :func:`also_of`.
    policy : {"claims", "ladder", "thresholdout"}
        What a submission is compared with. Claims: the validation score that its team claims, as it must; claims that
        stand are free, one that would lead is measured, and what is wrong is a charge of its team's own, so nobody is
        halted by others. Ladder: its team's best so far, and only a new best is told. Thresholdout: the validation
        score its team claims, else its best so far, else the middle of the metric's range.
    queries : int
        Submissions of all teams together that are answered at most, in each epoch.
    tolerance, charges, threshold, estimate, prior_error : optional
        As for :class:`reusable_holdout.ReusableHoldout`. Claims have neither tolerance nor threshold; `charges` are
        those of each team, 2 if left out, and honest claims are taken to be off by `prior_error`, by default 0.005 of
        the metric's range or one standard error of the labels, whichever is more. Of the others, if none of the first
        three is named, thresholdout has a tolerance of 0.05 of the metric's range, from which the charges follow. A
        ladder has a fixed step, 0.02 of the range or three standard deviations of chance, and 50 charges, for each
        team's first submission is one: so many teams it serves at most, and `most_teams` must not be more. Its
        intervals begin narrow and grow with the charges.
    confidence : float
        Probability that all intervals of an epoch hold together, and with them all that is certified of neighbours.
    id_column : str or None
        Column that names rows; None if a submission's rows are in the order of the labels.
    prediction_columns : tuple of str
        Empty to have them named: "prediction", or for probabilities one for each class, named by it. For probabilities
        of two classes a single column is the probability of the second, in sorted order.
    classes : tuple of int or str, or None
        All classes that may occur; None to take those of the labels. They are public.
    submissions_per_day : int or None
        Of each team, from midnight to midnight UTC.
    submissions_per_team, charges_per_team : int or None
        Of each team, in each epoch. When a team's charges are spent it can send nothing new. On a board of claims no
        team takes more than a hundredth of all `queries` unless a number is named, for claims that stand are free.
    sign_up : {"closed", "code", "open"}
        Who makes teams: the organiser alone; who has the organiser's newest invitation code; or everyone.
    final_picks : int
        Submissions that a team may pick for the final standings, at most 10; its best ones if it picks none.
    most_teams : int or None
        There are no more after these have signed up; an open sign-up needs it.
    blind : bool
        Whether scores are hidden until the competition is unblinded.
    vacuous : bool
        Whether to hold it though its plan says nothing: answers may be off by more than a quarter of the metric's
        range.
    opens_at, closes_at : datetime or None
        With a time zone.

    Examples
    --------
    >>> Rules(slug="adult", title="Adult income", queries=10_000, tolerance=0.05).check().prediction_columns
    ()
    """

    slug: str
    title: str
    description: str = ""
    metric: str = "accuracy"
    metric_parameters: Mapping[str, float] = field(default_factory=dict, hash=False)
    also: tuple[str, ...] = ()
    policy: Literal["claims", "ladder", "thresholdout"] = "claims"
    queries: int = 10_000
    tolerance: float | None = None
    charges: int | None = None
    threshold: float | None = None
    estimate: float | None = None
    prior_error: float | None = None
    confidence: float = 0.95
    id_column: str | None = "id"
    prediction_columns: tuple[str, ...] = ()
    classes: tuple[Class, ...] | None = None
    submissions_per_day: int | None = None
    submissions_per_team: int | None = None
    charges_per_team: int | None = None
    sign_up: Literal["closed", "code", "open"] = "closed"
    most_teams: int | None = None
    final_picks: int = 1
    blind: bool = False
    vacuous: bool = False
    opens_at: datetime | None = None
    closes_at: datetime | None = None

    def check(self) -> Self:
        """Refuse rules that cannot be kept; return these.

        Raises
        ------
        InputError
            Naming the rule.
        """
        self._check_words()
        self._check_numbers()
        self._check_teams()
        self._check_columns()
        self._check_dates()
        self.made_also()
        return self

    def made_metric(self) -> Metric:
        """Metric of the competition.

        Raises
        ------
        InputError
            If there is none of this name, or its parameters do not fit.
        """
        return metric_of(self.metric, self.metric_parameters)

    def made_also(self) -> tuple[Metric, ...]:
        """Metrics that the final standings show beside it.

        Raises
        ------
        InputError
            If there is none of a name, or one needs other predictions.
        """
        return also_of(self.also, self.metric, self.metric_parameters)

    @property
    def most_submissions(self) -> int | None:
        """Most submissions of a team in an epoch; None if there is no limit."""
        if self.submissions_per_team is None and self.policy == "claims":
            return max(1, self.queries // _CLAIMS_OF_ONE)
        return self.submissions_per_team

    def plan_wish(self, rows: int) -> dict[str, Any]:
        """What :class:`reusable_holdout.ReusableHoldout` is asked for, given so many labels."""
        guarded = ("policy", "queries", "tolerance", "charges", "threshold")
        names = (*guarded, "estimate", "prior_error", "confidence", "vacuous")
        wish = {name: getattr(self, name) for name in names}
        wish["choices"] = ()  # a board makes none
        if self.policy == "claims":
            return wish | {"prior_error": self._honest_error(rows)}
        if self.tolerance is not None or self.charges is not None or self.threshold is not None:
            return wish
        span = (metric := self.made_metric()).upper - metric.lower
        if self.policy == "thresholdout":
            return wish | {"tolerance": _TOLERANCE * span}
        step = max(_STEP, 3.0 * math.sqrt(0.5 / rows))  # by chance two scores differ by sqrt(1/2n)
        return wish | {"threshold": round_up(step, 2) * span, "charges": min(_CHARGES, self.queries)}

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """Copy of the rules in which some are changed that the guard does not rest on.

        Parameters
        ----------
        changes : mapping of str to object
            As :meth:`from_dict` takes them; None lifts a limit.

        Raises
        ------
        InputError
            If one of them cannot be changed, or to this.
        """
        known = {one.name for one in fields(self)}
        fixed = [name for name in changes if name in known and name not in CHANGEABLE]
        if fixed:
            ways = [f"for {name}, {_ELSEWHERE[name]}" for name in fixed if name in _ELSEWHERE]
            raise InputError(
                f"{', '.join(fixed)} cannot be changed: what the guard has answered rests on it; nothing was changed; "
                + "; ".join([*ways, "make another competition, with another slug and fresh labels"])
                + f"; what can be changed is {', '.join(sorted(CHANGEABLE))}"
            )
        return type(self).from_dict({**self.as_dict(), **changes}).check()

    def _honest_error(self, rows: int) -> float:
        """How far honest claims are taken to be off, of so many labels."""
        if self.prior_error is not None:
            return self.prior_error
        metric = self.made_metric()
        return round_up(max(_CLAIMED_ERROR, 0.5 / math.sqrt(rows)), 2) * (metric.upper - metric.lower)

    def closed_reason(self, now: datetime) -> str:
        """Why nothing is taken at this moment by the dates; empty if it is."""
        if self.opens_at is not None and now < self.opens_at:
            return f"the competition opens at {_shown(self.opens_at)}"
        if self.closes_at is not None and now >= self.closes_at:
            return f"the competition closed at {_shown(self.closes_at)}"
        return ""

    # ---- JSON

    def as_dict(self) -> dict[str, Any]:
        """Rules as JSON can write them."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    def to_json(self) -> str:
        """Canonical JSON."""
        return json.dumps(self.as_dict(), sort_keys=True, allow_nan=False)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Rules from what JSON says; not checked.

        Raises
        ------
        InputError
            If there is a name no rule has, or one is missing.
        """
        values = dict(given)
        unknown = sorted(set(values) - {one.name for one in fields(cls)})
        missing = [name for name in ("slug", "title") if name not in values]
        if unknown or missing:
            raise InputError(
                f"rules must have slug and title, and no names but those of Rules; got {', '.join(unknown) or 'none'} "
                f"unknown and {', '.join(missing) or 'none'} missing"
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
        """Read what :meth:`to_json` wrote; not checked.

        Raises
        ------
        InputError
            If it is something else.
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
                raise InputError(f"{name} must be text of at most {most:,} characters, a title not empty")
        if self.policy not in _POLICIES:
            raise InputError(f"policy must be one of {', '.join(_POLICIES)}; got {self.policy!r}")

    def _check_teams(self) -> None:
        if self.sign_up not in _SIGN_UPS:
            raise InputError(f"sign_up must be one of {', '.join(_SIGN_UPS)}; got {self.sign_up!r}")
        if self.sign_up == "open" and self.most_teams is None:
            raise InputError("an open sign_up needs most_teams, for anyone can make any number; name it")
        served = min(self.charges or _CHARGES, self.queries)
        if self.policy == "ladder" and self.most_teams is not None and self.most_teams > served:
            raise InputError(
                f"a ladder's first answer to each team is a charge, so {served:,} charges serve as many teams; got "
                f'most_teams={self.most_teams:,}; name fewer, or policy="claims", whose teams have charges of their own'
            )
        if self.policy == "claims" and self.charges_per_team is not None:
            raise InputError(
                "of claims charges are each team's own; got charges_per_team; name charges instead"
            )
        if self.final_picks > _MOST_PICKS:
            raise InputError(f"final_picks must be at most {_MOST_PICKS}; got {self.final_picks}")

    def _check_numbers(self) -> None:
        limits = ("submissions_per_day", "submissions_per_team", "charges_per_team")
        for name in ("queries", "final_picks", "charges", "most_teams", *limits):
            value = getattr(self, name)
            if value is None and name not in {"queries", "final_picks"}:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name} must be a whole number, 1 or more; got {value!r}")
        for name in ("tolerance", "threshold", "estimate", "prior_error", "confidence"):
            value = getattr(self, name)
            if value is None and name != "confidence":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise InputError(f"{name} must be a finite number; got {value!r}")
        for name in ("blind", "vacuous"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} must be true or false; got {getattr(self, name)!r}")
        if not isinstance(self.metric_parameters, Mapping):
            raise InputError("metric_parameters must be names with numbers; got something else")

    def _check_columns(self) -> None:
        columns = [*self.prediction_columns, *([] if self.id_column is None else [self.id_column])]
        if not isinstance(self.prediction_columns, tuple) or not all(
            _is_text(name) and name == name.strip() and 0 < len(name) <= 200 for name in columns
        ):
            raise InputError("columns must be text of 1 to 200 characters, without space around it")
        if len(set(columns)) < len(columns):
            raise InputError(f"each column must have a name of its own; got {', '.join(columns)}")
        if self.classes is None:
            return
        kinds = {type(one) for one in self.classes}
        if not isinstance(self.classes, tuple) or kinds not in ({int}, {str}) or len(set(self.classes)) < 2:
            raise InputError("classes must be two or more, all whole numbers or all text, each once")

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
    return "\x00" not in value  # PostgreSQL cannot keep it


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


def _shown(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
