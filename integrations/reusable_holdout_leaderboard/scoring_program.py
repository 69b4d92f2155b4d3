"""A scoring program for platforms such as Codabench, whose leaderboard then shows only answers of a guard.

::

    python -m reusable_holdout_leaderboard.scoring_program --create reference_data --ledger /board  # once
    python -m reusable_holdout_leaderboard.scoring_program /app/input /app/output --ledger /board   # the command

The first command makes the competition, once. Scoring never makes one, because a worker that lost the folder must fail
and must not begin with a new budget. The folder must be kept when containers end. Participants' code must never run
where the folder can be read. If containers cannot write to a lasting folder, mount the folder read-only and keep the
ledger on a PostgreSQL server, with its URL in a file.

The platform tells which team a submission belongs to. The submission itself cannot: see docs/deploy-a-board.md.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from reusable_holdout.errors import Halted, HoldoutError, InputError, LedgerError
from reusable_holdout.guard.boundary import sealed
from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.files.forms import SubmissionError
from reusable_holdout_leaderboard.private_files import check_private
from reusable_holdout_leaderboard.rules import Rules
from reusable_holdout_leaderboard.settings import checked_database
from reusable_holdout_leaderboard.store.records import StoreError, Submission

__all__ = ["DATABASE_FILE", "HALTED_STATUS", "LEDGER", "TEAM", "Scored", "create", "main", "score"]

LEDGER = "REUSABLE_HOLDOUT_LEDGER"
TEAM = "REUSABLE_HOLDOUT_TEAM"
DATABASE_FILE = "REUSABLE_HOLDOUT_DATABASE_FILE"
HALTED_STATUS = 3  # exit status of the process; 1 stands for a refused submission, 2 for a wrong command
_ABOUT, _RULES = "about.json", "rules.json"
_MOST_ABOUT_BYTES = 65_536
_UNKNOWN = "it is unknown if this was answered; sent again, it is charged at most once"


class Scored(NamedTuple):
    """The public result of one submission.

    Attributes
    ----------
    scores : dict of str to float
        The score under the metric's name; `low` and `high`, the ends of its certified interval; `charged` and
        `improved`, 0 or 1; `charges_left`, the team's remaining charges; `queries_left`; and `halted`, which is 0.
        While the competition is blind, there is no score.
    message : str
        One sentence for the team.
    """

    scores: dict[str, float]
    message: str


def create(reference: Path, *, ledger: Path, database: str | None = None) -> Competition:
    """Make the competition in which submissions are scored.

    Parameters
    ----------
    reference : Path
        Folder with one CSV file of labels, and the rules in ``rules.json``; see :meth:`Rules.from_json`.
    ledger : Path
        Folder that is kept when containers end.
    database : str, optional
        URL of a PostgreSQL server. By default, SQLite files in the folder are used.

    Raises
    ------
    InputError, PlanError
        If the rules and the labels do not fit, or the competition exists already.
    """
    try:
        rules = Rules.from_json((reference / _RULES).read_text())
    except (OSError, UnicodeDecodeError):
        raise InputError(
            f"there must be rules in {reference / _RULES}, as JSON; slug and title are enough"
        ) from None
    labels = _only_table(reference)
    if labels is None:
        raise InputError(f"there must be labels in {reference}, as one CSV file; there are none")
    return Competition.create(ledger, rules, labels, database=database)


@sealed
def score(
    submission: Path,
    *,
    ledger: Path,
    team: str,
    claimed: float | None = None,
    slug: str | None = None,
    database: str | None = None,
    label: str = "",
) -> Scored:
    """Score one file of predictions.

    A submission that is refused costs nothing. If a database fails, the submission may have been answered and charged;
    sent again, it is charged at most once.

    Parameters
    ----------
    submission : Path
        CSV file.
    ledger : Path
        Folder of the competition that :func:`create` made.
    team : str
        Name of the team, which the platform tells. The team is made with its first submission.
    claimed : float, optional
        Score that the team claims, which it measured on rows of its own.
    slug : str, optional
        Name of the competition. By default, the only one in the folder.
    database : str, optional
        URL of the database; see :func:`create`.
    label : str
        Name that the submission states in ``about.json``. It is put before the name of the file.

    Raises
    ------
    SubmissionError
        If the file does not fit. The error lists all problems.
    LimitError, ClosedError
        If the team has no submission left, or the competition is not open.
    Halted
        If no query is left.
    InputError
        If there is no such competition.
    LedgerError, StoreError
        If the ledger or the board's database cannot be used.
    """
    known = Competition.slugs(ledger, database=database) if ledger.is_dir() else []
    if not known or (slug is not None and slug not in known):
        raise InputError(
            f"there must be a competition in {ledger}; there is none; nothing was asked; mount the folder that it was "
            "made in, or make it with --create"
        )
    with Competition.open(ledger, slug, database=database) as competition:
        content = _content_of(submission, competition.expected.max_bytes)
        name = f"{label}: {submission.name}" if label else submission.name
        number = _team_number(competition, team)
        scored = competition.submit(number, content, filename=submission.name, name=name, claimed=claimed)
        return _told(competition, scored)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line: score the submission in a folder, or make a competition. Return the exit status."""
    options = _parser().parse_args(argv)
    try:
        ledger, database = Path(_named(options.ledger, "--ledger", LEDGER)), _database(options.database_file)
        if options.create is not None:
            create(options.create, ledger=ledger, database=database).close()
            print("the competition is made; scoring needs this folder and no reference data")
            return 0
        if options.input is None or options.output is None:
            raise InputError("INPUT and OUTPUT must be given, or --create; see --help")
        team = _named(options.team, "--team", TEAM)
    except (HoldoutError, OSError) as error:
        return _report(None, f"NOT DONE: {error}", status=1)
    options.output.mkdir(parents=True, exist_ok=True)
    try:
        scored = _scored_bundle(options, ledger, team, database)
    except Halted as halt:
        _write(options.output / "scores.json", json.dumps({"halted": 1}))  # without a score
        return _report(options.output, f"HALTED, NO SCORE: {halt}", status=HALTED_STATUS)
    except (StoreError, LedgerError) as error:  # the message may name files and servers
        kind = type(error).__name__
        return _report(options.output, f"NOT SCORED: ledger or store failed ({kind}); {_UNKNOWN}", status=1)
    except HoldoutError as error:
        return _report(options.output, f"NOT SCORED: {error}", status=1)
    _write(options.output / "scores.json", json.dumps(scored.scores, allow_nan=False))
    return _report(options.output, scored.message, status=0)


# ---- bundles


def _scored_bundle(options: argparse.Namespace, ledger: Path, team: str, database: str | None) -> Scored:
    bundle = options.input / "res"
    about, submission = _about(bundle), _only_table(bundle)
    if submission is None:
        raise SubmissionError(["a submission must hold one CSV file; there is none"])
    return score(
        submission,
        ledger=ledger,
        team=team,
        label=about.get("team", ""),
        claimed=about.get("claimed"),
        slug=options.slug,
        database=database,
    )


def _only_table(folder: Path) -> Path | None:
    """Return the only CSV file in a folder and its subfolders, or None if there is none.

    Symbolic links are ignored, because they could lead to the labels.

    Raises
    ------
    SubmissionError
        If there are several CSV files.
    """
    found = [
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() == ".csv"
        and "__MACOSX" not in path.parts
        and not path.name.startswith(".")
        and path.is_file()
        and path.resolve() == folder.resolve() / path.relative_to(folder)
    ]
    if len(found) > 1:
        names = ", ".join(repr(path.name) for path in found[:5])
        raise SubmissionError([f"one CSV file is expected; {len(found):,} came: {names}"])
    return found[0] if found else None


def _about(folder: Path) -> dict[str, Any]:
    """Return the name and the claimed score that a submission states in its file ``about.json``."""
    path = folder / _ABOUT
    if path.is_symlink() or not path.is_file():
        return {}
    problem = f'{_ABOUT} must be like {{"team": "Blue", "claimed": 0.83}}; both are optional'
    try:
        given = json.loads(_content_of(path, _MOST_ABOUT_BYTES))
    except (ValueError, RecursionError):
        raise SubmissionError([problem]) from None
    strange = not isinstance(given, dict) or set(given) - {"team", "claimed"}
    if strange or not isinstance(given.get("team", ""), str):
        raise SubmissionError([problem])
    return dict(given)


def _content_of(path: Path, most: int) -> bytes:
    try:
        size = path.stat().st_size
        if size <= most:
            return path.read_bytes()
    except OSError:
        raise SubmissionError([f"the file {path.name!r} cannot be read"]) from None
    raise SubmissionError([f"the file {path.name!r} must have at most {most:,} bytes; it has {size:,}"])


# ---- the competition


def _team_number(competition: Competition, name: str) -> int:
    """Return the number of the team that has this name. If there is no such team, make it.

    A new name that looks like another team's name is refused.
    """
    for attempt in (1, 2):  # another worker may make the team at the same time
        for team in competition.teams():
            if _plain(team.name) == _plain(name):
                return team.id
        try:
            competition.add_team(name)
        except InputError as error:
            if attempt == 2:
                raise SubmissionError([str(error)]) from None
    return _team_number(competition, name)


def _plain(team: str) -> str:
    """Return a team's name in lower case, in Unicode's plain form (NFKC), with single spaces between its words."""
    return " ".join(unicodedata.normalize("NFKC", team).casefold().split())


def _told(competition: Competition, scored: Submission) -> Scored:
    status, metric = competition.status(), competition.metric.name
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
    scores = {
        name: int(value) if isinstance(value, bool) else value
        for name, value in numbers.items()
        if value is not None
    }
    if scored.value is None:
        return Scored(scores, "received; scores are hidden until the competition is unblinded")
    again = "these predictions were sent before, and this is their recorded answer, free"
    what = again if scored.replayed else f"scored ({scored.told})"
    return Scored(
        scores,
        f"{what}: {metric} {scored.value:.6g}, interval {scored.low:.6g} to {scored.high:.6g}, "
        f"with confidence {status.confidence:g} together with all other answers",
    )


# ---- the process


def _named(given: Any, option: str, variable: str) -> str:
    """Return the value of an option, or of an environment variable if the option was not given."""
    named = given or os.environ.get(variable)
    if not named:
        raise InputError(
            f"{option} or {variable} must be given by the platform; neither is; nothing was asked"
        )
    return str(named)


def _database(given: Path | None) -> str | None:
    named = given or os.environ.get(DATABASE_FILE)
    return checked_database(check_private(Path(named)).read_text().strip(), secret=True) if named else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reusable_holdout_leaderboard.scoring_program",
        description="Score a bundle of a competition platform through a guarded holdout.",
        epilog=f"Exit status: 0 scored, 1 refused at no cost, {HALTED_STATUS} halted.",
    )
    parser.add_argument("input", type=Path, nargs="?", metavar="INPUT", help="folder that contains res/")
    parser.add_argument("output", type=Path, nargs="?", metavar="OUTPUT", help="folder for scores.json")
    parser.add_argument("--ledger", type=Path, help=f"lasting folder (default: ${LEDGER})")
    parser.add_argument("--create", type=Path, metavar="REFERENCE", help="make the competition instead, once")
    parser.add_argument("--database-file", type=Path, help=f"file with a URL (default: ${DATABASE_FILE})")
    parser.add_argument("--slug", help="competition (default: the only one)")
    parser.add_argument("--team", help=f"team of the submission, as the platform names it (default: ${TEAM})")
    return parser


def _report(output: Path | None, message: str, *, status: int) -> int:
    """Write a message to the log and to ``detailed_results.html``, where platforms show it; return the exit status."""
    if output is not None:
        head = "<!doctype html>\n<meta charset='utf-8'>\n<title>Result</title>\n"
        _write(output / "detailed_results.html", f"{head}<p>{html.escape(message)}</p>\n")
    print(message, file=sys.stdout if status == 0 else sys.stderr)
    return status


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
