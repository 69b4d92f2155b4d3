"""An example competition on real data: incomes of more than 50,000 dollars."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from reusable_holdout.demo.datasets import load_adult
from reusable_holdout.registry import registry_of_its_own
from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.private import write_private
from reusable_holdout_leaderboard.rules import Rules

__all__ = ["CLAIMED", "EXAMPLE", "Example", "make_example"]

_TRAIN, _TEST = 12_000, 20_000
CLAIMED = 0.75
"""Accuracy of the first submission's rule on the training rows."""

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


class Example(NamedTuple):
    """Files of the example.

    Attributes
    ----------
    train, test : Path
        Data for teams.
    first : Path
        Submission that predicts from the years of education.
    token : Path
        File with the token of the team "First".
    """

    train: Path
    test: Path
    first: Path
    token: Path


def make_example(folder: Path, *, database: str | None = None) -> Example:
    """Make the example competition with one team, and a file that it could send.

    Parameters
    ----------
    folder : Path
        Folder of the competitions; the files for teams are in its folder "example".
    database : str, optional
        As for :meth:`Competition.create`.
    """
    X, y = load_adult()
    order = X.sample(frac=1, random_state=0).index
    train, test = order[:_TRAIN], order[_TRAIN : _TRAIN + _TEST]
    made = example_files(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    made.train.parent.mkdir(mode=0o700, exist_ok=True)
    X.loc[train].assign(income=y[train].astype(int)).to_csv(made.train, index=False)
    rows = X.loc[test].reset_index(drop=True).rename_axis("id")
    rows.to_csv(made.test)
    guess = (rows["education_num"] >= 13).astype(int).rename("prediction")
    guess.to_csv(made.first)
    labels = folder / "example" / "labels.csv"
    write_private(
        labels, y[test].astype(int).reset_index(drop=True).rename("label").rename_axis("id").to_csv()
    )
    try:
        with (
            registry_of_its_own(),
            Competition.create(folder, EXAMPLE, labels, database=database) as competition,
        ):
            write_private(made.token, competition.add_team("First"))
    finally:
        labels.unlink()
    return made


def example_files(folder: Path) -> Example:
    """Return the files that :func:`make_example` makes."""
    place = folder / "example"
    return Example(place / "train.csv", place / "test.csv", place / "first.csv", place / "team.token")
