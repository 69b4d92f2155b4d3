"""A scoring program for Codabench and EvalAI: their leaderboards, and a guard behind them.

::

    python -m reusable_holdout_leaderboard.platforms.codabench --create reference_data --ledger /board  # once
    python -m reusable_holdout_leaderboard.platforms.codabench /app/input /app/output --ledger /board      # the command

Making is apart from scoring on purpose: a worker that lost its folder must fail, and not begin with a new budget. The
folder outlives all containers, and participants' code must not run where it can be read. Where containers can write to
nothing that lasts, the folder can be read-only and the ledger on a PostgreSQL server, whose URL a file holds.

Whose a submission is the platform says, and never the submission: see docs/leaderboard-on-other-platforms.md.
"""

from __future__ import annotations

import argparse
import html
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reusable_holdout.errors import BudgetError, Halted, HoldoutError, InputError, LedgerError
from reusable_holdout.guard.boundary import sealed
from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.competition.place import Place
from reusable_holdout_leaderboard.files.forms import SubmissionError
from reusable_holdout_leaderboard.files.labels import load_labels, take_labels
from reusable_holdout_leaderboard.platforms.bundles import only_table, read_about, read_content
from reusable_holdout_leaderboard.platforms.surroundings import (
    DATABASE_FILE,
    LEDGER,
    TEAM,
    database_of,
    ledger_folder,
    plain_name,
    team_of,
)
from reusable_holdout_leaderboard.rules import Rules
from reusable_holdout_leaderboard.store.records import StoreError, Submission

__all__ = ["DATABASE_FILE", "LEDGER", "TEAM", "Scored", "create", "evaluate", "main", "score"]

HALTED_STATUS = 3  # of the process; 1 is a submission that was refused, 2 a wrong command
_RULES = "rules.json"
_EVERYONE = "everyone"  # team of all, where the platform names none
_UNKNOWN = "whether this was answered is unknown; sent again, it is charged once at most"


class Scored(NamedTuple):
    """What may be told of one submission.

    Attributes
    ----------
    scores : dict of str to float
        The metric by its name, `low` and `high` of its certified interval, `charged` and `improved` (0 or 1),
        `charges_left` (of claims the team's), `queries_left`, `halted` (0). No score while the competition is blind.
    message : str
        One sentence for the team.
    """

    scores: dict[str, float]
    message: str


def create(reference: str | Path, *, ledger: str | Path, database: str | None = None) -> Competition:
    """Make the competition that submissions are scored in.

    Parameters
    ----------
    reference : str or Path
        Folder with one table of labels, and ``rules.json``: what :class:`Rules` takes.
    ledger : str or Path
        Folder that outlives the containers.
    database : str, optional
        URL of a PostgreSQL server; by default SQLite files in the folder.

    Raises
    ------
    InputError, PlanError
        If rules and labels do not fit, or there is such a competition.
    """
    folder = Path(reference)
    try:
        rules = Rules.from_json((folder / _RULES).read_text())
    except (OSError, UnicodeDecodeError):
        raise InputError(
            f"rules must lie in {folder / _RULES}, as JSON; they do not; slug, title and metric are enough"
        ) from None
    labels = only_table(folder)
    if labels is None:
        raise InputError(f"labels must lie in {folder}, as one CSV or Parquet file; there is none")
    return Competition.create(ledger, rules, labels, database=database)


@sealed
def score(
    submission: Path,
    *,
    ledger: str | Path,
    team: str = _EVERYONE,
    claimed: float | None = None,
    slug: str | None = None,
    reference: Path | None = None,
    database: str | None = None,
    label: str = "",
) -> Scored:
    """Have one file scored by the guard; what raises costs nothing, but for a failing database.

    Parameters
    ----------
    submission : Path
        CSV or Parquet.
    ledger : str or Path
        Folder of :func:`create`.
    team : str
        Whose best the submission is compared with, and whose limits and charges count, as the platform says. Intervals
        hold whatever is said here, for there is one budget for all.
    claimed : float, optional
        The team's own validation score.
    slug : str, optional
        By default that of the only competition in the folder.
    reference : Path, optional
        Labels as the platform has them, to be sure that they are the same.
    database : str, optional
        As for :func:`create`.
    label : str
        What the submission calls itself.

    Raises
    ------
    SubmissionError
        Listing what does not fit.
    LimitError, ClosedError
        If the team has no submission left, or the competition is not open.
    Halted
        If the budget is spent.
    InputError
        If there is no such competition, or its labels are others.
    LedgerError, StoreError
        If ledger or store cannot be used.
    """
    known = Competition.slugs(ledger, database=database) if Path(ledger).is_dir() else []
    if not known or (slug is not None and slug not in known):
        raise InputError(
            f"there must be a competition in {ledger}; there is none; nothing was asked; mount the folder that it was "
            "made in, or make it with --create"
        )
    with Competition.open(ledger, slug, database=database) as competition:
        if reference is not None:
            _check_reference(competition, reference, Path(ledger))
        if team == _EVERYONE and competition.rules.policy == "claims":
            raise InputError(
                "on a board of claims each team pays for its own, so the platform must say whose a submission is, by "
                f"--team or {TEAM}; it does not; nothing was asked; have it say so, or make the competition with "
                'policy "thresholdout"'
            )
        content = read_content(submission, competition.expected.max_bytes)
        name = f"{label}: {submission.name}" if label else submission.name
        scored = competition.submit(_team_number(competition, team), content, filename=name, claimed=claimed)
        return _told(competition, scored)


def evaluate(
    test_annotation_file: str,
    user_submission_file: str,
    phase_codename: str,
    *,
    ledger: str | Path | None = None,
    split: str | None = None,
    database: str | None = None,
    claimed: float | None = None,
    **kwargs: Any,
) -> dict[str, Any]:
    """Score a submission as EvalAI asks for it.

    The team is the one in ``submission_metadata``, which EvalAI passes. A phase has the competition that its codename
    is the slug of, otherwise the only one there is: phases that share labels share a budget.

    Parameters
    ----------
    test_annotation_file : str
        The labels that the competition was made with.
    user_submission_file : str
    phase_codename : str
    ledger : str or Path, optional
        Folder of :func:`create`; by default what the environment's ``REUSABLE_HOLDOUT_LEDGER`` names.
    split : str, optional
        Codename of the dataset split; by default that of the phase.
    database : str, optional
        As for :func:`create`; by default the content of the file that ``REUSABLE_HOLDOUT_DATABASE_FILE`` names.
    claimed : float, optional
        The team's own validation score.
    **kwargs
        What else EvalAI passes.

    Returns
    -------
    dict
        ``result``, ``submission_result`` and ``submission_metadata``, where the message is.

    Raises
    ------
    BudgetError
        If the guard has halted. :class:`Halted` is no Exception and would end EvalAI's worker.
    HoldoutError
        As :func:`score`.
    """
    folder = ledger_folder(ledger)
    database = database_of(None) if database is None else database
    known = Competition.slugs(folder, database=database) if folder.is_dir() else []
    team = (kwargs.get("submission_metadata") or {}).get("participant_team")
    try:
        scored = score(
            Path(user_submission_file),
            ledger=folder,
            team=_EVERYONE if team is None else f"team {team}",
            claimed=claimed,
            slug=phase_codename if phase_codename in known else None,
            reference=Path(test_annotation_file),
            database=database,
        )
    except Halted as halt:
        message = _halt_message(halt)
    else:
        return {
            "result": [{split or phase_codename: scored.scores}],
            "submission_result": scored.scores,
            "submission_metadata": scored.message,
        }
    raise BudgetError(message)


def main(argv: Sequence[str] | None = None) -> int:
    """Score a bundle, or make a competition; return the exit status."""
    options = _parser().parse_args(argv)
    try:
        ledger, database = ledger_folder(options.ledger), database_of(options.database_file)
        if options.create is not None:
            create(options.create, ledger=ledger, database=database).close()
            print("the competition is made; scoring needs this folder and no reference data")  # noqa: T201
            return 0
        if options.input is None or options.output is None:
            raise InputError("INPUT and OUTPUT must be given, or --create; see --help")
    except (HoldoutError, OSError) as error:
        return _report(None, f"NOT DONE: {error}", status=1)
    options.output.mkdir(parents=True, exist_ok=True)
    try:
        scored = _scored_bundle(options, ledger, database)
    except Halted as halt:
        # no score: no leaderboard shows one
        _write(options.output / "scores.json", json.dumps({"halted": 1}))
        return _report(options.output, _halt_message(halt), status=HALTED_STATUS)
    except (StoreError, LedgerError) as error:  # its own words name files and servers
        kind = type(error).__name__
        return _report(options.output, f"NOT SCORED: ledger or store failed ({kind}); {_UNKNOWN}", status=1)
    except HoldoutError as error:
        return _report(options.output, f"NOT SCORED: {error}", status=1)
    _write(options.output / "scores.json", json.dumps(scored.scores, allow_nan=False))
    return _report(options.output, scored.message, status=0)


# ---- bundles


def _scored_bundle(options: argparse.Namespace, ledger: Path, database: str | None) -> Scored:
    about = read_about(options.input / "res")
    reference = options.input / "ref"
    submission = only_table(options.input / "res")
    if submission is None:
        raise SubmissionError(["a submission must hold one CSV or Parquet file; there is none"])
    return score(
        submission,
        ledger=ledger,
        team=team_of(options.team) or _EVERYONE,
        label=about.get("team", ""),
        claimed=about.get("claimed"),
        slug=options.slug,
        reference=only_table(reference) if reference.is_dir() else None,
        database=database,
    )


# ---- the competition


def _check_reference(competition: Competition, reference: Path, ledger: Path) -> None:
    """Refuse labels that are not those of the ledger: scores would be of something else than the platform says."""
    rules = competition.rules
    given = take_labels(reference, id_column=rules.id_column, metric=competition.metric)
    place = Place.of(ledger, rules.slug, database=None, key_file=None)
    kept = load_labels(place.labels(competition.status().epoch))
    if given.ids != kept.ids or not np.array_equal(given.y, kept.y):
        raise InputError(
            "the platform's labels must be those that the competition was made with, in the same order; they are "
            "others; nothing was asked; rotate to new labels, or leave them out of the bundle"
        )


def _team_number(competition: Competition, name: str) -> int:
    """Return the number of a team, made by its first submission; a look-alike of another team is refused."""
    for attempt in (1, 2):
        for team in competition.teams():
            if plain_name(team.name) == plain_name(name):
                return team.id
        try:
            competition.add_team(name)
        except InputError as error:
            if attempt == 2:
                raise SubmissionError([str(error)]) from None
    return _team_number(competition, name)


def _told(competition: Competition, scored: Submission) -> Scored:
    status = competition.status()
    metric = competition.metric.name
    numbers = {
        metric: scored.value,
        "low": scored.low,
        "high": scored.high,
        "charged": scored.charged,
        "improved": scored.improved,
        "charges_left": competition.charges_left_of(scored.team_id),
        "queries_left": status.queries_left,
        "halted": 0,
    }
    scores = {name: _number(value) for name, value in numbers.items() if value is not None}
    if scored.value is None:
        return Scored(scores, "received; scores are hidden until the competition is unblinded")
    what = "scored"
    if scored.replayed:
        what = "these predictions were sent before, and this is their answer again, free"
    elif not scored.improved:
        what = "scored; it is no new best of its team"
    return Scored(
        scores,
        f"{what}: {metric} {scored.value:.6g}, certified between {scored.low:.6g} and {scored.high:.6g}, "
        f"with confidence {status.confidence:g} together with all other answers",
    )


def _number(value: float) -> float:
    return int(value) if isinstance(value, bool | int) else value


def _halt_message(halt: Halted) -> str:
    return f"HALTED, NO SCORE: {halt}"


# ---- the process


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reusable_holdout_leaderboard.platforms.codabench",
        description="Score a Codabench bundle through a guarded holdout.",
        epilog=f"Exit status: 0 scored, 1 refused at no cost, {HALTED_STATUS} halted.",
    )
    parser.add_argument(
        "input", type=Path, nargs="?", metavar="INPUT", help="folder with res/ and perhaps ref/"
    )
    parser.add_argument(
        "output", type=Path, nargs="?", metavar="OUTPUT", help="folder that scores.json is written to"
    )
    parser.add_argument("--ledger", type=Path, help=f"folder that lasts; by default what {LEDGER} names")
    parser.add_argument("--create", type=Path, metavar="REFERENCE", help="make the competition instead, once")
    parser.add_argument(
        "--database-file", type=Path, help=f"file with a URL; by default what {DATABASE_FILE} names"
    )
    parser.add_argument("--slug", help="competition; by default the only one")
    parser.add_argument(
        "--team", help=f"whose submission it is, as the platform says; by default what {TEAM} names"
    )
    return parser


def _report(output: Path | None, message: str, *, status: int) -> int:
    """Say it where platforms show it to the team: in the log, and as detailed results."""
    if output is not None:
        head = "<!doctype html>\n<meta charset='utf-8'>\n<title>Result</title>\n"
        _write(output / "detailed_results.html", f"{head}<p>{html.escape(message)}</p>\n")
    print(message, file=sys.stdout if status == 0 else sys.stderr)
    return status


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
