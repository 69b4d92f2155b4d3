"""Prepare the data, run both searches, measure both on fresh rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.demo.datasets import load_adult
from reusable_holdout.demo.picture import draw
from reusable_holdout.demo.search import Part, Step, guarded_search, plain_search, propose
from reusable_holdout.errors import InputError, MissingExtraError
from reusable_holdout.guard import ReusableHoldout, verify
from reusable_holdout.registry import registry_of_its_own

_TRAIN = _HOLDOUT = 8_000
_QUERIES = 3_000
_PLAN: dict[str, Any] = {"tolerance": 0.05, "queries": _QUERIES, "estimate": 0.87}


@dataclass(frozen=True)
class DemoResult:
    """The results of the demo; every number was measured in this run.

    If a picture could not be drawn, `not_drawn` gives the reason.
    """

    rows: dict[str, int]
    queries: int
    plain: Step
    guarded: Step
    final: Step
    charges: int
    budget: int
    halted: str | None
    asked: int
    ledger_sound: bool
    files: dict[str, str]
    not_drawn: str = ""

    def __str__(self) -> str:
        rows = [
            ("", "reported", "interval", "fresh rows", "reported - fresh"),
            _row("plain holdout", self.plain),
            _row("guarded holdout", self.guarded),
            _row("its final", self.final),
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = "\n".join(
            "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )
        inside = all(one.low <= one.fresh <= one.high for one in (self.guarded, self.final))
        return (
            f"UCI Adult, accuracy: {self.rows['train']:,} training, {self.rows['holdout']:,} holdout and "
            f"{self.rows['fresh']:,} fresh rows; {self.queries:,} edits tried\n\n{table}\n\n"
            f"charges  {self.charges} of at most {self.budget}; {self.asked:,} questions answered\n"
            f"halted   {self.halted or 'no'}\n"
            f"both intervals {'hold' if inside else 'DO NOT HOLD'} the fresh score; ledger "
            f"{'sound' if self.ledger_sound else 'NOT SOUND'} when verified\n\n"
            + "\n".join(f"{name:<8} {path}" for name, path in self.files.items())
            + (f"\npicture  none: {self.not_drawn}" if self.not_drawn else "")
        )


def run_demo(*, folder: Path, seed: int = 0, progress: bool = False) -> DemoResult:
    """Run the same hill climb on a plain and on a guarded holdout, and measure both on fresh rows.

    Parameters
    ----------
    folder : Path
        Folder for the ledger, its key and the picture; it replaces the files of an earlier run.
    seed : int
        Seed of the split, the edits and the noise.
    progress : bool
        True to show a progress bar.

    Returns
    -------
    DemoResult

    Raises
    ------
    InputError
        If the folder cannot be used.
    """
    from tqdm import tqdm  # noqa: PLC0415

    ledger = _fresh_ledger(folder)
    train, holdout, fresh = _prepare(seed)
    edits = propose(_QUERIES - 1, features=train.ranks.shape[1], seed=seed)
    with registry_of_its_own():
        guard = ReusableHoldout(
            None, holdout.label, metric="accuracy", **_PLAN, ledger=ledger, allow={"no witness"}, seed=seed
        )
    with tqdm(total=2 * len(edits), disable=not progress, desc="searching", leave=False) as bar:
        plain = plain_search(edits, holdout=holdout, fresh=fresh, tick=bar.update)
        with guard:
            guarded, predictions, halt = guarded_search(
                edits, guard, train=train, holdout=holdout, fresh=fresh, tick=bar.update
            )
            final = guard.final(predictions, name="final")
            history = guard.history()
    files, not_drawn = {"ledger": str(ledger), "picture": str(folder / "demo.png")}, ""
    try:
        draw(plain, guarded, history, queries=_QUERIES, path=Path(files["picture"]))
    except MissingExtraError as missing:
        del files["picture"]
        not_drawn = str(missing)
    return DemoResult(
        rows={"train": len(train.label), "holdout": len(holdout.label), "fresh": len(fresh.label)},
        queries=_QUERIES,
        plain=plain[-1],
        guarded=guarded[-1],
        final=Step(final.query, final.value, guarded[-1].fresh, final.low, final.high),
        charges=int(history["charged"].sum()),
        budget=guard.plan.charges,
        halted=None if halt is None else halt.reason,
        asked=int(history["asked"].iloc[-1]),
        ledger_sound=verify(ledger).sound,
        files=files,
        not_drawn=not_drawn,
    )


def _prepare(seed: int) -> tuple[Part, Part, Part]:
    """Split, fit one model on the training rows, and give each part its out-of-sample probabilities."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415
    from sklearn.model_selection import cross_val_predict  # noqa: PLC0415

    X, y = load_adult()
    codes = X.apply(
        lambda column: column if column.dtype.kind in "if" else column.astype("category").cat.codes
    )
    values, label = codes.to_numpy(np.float64), y.to_numpy()
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(label))
    train, holdout, fresh = np.split(order, [_TRAIN, _TRAIN + _HOLDOUT])
    model = HistGradientBoostingClassifier(max_iter=60, random_state=seed)
    own = cross_val_predict(model, values[train], label[train], cv=5, method="predict_proba")[:, 1]
    model.fit(values[train], label[train])
    ranks = _ranks(values, train, rng)

    def unseen(rows: NDArray[np.int64]) -> Part:
        return Part(ranks[rows], model.predict_proba(values[rows])[:, 1], label[rows])

    return Part(ranks[train], own, label[train]), unseen(holdout), unseen(fresh)


def _ranks(
    values: NDArray[np.float64], train: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return each value's rank among the training values, ties broken at random, so that subgroups have equal sizes."""
    columns = [(np.sort(column[train]), column) for column in values.T]
    below, upto = (
        np.array([np.searchsorted(ordered, column, side=side) for ordered, column in columns])
        for side in ("left", "right")
    )
    return np.asarray((below + rng.uniform(size=below.shape) * (upto - below)) / len(train)).T


def _fresh_ledger(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        ledger = folder / "guard.db"
        for suffix in ("", "-wal", "-shm", ".key", ".holdout"):
            ledger.with_name(ledger.name + suffix).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"the demo must be able to write to {folder}; it cannot ({error.strerror})"
        ) from None
    return ledger


def _row(name: str, told: Step) -> tuple[str, ...]:
    interval = "none" if (told.low, told.high) == (0.0, 1.0) else f"[{told.low:.4f}, {told.high:.4f}]"
    return name, f"{told.reported:.4f}", interval, f"{told.fresh:.4f}", f"{told.reported - told.fresh:+.4f}"
