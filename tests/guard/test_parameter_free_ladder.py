"""The parameter-free Ladder decides as published and pays for what it tells; pair flips do not pass its intervals."""

import contextlib
import itertools
import logging
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from attacks import PlainHoldout, coin_truth, flip_attack
from cases import for_each
from long_tests import GUARD
from scipy import stats

from reusable_holdout import Metric, Plan, ReusableHoldout, verify
from reusable_holdout.errors import Halted, HoldoutError, InputError, ModelError
from reusable_holdout.guard.kinds.ladder import ParameterFreeLadderWarning, _sum_of_squares
from reusable_holdout.ledger.epoch import Epoch
from reusable_holdout.ledger.storage import SqlLedger
from reusable_holdout.metrics import mae

ROWS, RUNS = 400, 60
MOST_MISSES = stats.binom.isf(1e-9, RUNS, 0.05)
POLICY = "parameter-free-ladder"


class Published:
    """Algorithm 2 of Blum and Hardt (2015) as printed, in fractions; losses are whole multiples of 1/unit."""

    policy = "ladder"  # asked without priors

    def __init__(self, labels, unit=1):
        self.labels, self.unit = labels, unit
        self.best, self.losses = math.inf, np.zeros(len(labels), dtype=np.int64)

    def evaluate_predictions(self, predictions):
        losses = np.rint(np.abs(predictions - self.labels) * self.unit).astype(np.int64)
        rows, differences = len(losses), losses - self.losses
        loss = Fraction(int(losses.sum()), rows * self.unit)
        mean = Fraction(int(differences.sum()), rows)
        s_squared = (int((differences**2).sum()) - rows * mean**2) / (rows - 1) / self.unit**2
        if loss < self.best and (self.best - loss) ** 2 > s_squared / rows:
            self.best, self.losses = Fraction(round(loss * rows), rows), losses
        return PlainHoldout([0, 1]).evaluate_predictions([0, 1], prior=0.0)._replace(value=float(self.best))


class WithoutPriors:
    """A guard as the attacks see it."""

    policy = "ladder"

    def __init__(self, guard):
        self._guard = guard

    def evaluate_predictions(self, predictions):
        return self._guard.evaluate_predictions(predictions)


def coins(seed, rows=ROWS):
    return np.random.default_rng([21, seed]).integers(0, 2, rows)


def guard_of(labels, metric="zero_one_loss", X=None, **changes):
    classes = {"classes": [0, 1]} if isinstance(metric, str) else {}
    settings = {
        "queries": ROWS,
        "charges": ROWS,
        "policy": POLICY,
        "seed": 1,
        "vacuous": True,
        **classes,
        **changes,
    }
    with pytest.warns(ParameterFreeLadderWarning, match="adapts to the data"):
        return ReusableHoldout(X, labels, metric=metric, **settings)


def pair_flips(holdout, seed, questions=ROWS):
    return flip_attack(
        holdout,
        rows=ROWS,
        truth=coin_truth(ROWS),
        metric="zero_one_loss",
        questions=questions,
        settle=False,
        seed=seed,
    )


def with_errors(labels, count, start=0):
    """Predictions that are wrong in so many rows, from one on."""
    predictions = labels.copy()
    predictions[start : start + count] ^= 1
    return predictions


# ---- pair flips


@pytest.mark.long(*GUARD)
def test_pair_flips_halve_the_loss_that_the_published_ladder_reports():
    """0.50 to 0.25 in n submissions; the population loss stays 0.50."""
    results = [pair_flips(Published(coins(seed)), seed) for seed in range(20)]
    allowance = 6 * 0.5 / math.sqrt(ROWS * 20)
    assert np.mean([result.values[0] for result in results]) == pytest.approx(0.5, abs=allowance)
    assert np.mean([result.answer for result in results]) == pytest.approx(0.25, abs=allowance)
    assert {result.truth for result in results} == {0.5}


@pytest.mark.long(*GUARD)
def test_every_interval_holds_under_pair_flips_though_the_charges_never_run_out():
    """The guard reports what the published ladder does, number for number, and its intervals say what that is worth."""
    misses, naive, last = 0, 0, []
    for seed in range(RUNS):
        labels = coins(seed)
        guard = guard_of(labels)
        result = pair_flips(WithoutPriors(guard), seed)
        misses += not result.covered
        assert (result.questions, result.halted) == (ROWS, None)
        last.append(result.answer)
        naive += guard.plan.certificate().bound.upper(result.answer, log_level=math.log(0.05 / ROWS)) < 0.5
        if seed < 10:
            assert result.values.tolist() == pair_flips(Published(labels), seed).values.tolist()
    assert misses <= MOST_MISSES
    assert np.mean(last) < 0.27  # the attack works: only the intervals stand in its way
    assert naive > MOST_MISSES  # and intervals for as many fixed questions would not


@pytest.mark.long(*GUARD)
@pytest.mark.parametrize("wish", [{"charges": 3}, {"tolerance": 0.3}])
def test_with_the_charges_of_a_plan_pair_flips_halt_the_guard(wish):
    misses = 0
    for seed in range(RUNS):
        guard = guard_of(coins(seed), **{"charges": None, **wish})
        result = pair_flips(WithoutPriors(guard), seed)
        misses += not result.covered
        assert result.halted == "charges"
        assert result.charges == guard.plan.charges < 10
        assert result.questions < ROWS / 2
        assert result.answer > 0.5 - guard.plan.tolerance
    assert misses <= MOST_MISSES


# ---- the published decisions


def told(asked, predictions):
    return [asked.evaluate_predictions(each).value for each in predictions]


def search(labels, seed, submissions=60):
    """Submissions of an honest search: some better, most not, each wrong in rows of its own."""
    rng = np.random.default_rng([22, seed])
    rates = np.clip(np.linspace(0.5, 0.15, submissions) + rng.normal(0, 0.04, submissions), 0, 1)
    return [np.where(rng.random(len(labels)) < rate, 1 - labels, labels) for rate in rates]


@for_each("seed", range(5))
def test_honest_submissions_are_decided_as_published_while_there_are_charges(seed):
    labels = coins(seed)
    submissions = search(labels, seed)
    expected = told(Published(labels), submissions)
    assert 4 < len(set(expected)) < 40
    assert told(guard_of(labels), submissions) == expected
    assert told(guard_of(labels, "accuracy"), submissions) == pytest.approx([1 - loss for loss in expected])
    few = guard_of(labels, charges=4)
    answered = []
    with pytest.raises(Halted, match="all 4 charges"):
        answered.extend(few.evaluate_predictions(each).value for each in submissions)
    assert few.history()["value"].tolist() == expected[: few.queries_asked]


@for_each("seed", range(3))
def test_real_losses_are_decided_as_published(seed):
    """Losses in multiples of 1/64, exact on the grid of scores."""
    rng = np.random.default_rng([23, seed])
    labels = np.zeros(ROWS)
    largest = np.clip(np.linspace(64, 20, 60) + rng.normal(0, 6, 60), 0, 64).astype(int)
    submissions = [rng.integers(0, most + 1, ROWS) / 64 for most in largest]
    expected = told(Published(labels, unit=64), submissions)
    assert 4 < len(set(expected)) < 40
    assert told(guard_of(labels, mae(lower=0.0, upper=1.0)), submissions) == pytest.approx(expected)
    fourfold = guard_of(labels, mae(lower=0.0, upper=4.0), estimate=2.0)
    assert told(fourfold, [4 * each for each in submissions]) == pytest.approx(
        [4 * each for each in expected]
    )


@for_each(
    ("mended", "broken", "better"),
    [
        (1, 0, False),  # the gain is the standard error itself: a tie
        (2, 0, True),  # the pair flip
        (1, 1, False),
        (3, 1, False),  # a tie again: the gain squared is the number of rows that differ
        (4, 1, True),
        (6, 3, False),
        (7, 3, True),
        (45, 55, False),
    ],
)
def test_a_gain_must_exceed_the_standard_error_of_the_difference(mended, broken, better):
    """With m rows mended and b broken: a new best if and only if (m - b)^2 > m + b."""
    labels = coins(0)
    first, second = with_errors(labels, 100), with_errors(labels, 100 - mended, start=mended)
    second[200 : 200 + broken] ^= 1
    guard = guard_of(labels)
    guard.evaluate_predictions(first)
    answer = guard.evaluate_predictions(second)
    assert answer.charged is better is (mended > broken and (mended - broken) ** 2 > mended + broken)
    assert answer.value == pytest.approx((100 - (mended - broken) * better) / ROWS)
    assert told(Published(labels), [first, second])[1] == answer.value


def test_an_improvement_that_rounding_hides_is_none():
    """Published, it would become the best to compare with, untold."""
    guard = guard_of(np.zeros(ROWS), mae(lower=0.0, upper=1.0))
    losses = (0.5, 0.499, 0.4985, 0.497, 0.496)  # 200, 199.6, 199.4, 198.8 and 198.4 rows' worth
    answers = [guard.evaluate_predictions(np.full(ROWS, loss)) for loss in losses]
    assert [answer.value for answer in answers] == [0.5, 0.5, 0.4975, 0.4975, 0.495]
    assert [answer.charged for answer in answers] == [True, False, True, False, True]


def test_before_the_first_submission_the_best_is_the_worst_there_is():
    labels = coins(1)
    guard = guard_of(labels, "accuracy")
    answers = [guard.evaluate_predictions(with_errors(labels, wrong)) for wrong in (400, 399, 398)]
    assert [(answer.prior, answer.value, answer.charged) for answer in answers] == [
        (0.0, 0.0, False),
        (0.0, 1 / ROWS, True),
        (1 / ROWS, 1 / ROWS, False),
    ]


def test_one_row_is_enough():
    guard = guard_of(np.array([1]), queries=3, charges=3)
    assert [guard.evaluate_predictions([each]).value for each in (0, 1)] == [1.0, 0.0]


def test_sums_of_squares_are_exact_beyond_64_bits():
    differences = np.random.default_rng(3).integers(-(1 << 32), (1 << 32) + 1, 1_000)
    differences[:2] = -(1 << 32), 1 << 32
    assert _sum_of_squares(differences) == sum(each**2 for each in differences.tolist())


# ---- one memory, many questions


class Crashing:
    """A model that fails on the holdout."""

    def predict(self, X):
        raise RuntimeError(X)


class Fixed:
    """A model that predicts what it is told to."""

    def __init__(self, predictions):
        self.predictions = predictions

    def predict(self, X):
        return self.predictions


def batched(guard, submissions):
    try:
        return guard.evaluate_many(submissions)
    except Halted as halt:
        return halt.answers


@pytest.mark.parametrize("charges", [6, ROWS])
def test_a_batch_decides_as_single_submissions_do(charges):
    labels = coins(2)
    submissions = search(labels, 2)
    batch, single = guard_of(labels, charges=charges), guard_of(labels, charges=charges)
    together = batched(batch, submissions[:25]) + ([] if batch.halted else batched(batch, submissions[25:]))
    alone = []
    with contextlib.suppress(Halted):
        alone.extend(single.evaluate_predictions(each) for each in submissions)
    assert len(together) == len(alone)
    for mine, theirs in zip(together, alone, strict=True):
        assert (mine.value, mine.charged, mine.prior) == (theirs.value, theirs.charged, theirs.prior)
        assert mine.low >= theirs.low - 1e-12  # the batch shares the history before it
        assert mine.high <= theirs.high + 1e-12
    assert batch.halted is (charges == 6)


def test_a_submission_replays_free_after_the_halt():
    labels = coins(3)
    guard = guard_of(labels, charges=1)
    submissions = [with_errors(labels, wrong) for wrong in (200, 150)]
    answer = guard.evaluate_predictions(submissions[0])
    assert guard.halt_reason == "charges"
    again = guard.evaluate_predictions(submissions[0])
    assert again == answer._replace(replayed=True)
    (batch,) = guard.evaluate_many([submissions[0]])
    assert batch == again
    with pytest.raises(Halted):
        guard.evaluate_predictions(submissions[1])
    assert guard.queries_asked == 1


@pytest.mark.parametrize("first", [True, False])
def test_a_failure_takes_a_charge_and_leaves_the_best_to_compare_with(first):
    """After it, a submission is a new best if and only if it would have been without it."""
    labels = coins(4)
    board = Published(labels)
    guard = guard_of(labels, X=np.zeros((ROWS, 1)))
    submissions = search(labels, 4)
    for place, each in enumerate(submissions):
        if place == (0 if first else 20):
            for _ in range(2):
                with pytest.raises(ModelError, match="words, are withheld"):
                    guard.evaluate(Crashing())
        assert guard.evaluate(Fixed(each)).value == board.evaluate_predictions(each).value
    history = guard.history()
    failed = history.iloc[0 if first else 20]
    assert failed["charged"]
    assert failed[["value", "low", "high"]].isna().all()
    assert len(history) == len(submissions) + 1


def test_a_metric_that_fails_on_some_submission_takes_a_charge():
    def loss(y_true, y_pred):
        if y_pred[0] == 2:
            raise RuntimeError
        return np.abs(y_true - y_pred)

    own = Metric(name="own", lower=0, upper=1, greater_is_better=False, loss=loss)
    labels = coins(5).astype(float)
    guard = guard_of(labels, own)
    guard.evaluate_predictions(np.abs(labels - 0.5))
    bad = labels.copy()
    bad[0] = 2
    other, better = bad.copy(), np.abs(labels - 0.25)
    other[1] = 1 - other[1]
    with pytest.raises(ModelError):
        guard.evaluate_predictions(bad)
    with pytest.raises(ModelError) as caught:
        guard.evaluate_many([bad, other, better])
    assert guard.history()["charged"].tolist() == [True, True, True, True]
    assert caught.value.answers[:2] == [None, None]
    best = caught.value.answers[2]
    assert (best.prior, best.value, best.charged) == (0.5, 0.25, True)


def test_a_decision_whose_commit_fails_is_forgotten(monkeypatch):
    """The lost new best is not compared with; asked again it is decided again."""
    labels = coins(6)
    submissions, lost = search(labels, 6), with_errors(labels, 10)
    guard, board = guard_of(labels), Published(labels)
    append = Epoch.append

    def failing(*_):
        raise MemoryError

    for place, each in enumerate(submissions):
        monkeypatch.setattr(Epoch, "append", failing)
        with pytest.raises(MemoryError):
            guard.evaluate_predictions(lost)
        with pytest.raises(MemoryError):
            guard.evaluate_many([with_errors(labels, 9), with_errors(labels, 3)])
        monkeypatch.setattr(Epoch, "append", append)
        assert guard.evaluate_predictions(each).value == board.evaluate_predictions(each).value
        assert guard.queries_asked == place + 1
    assert guard.evaluate_predictions(lost).value == 10 / ROWS


def test_the_losses_of_no_more_than_the_best_are_kept():
    labels = coins(7)
    guard = guard_of(labels)
    for each in search(labels, 7):
        guard.evaluate_predictions(each)
    guard.evaluate_many(search(labels, 8))
    guard.evaluate_predictions(labels)
    assert len(guard._ways.policy._bests) <= 2
    assert all(best is None or best.base is None for best in guard._ways.policy._bests.values())


# ---- what leaves the guard


def all_that_is_told(labels, predictions):
    guard = guard_of(labels, mae(lower=0.0, upper=1.0), queries=10, charges=5)
    answers = [guard.evaluate_predictions(np.full(ROWS, each)) for each in predictions]
    history = guard.history().drop(columns="asked_at")
    rows = [row._replace(asked_at=0.0, digest=b"") for row in guard._ledger.rows()]
    return answers, history.to_csv(), rows, repr(guard), str(guard.plan)


def test_neither_the_standard_error_nor_what_it_decided_is_told(caplog, capsys):
    """Two holdouts with the same two new bests; the differences of their losses spread unlike, and so do the rest."""
    holdouts = np.repeat([0.0, 2 / 3], [100, 300]), np.repeat([0.2, 0.8], [200, 200])
    losses = [[np.abs(each - labels) for each in (0.0, 0.4, 0.1)] for labels in holdouts]
    spreads = [np.std(second - first, ddof=1) for first, second, _ in losses]
    assert spreads == pytest.approx([math.sqrt(0.12), 0.2], rel=0.01)
    assert [third.mean() for *_, third in losses] == pytest.approx([0.45, 0.4])
    with caplog.at_level(logging.DEBUG):
        one, other = (all_that_is_told(labels, (0.0, 0.4, 0.1)) for labels in holdouts)
    assert one == other
    assert [(answer.value, answer.charged) for answer in one[0]] == [(0.5, True), (0.3, True), (0.3, False)]
    assert caplog.text == "".join(capsys.readouterr()) == ""


@pytest.mark.parametrize("metric", ["accuracy", "zero_one_loss"])
def test_all_but_the_scores_follows_from_the_transcript(tmp_path, metric):
    """A ledger on disk with the same rows is found sound; with one of them changed it is not."""
    labels = coins(9)
    guard = guard_of(labels, metric, X=np.zeros((ROWS, 1)))
    for each in search(labels, 9, 30):
        guard.evaluate_predictions(each)
    with pytest.raises(ModelError):
        guard.evaluate(Crashing())
    guard.evaluate_many(search(labels, 10, 30))
    rows, text = guard._ledger.rows(), guard._ledger.configuration()
    charged = next(place for place, row in enumerate(rows) if row.charged and place > 3)
    agreed = charged - 1
    forgeries = {
        "sound": {},
        "a best in no whole number of places": {charged: {"value": rows[charged].value + 0.5 / ROWS}},
        "a step of its own": {agreed: {"threshold": rows[agreed].threshold / 2}},
        "a prior of its own": {agreed: {"prior": 0.5, "value": 0.5}},
        "a place more than was paid for": {charged: {"value": rows[charged].value + 1 / ROWS}},
    }
    for number, changes in enumerate(forgeries.values()):
        forged = [row._replace(**changes.get(place, {})) for place, row in enumerate(rows)]
        disk = SqlLedger(tmp_path / f"{number}.db")
        disk.create(text, guard._ledger.known_rows(1))
        for _, batch in itertools.groupby(forged, key=lambda row: row.batch):
            with disk.transaction() as transaction:
                transaction.append(list(batch))
        disk.close()
        assert verify(tmp_path / f"{number}.db").sound is (not changes)


# ---- what is refused


def test_the_warning_names_the_line_that_made_the_guard_and_what_to_do():
    with pytest.warns(ParameterFreeLadderWarning, match='use policy="ladder"') as caught:
        ReusableHoldout(None, coins(0), queries=10, charges=3, policy=POLICY)
    (warning,) = caught
    assert warning.filename == __file__
    assert issubclass(warning.category, UserWarning)


def test_where_warnings_are_errors_the_words_of_this_one_are_not_withheld():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(HoldoutError, match="adapts to the data") as caught:
            ReusableHoldout(None, coins(0), queries=10, charges=3, policy=POLICY)
    assert isinstance(caught.value, ParameterFreeLadderWarning)


def test_no_other_policy_warns(make_guard):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for policy in ("thresholdout", "ladder", "guess-and-check", "gate"):
            make_guard(policy=policy)


@pytest.mark.parametrize("ledger", ["guard.db", "sqlite:///guard.db", "postgresql://nowhere/guard"])
def test_a_ledger_that_outlives_the_process_is_refused_before_anything_is_written(
    tmp_path, monkeypatch, ledger
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="memory of one process"):
        ReusableHoldout(None, coins(0), queries=10, charges=3, policy=POLICY, ledger=ledger)
    assert not list(tmp_path.iterdir())


@for_each("metric", ["balanced_accuracy", "roc_auc", "f1", "recall", "matthews_corrcoef"])
def test_a_metric_that_is_no_plain_mean_is_refused(metric):
    with pytest.raises(InputError, match="plain mean over"):
        ReusableHoldout(None, coins(0), queries=10, charges=3, policy=POLICY, metric=metric)


@pytest.mark.parametrize("weights", [np.arange(ROWS), np.arange(ROWS) % 2])
def test_weights_are_refused_and_so_are_slices(weights):
    with pytest.raises(InputError, match="or has weights"):
        ReusableHoldout(None, coins(0), queries=10, charges=3, policy=POLICY, sample_weight=weights)


@for_each(
    "stated",
    [
        {"threshold": 0.1},
        {"noise_scale": 0.01},
        {"family": "bounded-difference"},
        {"family": "paired"},
    ],
)
def test_a_plan_leaves_no_choice_of_step_and_noise(stated):
    with pytest.raises(InputError, match=r"leave it out|plain mean"):
        Plan(rows=ROWS, queries=10, charges=3, policy=POLICY, **stated)


def test_a_plan_has_the_step_of_its_rows():
    plan = Plan(rows=2_500, queries=100, tolerance=0.4, policy=POLICY, bounds=(-1.0, 3.0), family="bounded")
    assert plan.mechanism == "noiseless"
    assert (plan.noise_scale, plan.epsilon) == (0.0, math.inf)
    assert plan.threshold == pytest.approx(4 / 50)
    assert Plan.from_record(plan.record()) == plan
    unit = {"queries": 100, "charges": plan.charges, "policy": POLICY}
    rows = Plan(tolerance=0.1, **unit).rows  # in units of the range the same wish
    assert rows <= 2_500
    assert Plan(rows=rows, **unit).tolerance <= 0.1 < Plan(rows=rows - 9, **unit).tolerance


def test_priors_tolerances_and_comparisons_are_refused():
    labels = coins(0)
    guard = guard_of(labels)
    with pytest.raises(InputError, match="takes no prior"):
        guard.evaluate_predictions(labels, prior=0.5)
    with pytest.raises(InputError, match="takes no prior"):
        guard.evaluate_many([labels], [0.5])
    with pytest.raises(InputError, match="guess-and-check"):
        guard.evaluate_predictions(labels, tolerance=0.1)
    with pytest.raises(InputError, match="compares with the best so far by itself"):
        guard.compare_predictions(labels, 1 - labels)
    assert guard.queries_asked == 0


def test_what_is_asked_for_leaves_the_best_as_it_was_and_its_charges_whole():
    """Reveals and choices of better and of worse losses, between submissions; then the final."""
    labels = coins(0)

    def of(loss):
        return np.where(np.arange(ROWS) < loss * ROWS, 1 - labels, labels)

    guard = guard_of(labels, charges=2, reveals=2, choices=[2])
    assert guard.evaluate_predictions(of(0.4)).value == 0.4
    assert guard.reveal_predictions(of(0.1), prior=0.1).value == pytest.approx(0.1)
    assert guard.choose_predictions([of(0.2), of(0.9)], [0.2, 0.9]).index == 0
    worse = guard.evaluate_predictions(of(0.45))
    assert (worse.prior, worse.value, worse.charged) == (0.4, 0.4, False)
    better = guard.evaluate_predictions(of(0.2))
    assert (better.prior, better.told, better.charges_left) == (0.4, "steps 80", 0)
    assert guard.halt_reason == "charges"
    assert guard.final_predictions(of(0.2)).value == pytest.approx(0.2)
