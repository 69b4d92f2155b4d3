"""What is ready before the first request: the competition, the administrator's token, the settings."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from reusable_holdout.errors import InputError
from reusable_holdout_leaderboard.command.example import CLAIMED, EXAMPLE, example_files, make_example
from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.competition.teams import digest_of, new_token
from reusable_holdout_leaderboard.rules import CHANGEABLE, Rules
from reusable_holdout_leaderboard.settings import Settings, check_private, read_token, write_private
from reusable_holdout_leaderboard.store.records import Status

__all__ = ["Prepared", "prepare", "text_of"]

_UNWATCHED = "none: an older copy of the folder would pass for this one; --witness names one"
_SETTINGS = (
    "answer_seconds",
    "requests_per_minute",
    "submissions_per_minute",
    "newcomers_per_minute",
    "max_body_bytes",
    "secure_cookies",
    "connections_per_address",
    "head_seconds",
)
_SAME_NAME = (
    "slug",
    "title",
    "metric",
    "policy",
    "queries",
    "charges",
    "tolerance",
    "estimate",
    "prior_error",
    "threshold",
    "confidence",
    "submissions_per_day",
    "submissions_per_team",
    "charges_per_team",
    "sign_up",
    "most_teams",
    "final_picks",
    "blind",
    "vacuous",
)


class Prepared(NamedTuple):
    """A server that can be started.

    Attributes
    ----------
    settings : Settings
    text : str
        What its organiser is told.
    """

    settings: Settings
    text: str


def prepare(options: argparse.Namespace, database: str | None) -> Prepared:
    """Make the competition, or resume it, and gather the settings.

    Parameters
    ----------
    options : argparse.Namespace
        Of the command line.
    database : str or None

    Raises
    ------
    InputError, PlanError, StoreError, LedgerError
        If the competition can be neither made nor resumed.
    """
    stated = _stated_rules(options)
    _check_place(options)
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
    given = {name: getattr(options, name) for name in _SETTINGS}
    settings = Settings(
        folder=options.folder,
        database=database,
        slug=slug,
        key_file=options.key,
        witness=options.witness,
        admin_digest=digest_of(_admin_token(admin)).hex(),
        trusted_proxies=tuple(options.proxy_headers or ()),
        **{name: value for name, value in given.items() if value is not None},
    )
    return Prepared(settings, f"{text}\nadmin token  {admin}")


def _check_place(options: argparse.Namespace) -> None:
    if (options.tls_certificate is None) != (options.tls_key is None):
        raise InputError("--tls-certificate and --tls-key go together; one of them is missing")
    for path in (options.tls_certificate, options.tls_key):
        if path is not None and not path.is_file():
            raise InputError(f"there must be a file {path}; there is none")
    if options.root_path and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+/?", options.root_path):
        raise InputError(f"--root-path must be a path such as /board; got {options.root_path!r}")


def _create(options: argparse.Namespace, database: str | None, given: dict[str, Any]) -> None:
    if options.labels is None:
        raise InputError(
            f"there is no competition {given['slug']!r} in {options.folder}; make it with --labels, or look around "
            "with --example"
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


def _stated_rules(options: argparse.Namespace) -> dict[str, Any]:
    """Rules that the command line names, and no others."""
    given: dict[str, Any] = {}
    if options.rules is not None:
        text = text_of(options.rules)
        try:
            given = json.loads(text)
        except ValueError:
            raise InputError(f"{options.rules} must be JSON; it is not") from None
        if not isinstance(given, dict):
            raise InputError(f"{options.rules} must hold a JSON object; it does not")
    given |= {name: getattr(options, name) for name in _SAME_NAME if getattr(options, name) is not None}
    if options.description is not None:
        given["description"] = text_of(options.description)
    if options.also:
        given["also"] = tuple(options.also)
    if options.metric_parameter:
        given["metric_parameters"] = dict(map(_parameter, options.metric_parameter))
    if options.id is not None:
        given["id_column"] = options.id or None
    for name in ("opens", "closes"):
        if getattr(options, name) is not None:
            given[f"{name}_at"] = getattr(options, name)
    return given


def _check_same(stated: dict[str, Any], rules: Rules) -> None:
    """Refuse to resume a competition under other rules than it was made with."""
    if not stated:
        return
    asked = Rules.from_dict({"slug": rules.slug, "title": rules.title, **stated})
    others = [
        one.name
        for one in fields(Rules)
        if one.name in stated and getattr(asked, one.name) != getattr(rules, one.name)
    ]
    if others:
        raise InputError(
            f"the competition {rules.slug!r} was made with another {', '.join(others)}; leave them out to resume it; "
            + (
                "change them with 'reusable-holdout board change'"
                if CHANGEABLE.issuperset(others)
                else "what the guard rests on cannot be changed: make another with --slug"
            )
        )


def _told(options: argparse.Namespace, competition: Competition) -> str:
    status, rules = competition.status(), competition.rules
    host = f"[{options.host}]" if ":" in options.host else options.host
    scheme = "http" if options.tls_certificate is None else "https"
    url = f"{scheme}://{host}:{options.port}{options.root_path.rstrip('/')}"
    lines = [
        f"competition  {rules.title}: {rules.metric}, {rules.policy}, {status.rows:,} rows",
        f"budget       {status.queries_left:,} of {rules.queries:,} queries, {_charges(rules, status)}",
        f"board        {url}/",
        f"witness      {competition.witness or _UNWATCHED}",
    ]
    if options.example:
        made = example_files(options.folder)
        lines += [
            f"for teams    {made.train}, {made.test}; the team First has its token in {made.token}",
            "submit       "
            f"curl -F file=@{made.first} -F claimed={CLAIMED} "
            f'-H "Authorization: Bearer $(cat {made.token})" {url}/api/v1/submissions',
        ]
    return "\n".join(lines)


def _charges(rules: Rules, status: Status) -> str:
    """Whose charges there are, and how many teams they serve at most."""
    if rules.policy == "claims":
        return f"{status.charges} charges of each team"
    if rules.policy == "ladder":
        return f"{status.charges} charges in all, which serve {status.charges} teams: the first score of each is one"
    return f"{status.charges} charges in all"


def _admin_token(path: Path) -> str:
    if not path.exists():
        write_private(path, f"{new_token()}\n")
    return read_token(check_private(path))


def _columns(labels: Path) -> list[str]:
    """Names of a label file's columns; they are public."""
    try:
        if labels.suffix in {".parquet", ".pq"}:
            import pyarrow.parquet as pq  # noqa: PLC0415

            return [str(name) for name in pq.read_schema(labels).names]
        with labels.open(encoding="utf-8-sig") as file:
            return [name.strip().strip('"') for name in file.readline().split(",")]
    except FileNotFoundError:
        raise InputError(f"there must be a file with the labels at {labels}; there is none") from None
    except (OSError, ValueError):
        raise InputError(f"{labels} must be a CSV or Parquet file that can be read; it is not") from None


def _parameter(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise InputError(f"a metric parameter must be NAME=NUMBER; got {text!r}") from None


def text_of(path: Path) -> str:
    """Text of a file.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path} must be a text file in UTF-8; it cannot be read") from None
