"""The golden ledgers that a release adds: every way to ask, every family of metrics, every mechanism.

Rows and predictions are random, and written down: only the answers must stay as they are, not how the rows were made.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout import Difference, Rows

if TYPE_CHECKING:
    from golden.make import Making

__all__ = ["LEDGERS"]


class Draws:
    """Rows of a classification, and predictions that are right so often."""

    def __init__(self, seed: int, rows: int, share: float = 0.5) -> None:
        self._rng = np.random.default_rng([2, seed])
        self.y = (self._rng.random(rows) < share).astype(np.uint8)

    def features(self, columns: int = 3) -> Any:
        """Features that differ from row to row."""
        return self._rng.integers(0, 1 << 16, (len(self.y), columns)).astype(np.float32)

    def right(self, rate: float) -> Any:
        """Labels."""
        return np.where(self._rng.random(len(self.y)) < rate, self.y, 1 - self.y).astype(np.uint8)

    def probable(self, spread: float) -> Any:
        """Probabilities, the farther off the larger the spread."""
        off = np.abs(self._rng.normal(scale=spread, size=len(self.y))).clip(0.0, 1.0)
        return np.round(np.abs(self.y - off) * 128) / 128

    def any(self, *shape: int) -> Any:
        """Uniform draws, coarse."""
        return self._rng.integers(0, 33, (len(self.y), *shape)) / 32


class NoModel:
    """Fails on the holdout, whatever it is."""

    classes_ = np.array([0, 1])

    def predict(self, X: Any) -> Any:
        """Fail where there are many rows."""
        if len(X) > 100:
            raise ValueError
        return np.zeros(len(X), dtype=int)


def accuracy(made: Making) -> None:
    """Checks with noise: each outcome, a batch, comparisons, a reveal, a choice, failures, views."""
    draws = Draws(1, 2_000)
    X, half = draws.features(), (draws.any() < 0.5).astype(np.uint8)
    made.guard(X, draws.y, queries=60, tolerance=0.14, estimate=0.8, prior_error=0.02, reveals=2, choices=[5])
    ask = made.ask
    ask("evaluate", subject=draws.right(0.8), prior=0.8, name="agreed")
    ask("evaluate", subject=draws.right(0.7), prior=0.95, name="charged over")
    ask("evaluate", subject=draws.right(0.9), prior=0.55, name="charged under")
    batch = [draws.right(rate) for rate in (0.8, 0.75, 0.7, 0.85)]
    ask("evaluate", subject=batch, prior=[0.8, 0.75, 0.95, 0.85], name=list("abcd"))
    ask("compare", new=batch[0], old=batch[2], prior=0.1)
    ask("compare", new=batch[3], old=batch[2], prior=0.14, tolerance=0.2)
    ask("reveal", subject=draws.right(0.82), prior=0.8)
    few = [draws.right(rate) for rate in (0.7, 0.8, 0.75)]
    ask("choose", subjects=few, priors=[0.7, 0.78, 0.75])
    made.ask_model(NoModel(), 0.8)
    one_class = made.view("one class", metric="roc_auc", sample_weight=draws.y, allow=["vacuous"])
    ask("evaluate", one_class, subject=draws.probable(0.5), prior=0.7, name="fails")
    sliced = made.view("half", sample_weight=half, allow=["vacuous"])
    ask("evaluate", sliced, subject=batch[0], prior=0.8)
    squares = made.view("brier", metric="brier", spread=0.25, estimate=0.2, allow=["vacuous"])
    ask("evaluate", squares, subject=draws.probable(0.5), prior=0.2)
    made.close(
        [
            ("evaluate", {"subject": draws.right(0.8), "prior": 0.8}),
            ("evaluate", {"of": squares, "subject": draws.probable(0.4), "prior": 0.13}),
            ("evaluate", {"subject": draws.right(0.6), "prior": 0.9}),
        ]
    )


def claims(made: Making) -> None:
    """A board: claims that stand, lead, fall short or are wrong, a failure, one asked anew, one not certified."""
    draws = Draws(14, 2_000, 0.5)
    made.guard(
        draws.features(),
        draws.y,
        board="claims",
        queries=60,
        prior_error=0.01,
        estimate=0.75,
        overlapping=True,
    )
    for rate, claim, series in (
        (0.6, 0.6, "first"),
        (0.8, 0.79, "second"),
        (0.62, 0.63, "first"),
        (0.78, 0.83, "first"),
        (0.7, 0.95, "third"),
        (0.7, 0.9, "third"),
        (0.7, 0.7, "third"),
        (0.9, 0.7, "fourth"),
        (0.71, 0.72, "fourth"),
        (0.75, 0.75, ""),
        (0.84, 0.8525, "first"),
    ):
        made.ask("evaluate", subject=draws.right(rate), prior=claim, series=series)
    same = draws.right(0.72)
    made.ask("evaluate", subject=same, prior=0.5, series="fifth")
    made.ask("evaluate", subject=same, prior=0.72, series="fifth", anew=True)
    made.ask("evaluate", subject=[draws.right(0.7) for _ in range(2)], prior=[0.7, 0.7], series="sixth")
    made.ask_model(NoModel(), 0.7)
    made.ask("reveal", subject=draws.right(0.85), prior=0.84)
    made.close(
        [
            ("evaluate", {"subject": draws.right(0.7), "prior": 0.7, "series": "fifth"}),
            ("evaluate", {"subject": draws.right(0.9), "prior": 0.9, "series": "fourth"}),
            ("evaluate", {"subject": draws.right(0.9), "prior": 0.8, "series": "third"}),
        ]
    )


def guesses(made: Making) -> None:
    """Guess and check with tolerances of its own, by a distance, by evidence and by ratios; in a batch, too."""
    draws = Draws(3, 2_000, 0.4)
    made.guard(None, draws.y, queries=60, tolerance=0.12, estimate=0.8)
    made.ask("evaluate", subject=draws.right(0.8), prior=0.8, tolerance=0.2)
    made.ask("evaluate", subject=draws.right(0.8), prior=0.81)
    four = [draws.right(rate) for rate in (0.8, 0.7, 0.8, 0.7)]
    made.ask("evaluate", subject=four, prior=[0.8, 0.95, 0.78, 0.72], tolerance=[0.2, 0.12, 0.15, 0.3])
    squares = made.view("brier", metric="brier", spread=0.25, estimate=0.2, allow=["vacuous"])
    near = [draws.probable(spread) for spread in (0.4, 0.5, 0.6)]
    made.ask("evaluate", squares, subject=near, prior=[0.14, 0.6, 0.27], tolerance=[0.2, 0.1, 0.2])
    ratio = made.view("f1", metric="f1", estimate=0.75, allow=["vacuous"])
    made.ask("evaluate", ratio, subject=draws.right(0.8), prior=0.76, tolerance=0.3)
    precise = made.view("precision", metric="average_precision", estimate=0.9, allow=["vacuous"])
    ranked = made.view("ranked", metric="roc_auc", estimate=0.9, allow=["vacuous"])
    also = [(ratio, draws.right(0.8)), (ranked, draws.probable(0.4))]
    made.close(
        [
            ("evaluate", {"subject": draws.right(0.8), "prior": 0.8, "tolerance": 0.25}),
            (
                "evaluate",
                {"of": squares, "subject": draws.probable(0.45), "prior": 0.17, "tolerance": 0.25},
            ),
            (
                "evaluate",
                {"of": ratio, "subject": draws.right(0.85), "prior": 0.8, "tolerance": 0.4},
            ),
            ("final", {"of": precise, "subject": draws.probable(0.3), "also": also}),
        ]
    )


def outcomes(made: Making) -> None:
    """Each cell of a charge and of a reveal, without noise; and failures of both."""
    draws = Draws(14, 2_000)
    settings = {"threshold": 0.02, "noise": 0.0, "estimate": 0.8, "vacuous": True}
    made.guard(None, draws.y, queries=60, charges=10, reveals=12, **settings)
    for off in (0.4, 0.2, 0.1, 0.05, 0.03, -0.03, -0.1, 0.0):
        predictions = draws.right(0.5)
        prior = float(np.mean(predictions == draws.y)) + off
        made.ask("evaluate", subject=predictions, prior=prior)
    for off in (0.45, 0.15, 0.06, 0.025, 0.01, 0.0, -0.01, -0.025, -0.06, -0.3):
        predictions = draws.right(0.5)
        prior = float(np.mean(predictions == draws.y)) + off
        made.ask("reveal", subject=predictions, prior=prior)
    only = made.view("one class", metric="roc_auc", sample_weight=draws.y, allow=["vacuous"])
    made.ask("evaluate", only, subject=draws.probable(0.3), prior=0.7)
    made.ask("reveal", only, subject=draws.probable(0.3), prior=0.7)
    made.close([("evaluate", {"subject": draws.right(0.8), "prior": 0.8})])


def gates(made: Making) -> None:
    """Gates with guardrails: scores and differences, by a distance, by evidence and by a ratio."""
    draws = Draws(4, 2_000, 0.4)
    made.guard(None, draws.y, gates=True, queries=60, charges=6, reveals=3, estimate=0.8)
    ratio = made.view("f1", metric="f1", estimate=0.75, allow=["vacuous"])
    squares = made.view("brier", metric="brier", spread=0.25, estimate=0.2, allow=["vacuous"])
    one, two = draws.right(0.8), draws.right(0.9)
    made.ask("gate", subject=one, at_least=0.85, name="no")
    made.ask("gate", subject=two, at_least=0.7, name="yes")
    made.ask("gate", squares, subject=draws.probable(0.6), at_least=0.1, name="no")
    made.ask("gate", ratio, subject=one, at_least=0.9, name="no")
    rails = {ratio: 0.5, squares: (draws.probable(0.3), 0.3)}
    made.ask("gate", subject=two, at_least=0.71, guardrails=rails, name="with rails")
    made.ask("gate", subject=Difference(one, two), at_least=-0.05, name="no")
    made.ask("gate", squares, subject=draws.probable(0.3), at_least=0.2, name="yes")
    made.ask("gate", subject=Difference(two, one), at_least=0.0, name="yes")
    only = made.view("one class", metric="roc_auc", sample_weight=draws.y, estimate=0.9, allow=["vacuous"])
    made.ask("gate", only, subject=draws.probable(0.3), at_least=0.7, name="fails")
    made.close(
        [
            ("gate", {"subject": draws.right(0.8), "at_least": 0.9}),
            ("gate", {"of": squares, "subject": draws.probable(0.4), "at_least": 0.02}),
            ("gate", {"subject": Difference(draws.right(0.9), one), "at_least": 0.2}),
        ]
    )


def ratios(made: Making) -> None:
    """Metrics that are decided by their rows' counts and ranks: every outcome, a width, a choice, several finals."""
    draws = Draws(5, 2_000, 0.4)
    settings = {"queries": 60, "charges": 20, "estimate": 0.75, "reveals": 1, "choices": [3], "vacuous": True}
    made.guard(None, draws.y, metric="f1", **settings)
    made.ask("evaluate", subject=draws.right(0.8), prior=0.76)
    for rate, prior in ((0.7, 0.9), (0.9, 0.7), (0.5, 0.95), (0.9, 0.05)):
        made.ask("evaluate", subject=draws.right(rate), prior=prior)
    made.ask("reveal", subject=draws.right(0.8), prior=0.7)
    few = np.where(draws.y, np.cumsum(draws.y) <= 12, 1).astype(np.uint8)
    rare = made.view("rare", sample_weight=few, prevalence=0.5, allow=["vacuous"])
    for rate, prior in ((0.97, 0.4), (0.99, 0.6), (0.97, 0.2), (0.99, 0.5)):
        made.ask("evaluate", rare, subject=draws.right(rate), prior=prior)
    none = made.view("none", metric="average_precision", sample_weight=1 - draws.y, allow=["vacuous"])
    made.ask("evaluate", none, subject=draws.probable(0.3), prior=0.7, name="fails")
    three = [draws.right(rate) for rate in (0.7, 0.8, 0.75)]
    made.ask("choose", subjects=three, priors=[0.66, 0.75, 0.7])
    precise = made.view("precision", metric="average_precision", estimate=0.9, allow=["vacuous"])
    made.ask("evaluate", precise, subject=draws.probable(0.3), prior=0.95)
    ranked = made.view("ranked", metric="roc_auc", estimate=0.9, allow=["vacuous"])
    made.ask("evaluate", ranked, subject=draws.probable(0.4), prior=0.5)
    made.ask("evaluate", ranked, subject=draws.probable(0.4), prior=0.9)
    correlated = made.view("correlated", metric="matthews_corrcoef", estimate=0.6, allow=["vacuous"])
    made.ask("evaluate", correlated, subject=draws.right(0.8), prior=0.9)
    classes = made.view("classes", metric="f1_macro", estimate=0.8, allow=["vacuous"])
    made.ask("evaluate", classes, subject=draws.right(0.8), prior=0.5)
    balanced = made.view("balanced", metric="balanced_accuracy", estimate=0.8, allow=["vacuous"])
    made.ask("evaluate", balanced, subject=draws.right(0.8), prior=0.8)
    made.ask("evaluate", balanced, subject=draws.right(0.9), prior=0.5)
    last = [draws.right(0.8), draws.right(0.85)]
    scores = [draws.probable(0.3), draws.probable(0.2)]
    also = [balanced, correlated, classes, (precise, scores), (ranked, scores)]
    made.ask("final", subject=last, also=also, name="last")
    made.close()


def graded(made: Making) -> None:
    """A mean of graded losses: agreed, charged, a width, a final."""
    draws = Draws(6, 2_000)
    settings = {"queries": 40, "tolerance": 0.12, "estimate": 0.2, "spread": 0.25}
    made.guard(None, draws.y, metric="brier", reveals=1, choices=[3], **settings)
    made.ask("evaluate", subject=draws.probable(0.45), prior=0.17)
    made.ask("evaluate", subject=draws.probable(0.7), prior=0.1)
    made.ask("evaluate", subject=draws.probable(0.4), prior=0.5)
    made.ask("reveal", subject=draws.probable(0.5), prior=0.18)
    three = [draws.probable(spread) for spread in (0.5, 0.4, 0.6)]
    made.ask("choose", subjects=three, priors=[0.2, 0.15, 0.26])
    made.ask("compare", new=three[0], old=three[1], prior=0.05)
    right = made.view("accuracy", metric="zero_one_loss", estimate=0.2, allow=["vacuous"])
    made.ask("evaluate", right, subject=draws.right(0.8), prior=0.2)
    last = draws.probable(0.35)
    made.ask("final", subject=[last, three[0], three[1]], priors=[0.1, 0.2, 0.15])
    made.close()


def values(made: Making) -> None:
    """Errors of real targets, a share of variance about a centre, and others of the same rows."""
    draws = Draws(7, 1_500)
    y = draws.any() * 4
    near = [np.clip(y + draws.any() * wide - wide / 2, 0, 4) for wide in (1.0, 2.0, 3.0, 1.5, 0.5, 0.7)]
    made.guard(
        None,
        y,
        metric=["mae", {"lower": 0.0, "upper": 4.0}],
        queries=40,
        tolerance=0.4,
        estimate=0.4,
        spread=0.3,
        reveals=1,
        noise=0.0,
    )
    made.ask("evaluate", subject=near[0], prior=0.25)
    made.ask("evaluate", subject=near[2], prior=0.1)
    made.ask("reveal", subject=near[1], prior=0.45)
    made.ask("compare", new=near[1], old=near[0], prior=0.25)
    explained = ["r2", {"lower": 0.0, "upper": 4.0, "center": 2.0}]
    share = made.view("share", metric=explained, estimate=0.8, allow=["vacuous"])
    made.ask("evaluate", share, subject=near[0], prior=0.9)
    made.ask("evaluate", share, subject=near[2], prior=0.9)
    made.close(
        [
            ("evaluate", {"subject": near[3], "prior": 0.36}),
            ("evaluate", {"of": share, "subject": near[4], "prior": 0.95}),
            ("final", {"subject": near[5]}),
        ]
    )


def judged(made: Making) -> None:
    """Scores that judges gave to rows with ids, with repeats."""
    draws = Draws(8, 800)
    ids = np.array([f"q{k}" for k in range(800)])
    made.guard(None, ids, metric="score", queries=40, tolerance=0.2, estimate=0.6, reveals=1)
    scores = [draws.any(), (draws.any(4) < 0.7).astype(np.uint8), draws.any() ** 2]
    made.ask("evaluate", subject=scores[0], prior=0.5)
    made.ask("evaluate", subject=scores[1], prior=0.72)
    made.ask("evaluate", subject=scores[2], prior=0.8)
    made.ask("reveal", subject=(draws.any(4) < 0.6).astype(np.uint8), prior=0.6)
    best = made.view("best", metric="pass@2", estimate=0.9, allow=["vacuous"])
    made.ask("evaluate", best, subject=(draws.any(3) < 0.7).astype(np.uint8), prior=0.91)
    made.close(
        [
            ("evaluate", {"subject": (draws.any(4) < 0.5).astype(np.uint8), "prior": 0.5}),
            (
                "evaluate",
                {"of": best, "subject": (draws.any(3) < 0.6).astype(np.uint8), "prior": 0.84},
            ),
        ]
    )


def clusters(made: Making) -> None:
    """Rows of groups, each of which counts; how large groups are is told, and a slice of them."""
    draws = Draws(9, 2_000)
    groups = (np.arange(2_000) // 3 % 640).astype(np.uint16)
    some = (draws.any() < 0.6).astype(np.uint8)
    made.guard(
        None,
        draws.y,
        groups=groups,
        queries=30,
        charges=3,
        estimate=0.8,
        reveals=3,
        noise=1e-3,
        vacuous=True,
    )
    made.ask("evaluate", subject=draws.right(0.8), prior=0.8)
    made.ask("evaluate", subject=draws.right(0.6), prior=0.9)
    made.ask("reveal", subject=draws.right(0.8), prior=0.8)
    sliced = made.view("some", sample_weight=some, allow=["vacuous"])
    made.ask("evaluate", sliced, subject=draws.right(0.8), prior=0.8)
    made.close([("evaluate", {"subject": draws.right(0.75), "prior": 0.77})])


def halted(made: Making) -> None:
    """Charges that run out in a batch."""
    draws = Draws(10, 2_000)
    settings = {"noise": 2e-3, "estimate": 0.8, "vacuous": True}
    made.guard(None, draws.y, queries=30, charges=2, threshold=0.1, **settings)
    made.ask("evaluate", subject=draws.right(0.8), prior=0.8)
    several = [draws.right(rate) for rate in (0.8, 0.7, 0.75, 0.6, 0.8)]
    made.ask("evaluate", subject=several, prior=[0.8, 0.95, 0.75, 0.9, 0.8])
    made.ask("evaluate", subject=draws.right(0.8), prior=0.8)
    made.close([("final", {"subject": draws.right(0.8)})])


def rotated(made: Making) -> None:
    """Two holdouts of rows with ids, and a witness that is not there any more."""
    draws, fresh = Draws(12, 600), Draws(13, 700)
    names = np.array([f"row {k}" for k in range(1_300)])
    with tempfile.TemporaryDirectory(prefix="witness-") as folder:
        heads = Path(folder) / "guard.heads"
        settings = {"threshold": 0.1, "noise": 0.0, "estimate": 0.8, "vacuous": True}
        made.guard(None, draws.y, queries=20, charges=1, ids=names[:600], witness=heads, **settings)
        made.ask("evaluate", subject=draws.right(0.5), prior=0.9)
        made.rotate(Rows(None, fresh.y, ids=names[600:]), allow={"vacuous"})
        made.ask("evaluate", subject=fresh.right(0.8), prior=0.8)
        shutil.move(heads, made.folder / "guard.db.heads")
        made.close([("evaluate", {"subject": fresh.right(0.5), "prior": 0.8})])


def private(made: Making) -> None:
    """Labels of which no list is told: exact matches of text, and candidates of which one fails."""
    draws = Draws(15, 600)
    labels = np.array([f"Answer {k}" for k in range(600)])

    def right(rate: float) -> Any:
        return np.where(draws.any() < rate, np.char.upper(labels), "another").astype("U20")

    made.guard(
        draws.features(), labels, queries=30, charges=2, estimate=0.8, reveals=1, choices=[2], vacuous=True
    )
    made.ask("evaluate", subject=right(0.8), prior=0.8, name="agreed")
    made.ask("evaluate", subject=right(0.5), prior=0.9, name="charged")
    made.ask("reveal", subject=right(0.7), prior=0.7)
    made.ask("choose", subjects=[right(0.6), right(0.7)], priors=[0.7, 0.6])
    made.close([("evaluate", {"subject": right(0.9), "prior": 0.9})])


LEDGERS = [
    accuracy,
    claims,
    guesses,
    outcomes,
    gates,
    ratios,
    graded,
    values,
    judged,
    clusters,
    halted,
    rotated,
    private,
]
