"""Plans that say nothing: they may be computed, but no guard is made of one unless its owner insists."""

from __future__ import annotations

from dataclasses import replace

from reusable_holdout.errors import PlanError
from reusable_holdout.plan.numbers import round_up
from reusable_holdout.plan.outlook import Outlook
from reusable_holdout.plan.solution import nearest, needs, possible

__all__ = ["Vacuity"]

_WIDEST = 0.25  # of the range: answers within a wider tolerance say next to nothing
_ROUNDING = 1.0 + 1e-5  # what is printed has six digits


class Vacuity(Outlook):
    """Whether a plan's tolerances say anything."""

    @property
    def vacuous(self) -> bool:
        """Whether a tolerance is more than a quarter of its range: then the promise says nothing.

        That of scores, or that of differences of two, whose range is twice theirs.
        """
        return not (_says_something(self.tolerance, self.span) and self._differences_say_something)

    @property
    def _differences_say_something(self) -> bool:
        return _says_something(self.comparison_tolerance, 2.0 * self.span)

    def check_says_something(self, *, vacuous: bool) -> None:
        """Refuse to make a guard of a plan that says nothing.

        Parameters
        ----------
        vacuous : bool
            Whether the owner insists.

        Raises
        ------
        PlanError
            With the numbers that would do.
        """
        if vacuous:
            return
        insist = "nothing was made; pass vacuous=True to insist"
        if not _says_something(self.tolerance, self.span):
            found = {} if self._wish.shared.view else self._nearest_that_says_something()
            advice = (
                f"it needs {needs(found)}, or another metric"
                if found
                else "take more rows, fewer queries or charges, or another metric"
            )
            what = "the range of differences" if self._wish.family == "paired" else "the metric's range"
            raise PlanError(
                f"a guard's tolerance must be at most a quarter of {what}, {self.span:g}, to say anything; "
                f"it would be {self.tolerance:g}; {advice}; {insist}",
                found,
            )
        if not self._differences_say_something:
            widest = _WIDEST * 2.0 * self.span
            raise PlanError(
                "a guard's comparison_tolerance must be at most a quarter of the range of differences, "
                f"{2.0 * self.span:g}, to say anything; got {self.comparison_tolerance:g}; it needs one of {widest:g}; "
                f"{insist}",
                {"comparison_tolerance": widest},
            )

    def _nearest_that_says_something(self) -> dict[str, float]:
        if self._wish.tolerance is None:
            return nearest(self._wish, self.span, widest=_widest_derived(self.span))
        narrower = replace(self._wish, tolerance=_WIDEST)
        if possible(narrower):
            return {"tolerance": _WIDEST * self.span}
        found = nearest(narrower, self.span)
        return {name: value for name, value in found.items() if name != "tolerance"}


def _says_something(tolerance: float, span: float) -> bool:
    return tolerance <= _WIDEST * span * _ROUNDING


def _widest_derived(span: float) -> float:
    """Widest tolerance that a plan derives, as a fraction of the range: it rounds up twice, to three digits."""
    thousandths = range(round(1_000 * _WIDEST), 0, -1)
    return next(
        one for one in (some / 1_000 for some in thousandths) if _says_something(round_up(one * span), span)
    )
