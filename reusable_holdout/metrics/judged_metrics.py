"""Means of scores that a judge, a checker or a grader gave each row: rows have ids, and no labels."""

from __future__ import annotations

from reusable_holdout.errors import InputError
from reusable_holdout.metrics.beside_a_judge import BesideAJudge
from reusable_holdout.metrics.definition import is_finite
from reusable_holdout.metrics.judged import MeanOfRepeats, Passes
from reusable_holdout.metrics.metric import Metric, unit_metric

__all__ = ["pass_at", "pass_hat", "score", "score_with_judge"]

_LONGEST = 200


def score(*, lower: float = 0.0, upper: float = 1.0, of: str | None = None) -> Metric:
    """Mean of judged scores in [lower, upper]; the greater, the better.

    Replacing one row changes it by at most (upper - lower)/n.

    Parameters
    ----------
    lower, upper : float
        Bounds of a score, such as 1 and 5.
    of : str, optional
        Which of several scores of the same rows it is, such as a scorer's name: one of another name is another metric
        for :meth:`ReusableHoldout.on`, and may be a gate's guardrail.

    Raises
    ------
    InputError
        If the bounds are not finite with lower < upper, or `of` is no text; when asked, if a score lies outside.

    Notes
    -----
    Several scores of a row, its repeats, are averaged first. Normalised by its bounds it is a mean of n terms in
    [0, 1]: c_r = 1/n, sensitivity 1/n, sum of c_r^2 = 1/n.

    Examples
    --------
    >>> score(lower=1, upper=5).measure(["q1", "q2"], [[4, 5], [3, 3]])
    3.75
    >>> score(of="politeness").name
    'score[politeness]'
    """
    least, most = _bounds(lower, upper)
    if of is not None and not (isinstance(of, str) and 0 < len(of) <= _LONGEST and of.isprintable()):
        raise InputError(
            f"of must name a score, in at most {_LONGEST} printable characters; got {of!r}; rename it"
        )
    return Metric(
        name="score" if of is None else f"score[{of}]",
        response="judged",
        lower=least,
        upper=most,
        greater_is_better=True,
        parameters={"lower": least, "upper": most},
        kernel=MeanOfRepeats(least, most),
    )


def score_with_judge(*, labelled: int, power: float, lower: float = 0.0, upper: float = 1.0) -> Metric:
    """Mean of people's scores, made less noisy by a judge's scores of the same and of more rows.

    The judge must be one and the same for all rows: its score of a row depends on what is in the row, and not on
    whether people have scored it or what they said. A judge whose prompt, examples or training hold people's scores of
    the holdout's rows, or a column that copies them, makes intervals wrong, and in general nothing here can tell.

    Replacing one labelled row, with its partners, changes it by at most (1 + 2 power)(upper - lower)/labelled.

    Parameters
    ----------
    labelled : int
        How many rows people have scored: the first of the guard's ids. They must be drawn like the others.
    power : float
        How far the judge is followed, in [0, 1]: 0 leaves it out, and then all is as with :func:`score` of the labelled
        rows. :func:`judge_power` chooses it by rows that are not the holdout's.
    lower, upper : float
        Bounds of a score, of people and judge alike.

    Raises
    ------
    InputError
        If a number is out of its range; when the guard is made, if there are fewer further rows than labelled ones.

    Notes
    -----
    The further rows are dealt out to the labelled ones in turn. With Y_r people's score of a labelled row, f_r the
    judge's of it and g_r the mean of the judge's over its partners, the terms are

        z_r = Y_r - power f_r + power g_r,

    independent, of expectation E[Y] whatever function of a row the judge is, since f and g have one expectation, in
    [lower - power d, upper + power d] with d = upper - lower. So it is a mean of bounded terms like others, and all
    that holds of these holds of it. Each question may have a judge of its own, chosen by earlier answers. With m
    partners a term's variance is Var(Y - power f) + power^2 Var(f)/m, that of prediction-powered
    inference [1]_. An interval may end beyond the scores' bounds; the population's mean does not lie there.

    References
    ----------
    .. [1] Angelopoulos, Duchi, Zrnic (2023), "PPI++: efficient prediction-powered inference".

    Examples
    --------
    >>> none = float("nan")
    >>> both = [[1.0, 1.0], [0.0, 0.5], [none, 1.0], [none, 0.0]]
    >>> score_with_judge(labelled=2, power=0.5).measure(["q1", "q2", "q3", "q4"], both)
    0.375
    """
    least, most = _bounds(lower, upper)
    rows = int(labelled) if is_finite(labelled) and labelled == int(labelled) else 0
    if isinstance(labelled, bool) or rows < 1:
        raise InputError(
            f"labelled must be a whole number from 1 on; got {labelled!r}; count the rows people have scored"
        )
    if not (is_finite(power) and 0 <= power <= 1):
        raise InputError(
            f"power must be a number in [0, 1]; got {power!r}; let judge_power choose it by rows that are not the "
            "holdout's"
        )
    beyond = float(power) * (most - least)
    return Metric(
        name="score_with_judge",
        response="judged",
        lower=least - beyond,
        upper=most + beyond,
        greater_is_better=True,
        parameters={"labelled": rows, "power": float(power), "lower": least, "upper": most},
        kernel=BesideAJudge(rows, float(power), least, most),
    )


def pass_at(k: int) -> Metric:
    """pass@k: mean over rows of the chance that of k repeats at least one passes.

    Replacing one row changes it by at most 1/n.

    Parameters
    ----------
    k : int
        Repeats that are drawn; at least 1.

    Raises
    ------
    InputError
        If k is none; when asked, if there are fewer repeats, or scores other than 0 and 1.

    Notes
    -----
    Of a row with c passes in m repeats it is 1 - C(m - c, k)/C(m, k), the mean over all sets of k repeats, and so
    unbiased. It is a mean of n terms in [0, 1]: c_r = 1/n, sensitivity 1/n, sum of c_r^2 = 1/n.

    References
    ----------
    .. [1] Chen et al. (2021), "Evaluating large language models trained on code", equation (1).

    Examples
    --------
    >>> pass_at(2).measure(["q1", "q2"], [[1, 0, 0, 0], [0, 0, 0, 0]])
    0.25
    """
    return _passes("@", k, every=False)


def pass_hat(k: int) -> Metric:
    """pass^k: mean over rows of the chance that of k repeats all pass.

    Replacing one row changes it by at most 1/n.

    Parameters
    ----------
    k : int
        Repeats that are drawn; at least 1.

    Raises
    ------
    InputError
        If k is none; when asked, if there are fewer repeats, or scores other than 0 and 1.

    Notes
    -----
    Of a row with c passes in m repeats it is C(c, k)/C(m, k), the mean over all sets of k repeats, and so unbiased. It
    is a mean of n terms in [0, 1]: c_r = 1/n, sensitivity 1/n, sum of c_r^2 = 1/n.

    References
    ----------
    .. [1] Yao, Shinn, Razavi, Narasimhan (2024), "tau-bench: a benchmark for tool-agent-user interaction in real-world
       domains".

    Examples
    --------
    >>> pass_hat(2).measure(["q1", "q2"], [[1, 1, 1, 0], [0, 0, 0, 1]])
    0.25
    """
    return _passes("^", k, every=True)


def _passes(sign: str, k: int, *, every: bool) -> Metric:
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k < 10**6:
        raise InputError(
            f"k of pass{sign}k must be a whole number from 1 to 999999; got {k!r}; 1 is one repeat"
        )
    return unit_metric(f"pass{sign}{k}", "judged", Passes(k, every), parameters={"k": k})


def _bounds(lower: float, upper: float) -> tuple[float, float]:
    if not (is_finite(lower) and is_finite(upper) and 0 < float(upper) - float(lower) < 1e150):
        raise InputError(
            f"the scores' bounds must be finite with lower < upper, not 1e150 apart; got {lower!r} and {upper!r}; "
            "state which scores can be given"
        )
    return float(lower), float(upper)
