"""Nothing private leaves by any side door: log, repr, pickle, traceback, ledger, plot, warning, standard output."""

import io
import itertools
import logging
import pickle
import pprint
import re
import sqlite3
import struct
import sys
import traceback
import types
import warnings

import numpy as np
import pytest
from guard.forging import every_way
from within_reach import ALONE

from reusable_holdout import Answer, Metric, Question, ReusableHoldout, verify
from reusable_holdout.errors import (
    BudgetError,
    Halted,
    HoldoutError,
    InputError,
    LedgerMismatchError,
    ModelError,
)
from reusable_holdout.guard.subjects import prepared_subjects
from reusable_holdout.report import report_page
from reusable_holdout.ways import State

ROWS = 1_999  # a prime: exact scores have digits that nothing else has
GRID = 1 << 32
MARK = 271828.1828459045  # stands in the private features
# (rows that are right, prior): the first is agreed, the second charged, with noise in between
QUESTIONS = {"agreed": (1_399, 0.71), "charged": (1_601, 0.62)}
_TIME = re.compile(rb"\d\d:\d\d:\d\d[.,]\d+|\b1\d{9}\.\d+")
_TIMES_OF_RECORDS = {"created", "msecs", "relativeCreated"}  # whose digits are a short needle's by chance


class Secrets:
    """What must stay inside, in all the forms it could take outside."""

    def __init__(self, guard, labels, asked):
        view = guard._view
        check, content = view.ways.main, view.content
        noise, mechanism = check._noise, check.core(State())
        key = guard._view.key[1].read_text().strip()
        self.numbers, self.units = [MARK], []
        units = [check.grid(prior) for _, prior in QUESTIONS.values()]
        named = [one.content for one in prepared_subjects(view, list(asked.values()), paired=False)]
        candidates = [
            content.question("choose", one, unit, 0) for one, unit in zip(named, units, strict=True)
        ]
        choice = content.several(b"choose", candidates)
        for (name, predictions), subject, candidate in zip(asked.items(), named, candidates, strict=True):
            right, prior = QUESTIONS[name]
            prepared = view.holdout.bound.prepare(predictions)
            score = int(view.holdout.bound.score(prepared[None])[0])
            unit = check.grid(prior)
            deviation = abs(score - unit)
            for question in (
                content.question("check", subject, unit, 0),
                *(content.question(way, subject, unit, 0) for way in ALONE),
                content.several(b"noise", [choice, candidate]),
            ):
                draws = {
                    label: noise.draw(law, label=label, question=question)
                    for label, law in (("query", mechanism._query_law), ("answer", mechanism._answer_law))
                }
                self.units += [*draws.values(), deviation + draws["query"], score + draws["query"]]
                self.units += [score + draws["answer"]]
            self.units += [score, deviation]
            self.numbers += [right / ROWS, 1 - right / ROWS, abs(right / ROWS - prior)]
        threshold = int(0.1 * GRID)
        charged = content.question("check", named[-1], units[-1], 0)
        for state in (State(), State(charges=1, last_charged=charged)):
            drawn = check.core(state)._offset
            self.units += [drawn, threshold + drawn]
        assert all(abs(unit) > 10_000 for unit in self.units)  # no needle is a small number
        self.numbers += [unit / GRID for unit in self.units]
        self.private = [bytes.fromhex(key), key.encode(), np.asarray(labels, np.uint8).tobytes()[:32]]
        self.private += [np.asarray(labels, np.int64).tobytes()[:128], b"a private word"]
        self.private += [" ".join(map(str, labels[:20].tolist())).encode()]
        self.private += [", ".join(map(str, labels[:20].tolist())).encode()]
        self.needles = [needle for _, needle in self._needles()]

    def _needles(self):
        for number in self.numbers:
            yield number, f"{abs(number):.15f}"[:9].encode()  # cut off: a prefix of every longer form
            for digits in (5, 6):
                if abs(number) >= 10 ** (
                    3 - digits
                ):  # four digits that count: three are in many files by chance
                    yield number, f"{abs(number):.{digits}f}".encode()
            for code in ("<d", ">d"):
                yield number, struct.pack(code, number)
        for unit in self.units:
            yield unit, str(abs(unit)).encode()
            yield unit, hex(abs(unit))[2:].encode()
            for code in ("<q", ">q"):
                packed = struct.pack(code, unit)
                short = packed.strip(b"\x00\xff")  # fewer bytes than five are in any picture by chance
                yield unit, short if len(short) >= 5 else packed
        for private in self.private:
            yield private, private

    def found_in(self, *blobs):
        """Needles found in text or bytes."""
        found = []
        for blob in blobs:
            content = blob.encode(errors="surrogateescape") if isinstance(blob, str) else blob
            content = _TIME.sub(b"", content)  # it has any short needle's digits by chance
            found += [needle for needle in self.needles if needle in content and _stands_in(content, needle)]
        return found


def _stands_in(content, needle):
    """Whether a short number stands there as a number of its own: a few digits are in any longer one by chance."""
    if not re.fullmatch(rb"[0-9a-f]{1,8}", needle):
        return True
    return re.search(rb"(?<![0-9a-f])" + needle + rb"(?![0-9a-f])", content) is not None


@pytest.fixture
def labels():
    return np.random.default_rng(0).integers(0, 2, ROWS)


@pytest.fixture
def features(labels):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(ROWS, 2))
    X[:, 1] = MARK
    return X


def right_in(labels, count, variant=0):
    """Predictions that are right in so many rows."""
    wrong = np.roll(np.arange(ROWS) >= count, variant)
    return np.where(wrong, 1 - labels, labels)


@pytest.fixture
def asked(labels):
    return {name: right_in(labels, right) for name, (right, _) in QUESTIONS.items()}


@pytest.fixture
def guard(make_guard, tmp_path, features):
    return make_guard(tmp_path / "guard.db", X=features, noise=0.002, seed=18, reveals=3, choices=[2, 2, 2])


@pytest.fixture
def secrets(guard, labels, asked):
    return Secrets(guard, labels, asked)


class Telling:
    """A model that fails on the holdout and quotes it, in the way it is told to."""

    def __init__(self, kind):
        self.kind = kind

    def predict(self, X):
        words = f"a private word: {X[0, 1]} in {X!r}"
        raise self.kind(words, reason=words, history=X) if self.kind is Halted else self.kind(words)


class Loud:
    """A model that talks while it predicts."""

    def predict(self, X):
        words = f"a private word: {X[0, 1]}"
        print(words)  # noqa: T201 - this is what it does
        print(words, file=sys.stderr)  # noqa: T201
        warnings.warn(words, UserWarning, stacklevel=1)
        logging.getLogger("model").warning(words)
        return np.zeros(len(X), dtype=int)


def outcome(action):
    """What a call gives or raises; its locals tell nothing, so that tracebacks can be searched whole."""
    try:
        return action()
    except BaseException as error:
        return error


def exercise(guard, labels, asked):
    """Everything an analyst can do; what came out of it."""
    charged, agreed = asked["charged"], asked["agreed"]
    batch = [right_in(labels, 1_390, k) for k in range(1, 30)]
    priors = [prior for _, prior in QUESTIONS.values()]
    asked_for = [
        lambda: guard.reveal(agreed, prior=priors[0], name="revealed"),
        lambda: guard.reveal(charged, prior=priors[1]),
        lambda: guard.choose([agreed, charged], priors, name="chosen"),
        lambda: guard.reveal(agreed[:-1], prior=0.5),
        lambda: guard.choose([agreed, charged], [0.5]),
        lambda: guard.reveal(Telling(ValueError), prior=0.5),
        lambda: guard.choose([Telling(ValueError), Telling(KeyError)], [0.5, 0.6]),
        lambda: guard.choose([right_in(labels, 1_000, k) for k in range(99)], [0.5] * 99),
        lambda: (guard.price("reveal"), guard.price("choose", candidates=2), guard.final_width),
        *(lambda way=way: guard.ask([Question(way, agreed, priors[0])]) for way in ALONE),
    ]
    last = right_in(labels, 1_200)  # whose exact score is no secret any more
    actions = [
        lambda: guard.evaluate(agreed, prior=QUESTIONS["agreed"][1], name="agreed"),
        lambda: guard.evaluate(charged, prior=QUESTIONS["charged"][1], name="charged"),
        lambda: guard.evaluate(agreed, prior=QUESTIONS["agreed"][1]),
        lambda: guard.evaluate(agreed[:-1], prior=0.5),
        lambda: guard.evaluate(agreed, prior=np.nan),
        lambda: guard.evaluate(agreed + 5, prior=0.5),
        lambda: guard.evaluate(list([agreed] * 2), prior=[0.5]),
        lambda: guard.evaluate([right_in(labels, 1_000, k) for k in range(99)], prior=[0.5] * 99),
        lambda: guard.evaluate(object(), prior=0.5),
        lambda: guard.evaluate(Telling(ValueError), prior=0.5),
        lambda: guard.evaluate([agreed, *batch], prior=[QUESTIONS["agreed"][1], *[0.95] * len(batch)]),
        lambda: guard.evaluate(batch[-1], prior=0.2),
        guard.history,
        lambda: pickle.loads(pickle.dumps(guard)),
        lambda: verify(guard.ledger),
        lambda: ReusableHoldout.open(guard.ledger, None, 1 - labels),
        lambda: (guard.plan, guard.metric, guard.halted, guard.halt_reason, guard.charges_left),
        lambda: guard.reveal(agreed, prior=0.6),
        lambda: guard.final([Telling(ValueError), object()]),
        lambda: guard.final(last, name="final"),
        lambda: guard.final(charged),
        lambda: guard.final(Telling(ValueError)),
        guard.history,
        guard.certificate,
    ]
    told = [outcome(action) for action in asked_for]
    outcomes = [outcome(action) for action in actions]
    kinds = [type(one).__name__ for one in outcomes]
    assert kinds[:2] == ["Answer", "Answer"]
    assert [one.charged for one in outcomes[:2]] == [False, True]
    assert kinds[7:12] == ["BudgetError", "InputError", "ModelError", "Halted", "Halted"]
    assert isinstance(outcomes[15], LedgerMismatchError)
    assert kinds[17:22] == ["Halted", "InputError", "Answer", "Halted", "Halted"]
    names = [type(one).__name__ for one in told]
    assert names[:3] == ["Answer", "Answer", "Choice"]
    assert names[3:9] == ["InputError", "InputError", "ModelError", "ModelError", "BudgetError", "tuple"]
    assert names[9:] == ["list"] * len(ALONE)
    return [*told, *outcomes]


def test_the_search_finds_what_it_looks_for(guard, secrets, labels):
    score = 1_399 / ROWS
    for leak in (
        f"score={score}",
        f"{score:.6f}",
        repr([score]),
        struct.pack("<d", score),
        pickle.dumps(score),
        str(int(score * GRID)),
        repr(guard._view.holdout.y.tolist()),
        pickle.dumps(guard._view.holdout.y),
        pickle.dumps(guard._view.holdout.X),
        guard._view.key[1].read_bytes(),
        f"{guard._view.ways.main.core(State())._offset}",
    ):
        assert secrets.found_in(leak), leak
    assert not secrets.found_in("0.7", repr(guard), str(ROWS))


# ---- channels


def test_nothing_private_is_logged(guard, secrets, labels, asked, caplog):
    names = ["", *logging.root.manager.loggerDict]
    before = {name: logging.getLogger(name).level for name in names}
    try:
        for name in names:
            logging.getLogger(name).setLevel(logging.DEBUG)
        exercise(guard, labels, asked)
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
    parts = [
        {name: one for name, one in vars(record).items() if name not in _TIMES_OF_RECORDS}
        for record in caplog.records
    ]
    assert secrets.found_in(caplog.text, *map(repr, parts)) == []


def test_nothing_private_is_in_any_repr(guard, secrets, labels, asked):
    outcomes = exercise(guard, labels, asked)
    inside = [guard, *vars(guard).values(), *every_way(guard), *vars(guard._view.ways.main).values()]
    inside += vars(guard._view.transcript).values()
    inside += [
        guard._view.holdout.bound,
        guard._view.holdout.bound.statistic,
        *vars(guard._view.ledger).values(),
    ]
    inside += [part for part in vars(guard._view.holdout.bound).values() if part is not guard._view.holdout.y]
    for one in [*outcomes, *inside]:
        told = [repr(one), str(one), f"{one}", pprint.pformat(one)]
        told += [repr(vars(one))] if isinstance(one, ReusableHoldout | BaseException) else []
        assert secrets.found_in(*told) == [], type(one)


def test_nothing_private_is_in_a_report(guard, secrets, labels, asked):
    exercise(guard, labels, asked)
    page, verified = report_page(guard.ledger)
    assert verified.problems == []
    assert secrets.found_in(page) == []


def test_nothing_private_is_in_any_pickle(guard, secrets, labels, asked):
    pickled = 0
    for one in [guard, *exercise(guard, labels, asked)]:
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert secrets.found_in(pickle.dumps(one, protocol)) == [], type(one)
            pickled += 1
    assert pickled > 60


def test_errors_survive_pickling(guard, labels, asked):
    for error in exercise(guard, labels, asked):
        if isinstance(error, BaseException):
            again = pickle.loads(pickle.dumps(error))
            assert type(again) is type(error)
            assert str(again) == str(error)
            if isinstance(error, Halted):
                assert (again.reason, again.answers) == (error.reason, error.answers)
                assert again.history.equals(error.history)


def test_nothing_private_is_warned_of_or_printed(guard, secrets, labels, asked, capfd):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exercise(guard, labels, asked)
        outcome(lambda: guard.evaluate(Loud(), prior=0.5))
    assert [str(one.message) for one in caught] == []
    assert secrets.found_in(*capfd.readouterr()) == []


@pytest.mark.parametrize("heard", ["raise", "warn", "call", "print"])
def test_numbers_that_underflow_on_the_holdout_tell_nothing(make_guard, labels, heard, capfd):
    """The square of a tiny probability underflows if the row's label is 0, and only then."""
    told = []
    for label in (0, 1):
        guard = make_guard(metric="brier", threshold=None, charges=3, seed=1)
        tiny = np.where(labels == label, 1e-200, 0.5)
        events = []
        with (
            warnings.catch_warnings(record=True) as caught,
            np.errstate(all=heard, call=lambda *event, events=events: events.append(event)),
        ):
            warnings.simplefilter("always")
            answer = guard.evaluate(tiny, prior=0.3)
        told.append((answer.query, events, caught, *capfd.readouterr()))
    assert told == [(1, [], [], "", "")] * 2


@pytest.mark.parametrize("durable", [False, True])
def test_a_model_that_prints_and_warns_is_not_heard(make_guard, tmp_path, features, capfd, durable):
    guard = make_guard(tmp_path / "guard.db" if durable else None, X=features)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert guard.evaluate(Loud(), prior=0.5).query == 1
    assert (*capfd.readouterr(), caught) == ("", "", [])


def test_a_question_leaves_warnings_and_logging_as_they_were(make_guard, features):
    guard = make_guard(X=features)
    filters, disabled = list(warnings.filters), logging.root.manager.disable
    guard.evaluate(Loud(), prior=0.5)
    assert (list(warnings.filters), logging.root.manager.disable) == (filters, disabled)


def test_a_model_that_logs_is_not_heard(make_guard, features, caplog):
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger().addHandler(handler)
    try:
        assert make_guard(X=features).evaluate(Loud(), prior=0.5).query == 1
    finally:
        logging.getLogger().removeHandler(handler)
    assert "private" not in stream.getvalue() + caplog.text


def test_nothing_private_is_in_the_ledger(guard, secrets, labels, asked, tmp_path):
    exercise(guard, labels, asked)
    files = [path for path in tmp_path.glob("guard.db*") if not path.name.endswith((".key", ".holdout"))]
    assert {"guard.db", "guard.db-wal"} <= {path.name for path in files}  # not yet merged: both are searched
    assert secrets.found_in(*[path.read_bytes() for path in files]) == []
    connection = sqlite3.connect(tmp_path / "guard.db")
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert set(tables) == {"configuration", "answers"}
    values = [
        value for table in tables for row in connection.execute(f"SELECT * FROM {table}") for value in row
    ]
    connection.close()
    numbers = np.array([value for value in values if isinstance(value, int | float)], dtype=float)
    assert len(numbers) > 20
    for secret in secrets.numbers:
        assert np.abs(numbers - secret).min() > 1e-9
    assert not set(numbers.tolist()) & set(map(float, secrets.units))
    assert secrets.found_in(*[value for value in values if isinstance(value, str | bytes)]) == []
    guard.close()
    assert secrets.found_in((tmp_path / "guard.db").read_bytes()) == []


def test_nothing_is_drawn_that_is_not_in_the_history(guard, secrets, labels, asked):
    exercise(guard, labels, asked)
    history = guard.history()
    ax = guard.plot()
    columns = ["query", "prior", "value", "low", "high", "charges_left"]
    known = {0.0, 1.0, float(guard.plan.charges), *history[columns].to_numpy(float).ravel().tolist()}
    drawn = []
    for axes in ax.figure.axes:
        for line in axes.lines:
            drawn += [*np.ravel(line.get_xdata()), *np.ravel(line.get_ydata())]
        for collection in axes.collections:
            drawn += [*np.ravel(collection.get_offsets())]
            drawn += [one for path in collection.get_paths() for one in path.vertices.ravel()]
    assert len(drawn) > 20
    assert {float(one) for one in drawn if not np.isnan(one)} <= known  # what failed has no value to draw
    texts = [text.get_text() for text in ax.figure.findobj(lambda artist: hasattr(artist, "get_text"))]
    assert secrets.found_in(*texts) == []
    import matplotlib.pyplot as plt

    plt.close(ax.figure)


# ---- tracebacks

PATHS = {
    "predictions": (InputError, lambda s: s.guard.evaluate([0, 1], prior=0.5)),
    "prior": (InputError, lambda s: s.guard.evaluate(s.agreed, prior=2.0)),
    "batch": (BudgetError, lambda s: s.guard.evaluate(list(s.many), prior=[0.5] * 99)),
    "model": (InputError, lambda s: s.guard.evaluate(object(), prior=0.5)),
    "failing model": (ModelError, lambda s: s.guard.evaluate(Telling(ValueError), prior=0.5)),
    "failing replay": (ModelError, lambda s: [outcome(s.fail), s.fail()]),
    "failing metric": (ModelError, lambda s: s.own.evaluate(s.agreed, prior=0.5)),
    "failing metric in a batch": (ModelError, lambda s: s.own.evaluate([s.agreed], prior=[0.5])),
    "reveal": (InputError, lambda s: s.guard.reveal([0, 1], prior=0.5)),
    "reveal that is refused": (InputError, lambda s: s.own.reveal(s.agreed, prior=0.5)),
    "choice": (InputError, lambda s: s.guard.choose([s.agreed, [0, 1]], [0.5, 0.5])),
    "choice among too many": (BudgetError, lambda s: s.guard.choose(list(s.many), [0.5] * 99)),
    "choice that is refused": (InputError, lambda s: s.own.choose(list([s.agreed] * 2), [0.5, 0.6])),
    "final": (InputError, lambda s: s.guard.final([0, 1])),
    "failing reveal": (ModelError, lambda s: s.guard.reveal(Telling(ValueError), prior=0.5)),
    "failing choice": (
        ModelError,
        lambda s: s.guard.choose([Telling(ValueError), Telling(OSError)], [0.5, 0.6]),
    ),
    "failing final": (ModelError, lambda s: s.guard.final(Telling(ValueError))),
    "failing metric in a final": (ModelError, lambda s: s.own.final([s.agreed, s.many[0]])),
    "after the final": (Halted, lambda s: [outcome(s.end), s.guard.reveal(s.agreed, prior=0.5)]),
    "second final": (Halted, lambda s: [outcome(s.end), s.guard.final(s.agreed)]),
    "inside a reveal": (HoldoutError, lambda s: s.broken.reveal(s.agreed, prior=0.5)),
    "inside a choice": (HoldoutError, lambda s: s.broken.choose([s.agreed], [0.5])),
    "inside a final": (HoldoutError, lambda s: s.broken.final(s.agreed)),
    "price": (InputError, lambda s: s.guard.price("reveal", prior=2.0)),
    "halt": (Halted, lambda s: [s.halt(), s.guard.evaluate(s.agreed, prior=0.31)]),
    "halt in a batch": (Halted, lambda s: s.guard.evaluate(list(s.many[:30]), prior=[0.95] * 30)),
    "inside": (HoldoutError, lambda s: s.broken.evaluate(s.agreed, prior=0.5)),
    "inside a batch": (HoldoutError, lambda s: s.broken.evaluate([s.agreed], prior=[0.5])),
    "closed": (HoldoutError, lambda s: s.closed.evaluate(s.agreed, prior=0.5)),
    "closed history": (HoldoutError, lambda s: s.closed.history()),
    "pickling": (HoldoutError, lambda s: pickle.dumps(s.memory)),
    "settings": (HoldoutError, lambda s: s.make(confidence=2.0)),
    "impossible plan": (HoldoutError, lambda s: s.make(tolerance=1e-9)),
    "metric and labels": (HoldoutError, lambda s: s.make(metric="mae")),
    "ledger": (HoldoutError, lambda s: s.make(ledger="/nonexistent/guard.db")),
    "mismatch": (LedgerMismatchError, lambda s: s.make(ledger=s.ledger, queries=41)),
    "other data": (LedgerMismatchError, lambda s: s.open(X=None)),
}


def quoting_metric():
    """A metric that fails on good predictions, and quotes the labels."""

    def loss(y, predictions):
        if 0.65 < (predictions == y).mean() < 0.75:
            raise ValueError(f"a private word: {y!r}")
        return (predictions == y).astype(float)

    return Metric(name="quoting", lower=0, upper=1, greater_is_better=True, response="labels", loss=loss)


@pytest.fixture
def stage(make_guard, guard, labels, features, asked, tmp_path):
    """What the paths use. Its repr tells nothing, for it stands in the frames that are searched."""
    own = make_guard(X=features, metric=quoting_metric(), reveals=0)
    broken, closed = make_guard(X=features), make_guard(X=features)
    closed.close()
    many = [right_in(labels, 1_390, k) for k in range(99)]

    def failing(*_):
        raise ArithmeticError(f"a private word in {labels!r}")

    broken._view.holdout.bound.score = failing

    class Stage(types.SimpleNamespace):
        def __repr__(self):
            return "<stage>"

    return Stage(
        guard=guard,
        own=own,
        broken=broken,
        closed=closed,
        memory=make_guard(X=features),
        agreed=asked["agreed"],
        many=many,
        ledger=tmp_path / "guard.db",
        end=lambda: guard.final(many[0]),
        fail=lambda: guard.evaluate(Telling(ValueError), prior=0.5),
        halt=lambda: outcome(lambda: guard.evaluate(list(many[:30]), prior=[0.95] * 30)),
        make=lambda **changes: make_guard(X=features, **changes),
        open=lambda **changes: ReusableHoldout.open(
            **{"ledger": tmp_path / "guard.db", "X": features, "y": labels, **changes}
        ),
    )


def library_frames(error):
    """Frames of this library in an exception and all it is chained to."""
    chain, seen = [error], []
    while chain:
        one = chain.pop()
        if one is None or any(one is other for other in seen):
            continue
        seen.append(one)
        chain += [one.__cause__, one.__context__]
    for one in seen:
        for frame, _ in traceback.walk_tb(one.__traceback__):
            if "reusable_holdout" in frame.f_code.co_filename and "tests" not in frame.f_code.co_filename:
                yield frame


def private_locals(frame, X, y):
    """Names of locals that are the holdout or hold it, at any depth of plain containers."""

    def holds(value, depth=3):
        if isinstance(value, np.ndarray):
            return np.shares_memory(value, X) or np.shares_memory(value, y)
        if depth and isinstance(value, list | tuple | dict):
            parts = value.values() if isinstance(value, dict) else value
            return any(holds(part, depth - 1) for part in parts)
        return False

    return [name for name, value in frame.f_locals.items() if holds(value)]


@pytest.mark.parametrize("path", PATHS)
def test_no_traceback_holds_anything_private(stage, secrets, features, labels, path):
    kind, act = PATHS[path]
    error = outcome(lambda: act(stage))
    assert isinstance(error, kind), error
    assert error.__cause__ is None
    assert error.__context__ is None
    frames = list(library_frames(error))
    assert {name for frame in frames for name in private_locals(frame, features, labels)} == set()
    text = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    own = re.compile(r"^ +(X|y|labels|features|args|changes) = .*\n", re.MULTILINE)  # of these tests' frames
    library = "".join(
        entry
        for entry in traceback.TracebackException.from_exception(error, capture_locals=True).stack.format()
        if "tests/" not in entry
    )
    assert secrets.found_in(library, own.sub("", text), str(error), repr(error), repr(error.args)) == []


class Private(BaseException):
    """Not an Exception, so that nothing that catches those stops it."""


@pytest.mark.parametrize(
    "kind",
    [
        *(ValueError, InputError, MemoryError, RecursionError, StopIteration, GeneratorExit, SystemExit),
        *(Private, Halted),
    ],
)
def test_whatever_a_model_raises_on_the_holdout_is_withheld_and_takes_a_charge(guard, secrets, kind):
    error = outcome(lambda: guard.evaluate(Telling(kind), prior=0.5))
    assert secrets.found_in(str(error), repr(error), repr(vars(error))) == []
    assert isinstance(error, ModelError)
    assert guard.history()["charged"].tolist() == [True]  # that it fails is a fact about the holdout


def test_a_model_that_gives_nonsense_on_the_holdout_takes_a_charge_and_is_not_quoted(guard, secrets):
    class Nonsense:
        def __init__(self, answer):
            self.answer = answer

        def predict(self, X):
            return self.answer(X) if len(X) == ROWS else np.zeros(len(X))

    answers = [lambda X: X, lambda X: X[:, 1], lambda X: [f"a private word {X[0, 1]}"] * ROWS, lambda _: None]
    for answer, prior in zip(answers, itertools.count(50), strict=False):
        error = outcome(lambda a=answer, p=prior: guard.evaluate(Nonsense(a), prior=p / 100))
        assert isinstance(error, ModelError | Halted)
        assert secrets.found_in(str(error), repr(error)) == []


# ---- two holdouts that must look the same


def everything_released(make_guard, ledger, labels, y, monkeypatch):
    """Every observable of a guard of `y`, asked about the same predictions, in text."""
    clock = itertools.count(1_000_000)
    monkeypatch.setattr("time.time", lambda: float(next(clock)))
    guard = make_guard(ledger, y=y, seed=3, reveals=2, choices=[2])
    told = [
        outcome(lambda: guard.reveal(right_in(labels, 1_399), prior=0.7)),
        outcome(lambda: guard.choose([right_in(labels, r) for r in (1_399, 1_600)], [0.71, 0.8])),
        guard.price("choose", candidates=2),
        guard.final_width,
    ]
    for number, right in enumerate((1_399, 1_401, 1_601, 1_199)):
        prior = (0.7, 0.71, 0.6, 0.62)[number]
        told.append(outcome(lambda r=right, p=prior: guard.evaluate(right_in(labels, r), prior=p)))
    batch = [right_in(labels, 1_390, k) for k in range(20)]
    told += outcome(lambda: guard.evaluate(list(batch), prior=[0.7] * 10 + [0.9] * 10)).answers
    told.append(outcome(lambda: guard.reveal(batch[0], prior=0.7)))
    # the holdouts' values are the same: of the four rows in which they differ, two are right in either
    told.append(outcome(lambda: guard.final([right_in(labels, 1_390), right_in(labels, 900)])))
    told += [outcome(lambda: guard.evaluate(labels[:5], prior=0.5)), guard.history(), guard]
    told += [outcome(lambda: make_guard(y=y, metric="nonsense")), guard.plan, guard.classes]
    guard.close()
    connection = sqlite3.connect(ledger)
    rows = connection.execute("SELECT * FROM answers").fetchall()
    text = connection.execute("SELECT text FROM configuration").fetchone()[0]
    connection.close()
    told += [row[:-1] for row in rows]  # but for the seals, which stand on the keyed digest below
    told.append(re.sub(r'"holdout":"[0-9a-f]{64}"', "", text))
    return "\n".join(map(repr, told)), [one.charged for one in told if isinstance(one, Answer)]


def test_two_holdouts_with_equal_decisions_are_the_same_to_everyone(
    make_guard, tmp_path, labels, monkeypatch
):
    """Noninterference, exactly: without noise the decisions are all that may depend on the holdout."""
    other = labels.copy()
    ones, zeros = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
    other[[ones[5], zeros[5], ones[-5], zeros[-5]]] = [0, 1, 0, 1]
    first, charged = everything_released(make_guard, tmp_path / "a.db", labels, labels, monkeypatch)
    second, also = everything_released(make_guard, tmp_path / "b.db", labels, other, monkeypatch)
    assert charged == also
    assert sorted(set(charged)) == [False, True]
    assert first == second
    # the twin: a holdout that decides otherwise looks otherwise
    third, _ = everything_released(make_guard, tmp_path / "c.db", labels, 1 - labels, monkeypatch)
    assert third != first
