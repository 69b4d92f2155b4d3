"""Preparations before a server starts: make or open the competition, and gather its settings and tokens."""

from __future__ import annotations

import argparse
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet
from reusable_holdout_evals.readers.files import file_text, parsed

from reusable_holdout.demo.datasets import load_adult
from reusable_holdout.errors import InputError
from reusable_holdout.registry import registry_of_its_own
from reusable_holdout_leaderboard.command.options import stated_rules
from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.competition.base import digest_of, new_token
from reusable_holdout_leaderboard.private_files import check_private, write_private
from reusable_holdout_leaderboard.rules import CHANGEABLE, Rules
from reusable_holdout_leaderboard.settings import Settings, read_token

__all__ = ["CLAIMED", "EXAMPLE", "Prepared", "make_example", "prepare"]

_UNWATCHED = "none: nobody would notice an older copy of the folder; name one with --witness"


class Prepared(NamedTuple):
    """A server that is ready to be started.

    Attributes
    ----------
    settings : Settings
    text : str
        Text for the organiser: the competition, its budget, the addresses and the place of the administrator's token.
    """

    settings: Settings
    text: str


def prepare(options: argparse.Namespace, database: str | None) -> Prepared:
    """Make the competition, or resume it if it exists, and return the settings of its server.

    Parameters
    ----------
    options : argparse.Namespace
        Options of the command ``board serve``.
    database : str or None
        URL of the database; None for SQLite files.

    Raises
    ------
    InputError, PlanError, StoreError, LedgerError
        If the competition can be neither made nor resumed.
    """
    stated = _stated(options)
    _check_server(options)
    options.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    known = Competition.slugs(options.folder, database=database)
    if options.example:
        slug = EXAMPLE.slug
        if slug not in known:
            make_example(options.folder, database=database)
    else:
        slug = stated.get("slug") or (known[0] if len(known) == 1 else "board")
        if slug not in known:
            _create(options, database, {"slug": slug, "title": slug, **stated})
    with Competition.open(
        options.folder, slug, database=database, key_file=options.key, witness=options.witness
    ) as competition:
        _check_same(stated, competition.rules)
        text = _told(options, competition)
    admin = options.admin_token_file or options.folder / "admin.token"
    if not admin.exists():
        write_private(admin, f"{new_token()}\n")
    settings = Settings(
        folder=options.folder,
        database=database,
        slug=slug,
        key_file=options.key,
        witness=options.witness,
        admin_digest=digest_of(read_token(check_private(admin))).hex(),
        trusted_proxies=tuple(options.proxy_headers or ()),
        **{one.name: getattr(options, one.name) for one in fields(Settings) if "help" in one.metadata},
    )
    return Prepared(settings, f"{text}\nadmin token  {admin}")


def _check_server(options: argparse.Namespace) -> None:
    if options.root_path and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+/?", options.root_path):
        raise InputError(f"--root-path must be a path such as /board; got {options.root_path!r}")


def _create(options: argparse.Namespace, database: str | None, given: dict[str, Any]) -> None:
    if options.labels is None:
        raise InputError(
            f"there is no competition {given['slug']!r} in {options.folder}; make it with --labels, or try --example"
        )
    if "id_column" not in given:
        given["id_column"] = "id" if "id" in _columns(options.labels) else None
    Competition.create(
        options.folder,
        Rules.from_dict(given),
        options.labels,
        database=database,
        fresh_labels_file=options.fresh_labels,
        key_file=options.key,
        witness=options.witness,
    ).close()


def _stated(options: argparse.Namespace) -> dict[str, Any]:
    """Return the stated rules. Those on the command line take precedence over those in the file."""
    given: Any = {}
    if options.rules is not None:
        given = parsed(file_text(options.rules, what="rules"), str(options.rules))
        if not isinstance(given, dict):
            raise InputError(f"{options.rules} must be a JSON object; it is not")
    named = {} if options.slug is None else {"slug": options.slug}
    return {**given, **named, **stated_rules(options)}


def _check_same(stated: dict[str, Any], rules: Rules) -> None:
    """Refuse to resume a competition if the stated rules differ from its own."""
    asked = Rules.from_dict({"slug": rules.slug, "title": rules.title, **stated})
    others = [name for name in stated if getattr(asked, name) != getattr(rules, name)]
    if others:
        way = "make another competition with --slug, because the guard's answers depend on them"
        if CHANGEABLE.issuperset(others):
            way = "change them with 'reusable-holdout board change'"
        raise InputError(
            f"the competition {rules.slug!r} was made with other {', '.join(others)}; leave these out to resume it, or "
            + way
        )


def _told(options: argparse.Namespace, competition: Competition) -> str:
    status, rules = competition.status(), competition.rules
    host = f"[{options.host}]" if ":" in options.host else options.host
    url = f"http://{host}:{options.port}{options.root_path.rstrip('/')}"
    lines = [
        f"competition  {rules.title}: {rules.metric}, {status.rows:,} rows",
        f"budget       {status.queries_left:,} of {rules.queries:,} queries, {status.charges} charges for each team",
        f"board        {url}/",
        f"witness      {competition.witness or _UNWATCHED}",
    ]
    if options.example:
        made, bearer = options.folder / "example", "Authorization: Bearer $(cat {}/team.token)"
        lines += [
            f"for teams    train.csv and test.csv in {made}; the token of the team First is in team.token there",
            f"submit       curl -F file=@{made}/first.csv -F claimed={CLAIMED} "
            f'-H "{bearer.format(made)}" {url}/api/v1/submissions',
        ]
    return "\n".join(lines)


def _columns(labels: Path) -> list[str]:
    """Return the names of a label file's columns. The names are public."""
    try:
        if labels.suffix in {".parquet", ".pq"}:
            return [str(name) for name in pa.parquet.read_schema(labels).names]
        with labels.open(encoding="utf-8-sig") as file:
            return [name.strip().strip('"') for name in file.readline().split(",")]
    except FileNotFoundError:
        raise InputError(f"there must be a file with the labels at {labels}; there is none") from None
    except (OSError, ValueError):
        raise InputError(f"{labels} must be a CSV or Parquet file that can be read; it is not") from None


# ---- the example competition: who earns more than 50,000 dollars a year?

_TRAIN, _TEST = 12_000, 20_000
CLAIMED = 0.75
"""Score that the example submission claims: the accuracy of its rule on the training rows."""

EXAMPLE = Rules(
    slug="income",
    title="Who earns more than 50,000 dollars?",
    description=(
        "UCI Adult, the census of 1994. Learn from train.csv, predict the rows of test.csv: 1 if the income exceeds "
        "50,000 dollars a year, else 0. A submission is a CSV file with the columns id and prediction."
    ),
    queries=2_000,
    estimate=0.85,
)


def make_example(folder: Path, *, database: str | None = None) -> Path:
    """Make the example competition, a team, and a file of predictions that the team could submit.

    Return the folder with the files for teams.

    Parameters
    ----------
    folder : Path
        Folder that contains all competitions.
    database : str, optional
        URL of a database; see :meth:`Competition.create`.
    """
    X, y = load_adult()
    order = X.sample(frac=1, random_state=0).index
    train, test = order[:_TRAIN], order[_TRAIN : _TRAIN + _TEST]
    made = folder / "example"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    made.mkdir(mode=0o700, exist_ok=True)
    X.loc[train].assign(income=y[train].astype(int)).to_csv(made / "train.csv", index=False)
    rows = X.loc[test].reset_index(drop=True).rename_axis("id")
    rows.to_csv(made / "test.csv")
    guess = (rows["education_num"] >= 13).astype(int).rename("prediction")
    guess.to_csv(made / "first.csv")
    labels = made / "labels.csv"
    answers = y[test].astype(int).reset_index(drop=True).rename("label").rename_axis("id")
    write_private(labels, answers.to_csv())
    try:
        with (
            registry_of_its_own(),
            Competition.create(folder, EXAMPLE, labels, database=database) as competition,
        ):
            write_private(made / "team.token", competition.add_team("First"))
    finally:
        labels.unlink()
    return made
