"""Three ways to judge an automatic optimiser: its own development rows, a home-made gate with a counter, or a box."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from reusable_holdout_box import NoWallWarning, RemoteHoldout

from climbing.worlds import World
from reusable_holdout.errors import Halted

__all__ = ["WAYS", "Climb"]

_COUNTED = 200
_BETTER = 0.005
_EVERY = 20  # steps between points of a trace


class Climb(NamedTuple):
    """The record of one climb.

    Attributes
    ----------
    reported, fresh : float
        Score of the last system: the optimiser's report, and the score on fresh rows.
    low, high : float
        Certified interval; NaN if there is none.
    questions, charges : int
        Questions about the holdout, and the number of them that were charged.
    honest, accepted : int
        Proposals that look better on development rows and are better on fresh rows by half a point at least, and the
        number of them that were taken.
    seconds : float
    trace : list of (int, float, float)
        Step, reported, fresh.
    """

    reported: float
    fresh: float
    low: float
    high: float
    questions: int
    charges: int
    honest: int
    accepted: int
    seconds: float
    trace: list[tuple[int, float, float]]


class _Climber:
    """The common part of all ways: propose, score on development rows, keep a trace."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.rng = world, np.random.default_rng([seed, 11])
        self.system = world.start()
        self.score, self.truth = world.development(self.system), world.fresh(self.system)
        self.honest = self.accepted = 0
        self.trace: list[tuple[int, float, float]] = []
        self.started = time.perf_counter()

    def climb(self, steps: int, accepts: Callable[[Any, float], bool]) -> None:
        """Take each proposal that is better on development rows, if `accepts` says yes."""
        for step in range(steps):
            proposed = self.world.proposed(self.system, self.rng)
            score = self.world.development(proposed)
            if score > self.score:
                truth = self.world.fresh(proposed)
                better, taken = truth >= self.truth + _BETTER, accepts(proposed, score)
                self.honest += better
                self.accepted += better and taken
                if taken:
                    self.system, self.score, self.truth = proposed, score, truth
            if step % _EVERY == 0 or step == steps - 1:
                self.trace.append((step, self.reported, self.truth))

    @property
    def reported(self) -> float:
        """The score that the optimiser reports."""
        return self.score

    def ended(
        self, *, low: float = np.nan, high: float = np.nan, questions: int = 0, charges: int = 0
    ) -> Climb:
        """Return the record."""
        return Climb(
            self.reported,
            self.truth,
            low,
            high,
            questions,
            charges,
            self.honest,
            self.accepted,
            time.perf_counter() - self.started,
            self.trace,
        )


def plainly(world: World, steps: int, seed: int, _: Path) -> Climb:
    """Take each proposal that is better on development rows, and report that score."""
    climber = _Climber(world, seed)
    climber.climb(steps, lambda *_: True)
    return climber.ended()


class _Counter(_Climber):
    """A home-made gate: it compares systems on the holdout, until its counter ends."""

    def __init__(self, world: World, seed: int) -> None:
        super().__init__(world, seed)
        self.best, self.asked = world.holdout(self.system), 1

    @property
    def reported(self) -> float:
        """The holdout's score."""
        return self.best

    def passes(self, proposed: Any, _: float) -> bool:
        """Return True if it is better on the holdout; False once the counter has ended."""
        if self.asked == _COUNTED:
            return False
        self.asked += 1
        found = self.world.holdout(proposed)
        if found <= self.best:
            return False
        self.best = found
        return True


def counted(world: World, steps: int, seed: int, _: Path) -> Climb:
    """Take a proposal if it is better on the holdout, too, and report the holdout's score."""
    climber = _Counter(world, seed)
    climber.climb(steps, climber.passes)
    return climber.ended(questions=climber.asked)


class _Guarded(_Climber):
    """An optimiser that asks a box if its development score still holds."""

    def __init__(self, world: World, seed: int, box: RemoteHoldout) -> None:
        super().__init__(world, seed)
        self.box, self.charges, self.told, self.flattered = box, 0, self.score, 0.0

    @property
    def reported(self) -> float:
        """The last answer of the box."""
        return self.told

    def believes(self, proposed: Any, score: float) -> bool:
        """Return True if the box agrees; otherwise draw other development rows, and note their bias."""
        try:
            answer = self.box.evaluate(self.world.asked(proposed), prior=score - self.flattered)
        except Halted:
            return False
        if not answer.charged:
            self.told = answer.value
            return True
        self.charges += not answer.replayed
        self.world.split(self.rng)
        self.score = self.world.development(self.system)
        anew = self.world.development(proposed)
        near = answer.threshold / 2.0  # inside this, no correction is needed
        self.flattered = anew - float(np.clip(anew, answer.value - near, answer.value + near))
        self.told = self.score - self.flattered
        return False


def boxed(world: World, steps: int, seed: int, folder: Path) -> Climb:
    """Take a proposal if the box agrees with its development score, and report the final."""
    with warnings.catch_warnings(), _box(world, steps, folder) as url:
        warnings.simplefilter("ignore", NoWallWarning)  # here both are one user
        box = RemoteHoldout(url)
        climber = _Guarded(world, seed, box)
        climber.climb(steps, climber.believes)
        questions = box.queries_asked
        final = box.final(world.asked(climber.system))
        box.close()
        climber.told = final.value
        return climber.ended(low=final.low, high=final.high, questions=questions, charges=climber.charges)


WAYS = {"plain": plainly, "counter": counted, "box": boxed}


@contextmanager
def _box(world: World, steps: int, folder: Path) -> Iterator[str]:
    """Run a box in another process; on a real machine it has a user of its own."""
    rows, place = folder / "rows.csv", folder / "box"
    pd.DataFrame({"row": world.labels}).to_csv(rows, index=False)
    command = [sys.executable, "-m", "reusable_holdout", "box"]
    told = [f"--charges={world.charges}", f"--estimate={world.estimate:.2f}", f"--queries={steps}"]
    kind = ["--ids", str(rows), "--id=row"] if world.judged else ["--labels", str(rows)]
    allowed = ["--allow", "evaluate", "final"]
    made = [*command, "init", str(place), *kind, *told, *allowed]
    quiet = subprocess.DEVNULL
    subprocess.run(made, check=True, stdout=quiet)  # noqa: S603 - its own program
    process = subprocess.Popen([*command, "serve", str(place)], stdout=quiet, stderr=quiet)  # noqa: S603 - its own
    try:
        yield f"unix://{place / 'socket'}"
    finally:
        process.terminate()
        process.wait()
