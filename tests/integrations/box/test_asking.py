"""RemoteHoldout of a box: the interface of the local guard, over a Unix socket."""

import contextlib
import json
import pickle
import socket
import sqlite3
import threading
import traceback
import types

import numpy as np
import pandas as pd
import pytest
from box_servers import answering
from cases import refuses
from integrations.box.conftest import LABELS, ROWS, WISH
from made_guards import made_guard
from reusable_holdout_box import NoWallWarning, RemoteHoldout, make_box, open_box, transport
from reusable_holdout_box.frames import packed
from reusable_holdout_box.guards import ask
from reusable_holdout_sklearn import guarded_scorer

from reusable_holdout import Answer, Difference, errors
from reusable_holdout.errors import BudgetError, Halted, HoldoutError, InputError, LedgerError, ModelError
from reusable_holdout.ledger.key_file import read_key_file
from reusable_holdout.metrics import rmse

pytestmark = pytest.mark.filterwarnings("ignore::reusable_holdout_box.NoWallWarning")


def predictions(share, shift=0):
    """Predictions that are right on so many rows."""
    wrong = (np.arange(ROWS) + shift) % ROWS >= round(share * ROWS)
    return np.where(wrong, 1 - LABELS, LABELS)


def local(y=LABELS, **wish):
    return made_guard(None, y, **WISH | wish)


# ---- the same as a local guard


def test_answers_are_those_of_the_guard_itself(remote):
    far, near = remote(allow=["evaluate", "compare", "gate"]), local()
    answers = []
    for guard in (far, near):
        first = guard.evaluate(predictions(0.9), prior=0.9, name="first")
        assert guard.evaluate(predictions(0.9), prior=0.9) == first._replace(replayed=True)
        answers += [
            first,
            guard.evaluate(predictions(0.9), prior=0.2),
            guard.compare(predictions(0.9), predictions(0.8), prior=0.1),
            guard.gate(Difference(predictions(0.7), predictions(0.9)), 0.0, tell_worse=True),
            *guard.evaluate([predictions(0.7, shift) for shift in range(3)], prior=[0.7, 0.7, 0.1]),
        ]
    assert answers[:7] == answers[7:]
    assert answers[3].outcome == "worse"
    columns = [one for one in near.history() if one != "asked_at"]
    pd.testing.assert_frame_equal(far.history()[columns], near.history()[columns])
    counts = ("queries_asked", "queries_left", "answered", "charges_left", "halted", "halt_reason", "epoch")
    for name in (*counts, "plan", "metric", "rows", "digest"):
        assert getattr(far, name) == getattr(near, name), name
    assert (far.classes.tolist(), far.ids[:2], far.has_features) == ([0, 1], ("r0", "r1"), False)


@pytest.mark.parametrize("metric", ["brier", "roc_auc", "f1", "log_loss", "rmse", "accuracy"])
def test_predictions_travel_without_loss(remote, metric):
    scores = np.random.default_rng(3).beta(2, 2, ROWS)
    if metric == "rmse":
        targets = np.random.default_rng(2).uniform(0, 1, ROWS).round(6)
        far, near = (
            remote(targets, metric="rmse", bounds=(0, 1)),
            local(targets, metric=rmse(lower=0, upper=1)),
        )
    else:
        far, near = (make(metric=metric, prevalence=0.5) for make in (remote, local))
        scores = (scores > 0.5).astype(int) if metric in {"f1", "accuracy"} else scores
    first, again = (guard.evaluate(scores, prior=0.4) for guard in (far, near))
    assert first == again


def test_judged_scores_come_with_repeats_and_by_ids(remote):
    far = remote(metric="pass@2", judged=True)
    passed = np.random.default_rng(0).random((ROWS, 3)) < 0.7
    first = far.evaluate(passed, prior=0.9)
    assert first == local(far.ids, metric="pass@2").evaluate(passed, prior=0.9)
    table = pd.DataFrame(passed, index=far.ids).iloc[::-1]
    assert far.evaluate(table, prior=0.9) == first._replace(replayed=True)
    assert far.evaluate([table, passed], prior=[0.9, 0.9])[1].replayed
    refuses(InputError, "0 or 1", far.evaluate, passed / 2, prior=0.9)


# ---- decisions of the owner


def test_a_way_that_is_not_allowed_is_refused_and_one_that_is_allowed_is_answered(remote):
    far = remote(allow=["reveal", "choose", "final"], charges=2, reveals=1, choices=[2])
    for refused in (far.evaluate, lambda one, prior: far.evaluate([one], prior=[prior])):
        refuses(InputError, "does not allow evaluate; nothing was", refused, predictions(0.9), prior=0.9)
    assert far.reveal(predictions(0.9), prior=0.9).way == "reveal"
    choice = far.choose([predictions(0.6), predictions(0.9)], [0.6, 0.9])
    assert (choice.index, choice.answer.way) == (1, "choose")
    for asked, words in (
        (
            lambda: far.gate(predictions(0.9), 0.5, guardrails={far: 0.5}),
            "takes no guardrails, .* leave guardrails= out",
        ),
        (
            lambda: far.choose(predictions(0.9), [0.9]),
            "among a list of candidates; got one subject; .*pass a list",
        ),
    ):
        refuses(InputError, words, asked)
    assert far.final(predictions(0.9)).way == "final"
    assert far.halt_reason == "final"


def test_a_box_that_cannot_be_made_leaves_nothing(tmp_path):
    labels, place = tmp_path / "labels.csv", tmp_path / "box"
    labels.write_text("y\n" + "0\n1\n" * 300)
    for error, wish in (
        (errors.PlanError, {"queries": 1000, "tolerance": 0.001}),
        (InputError, WISH | {"policy": "gate"}),
        (InputError, WISH | {"board": "claims"}),
        (InputError, WISH | {"allow": ["measure"]}),
        (InputError, WISH | {"ids": labels}),
    ):
        refuses(error, "", make_box, place, labels, **wish)
        assert not place.exists() or list(place.iterdir()) == []
    make_box(place, labels, **WISH)
    refuses(InputError, "is not empty", make_box, place, labels, **WISH)


def test_a_box_of_another_format_is_refused(boxed, tmp_path):
    """Those of earlier versions hold ledgers that are never asked again."""
    boxed()
    file = tmp_path / "box" / "private" / "box.json"
    written = json.loads(file.read_text())
    made = {name: one for name, one in written.items() if name != "format"}
    assert written == made | {"format": 3}
    older = made | {"verdict_only": False}  # as version 0.2 wrote it
    for other in (older, made, *(made | {"format": one} for one in (1, 2, 4, None)), [made]):
        file.write_text(json.dumps(other))
        refuses(LedgerError, r"must be what box init wrote.*nothing was opened", open_box, tmp_path / "box")
    file.write_text(json.dumps(written))
    assert open_box(tmp_path / "box").guard.rows == ROWS


# ---- refusals


def test_a_failure_comes_with_the_answers_beside_it(remote, monkeypatch):
    def failing(guard, *asked, **stated):
        raise ModelError("its words are withheld", [*ask(guard, *asked, **stated), None])

    far = remote()
    with monkeypatch.context() as patched, pytest.raises(ModelError, match="withheld") as caught:
        patched.setattr("reusable_holdout_box.desk.ask", failing)
        far.evaluate([predictions(0.9)], prior=[0.9])
    answer, failed = caught.value.answers
    assert failed is None
    assert answer == far.evaluate(predictions(0.9), prior=0.9)._replace(replayed=False)


def test_a_halt_is_a_halt(remote):
    far = remote(charges=2)
    asked = [predictions(0.9, shift) for shift in range(4)]
    halt = refuses(Halted, "", far.evaluate, list(asked), prior=[0.9, 0.2, 0.2, 0.2])
    assert halt.reason == far.halt_reason == far.halt().reason == "charges"
    assert [(one.query, one.charged) for one in halt.answers] == [(1, False), (2, True), (3, True)]
    assert halt.history["query"].tolist() == [1, 2, 3]
    refuses(Halted, "halted", far.evaluate, asked[3], prior=0.9)
    assert far.evaluate(asked[0], prior=0.9).replayed


def test_wrong_input_is_refused_and_costs_nothing(remote):
    far, good = remote(queries=2, charges=2), predictions(0.9)
    with pytest.raises(BudgetError, match="3 new questions asked, 2 left"):
        far.evaluate([predictions(0.9, shift) for shift in range(3)], prior=[0.9] * 3)
    for wrong in ([1], good + 5, np.where(good == 1, np.nan, 0.0), good.astype(str), object()):
        refuses(InputError, "", far.evaluate, wrong, prior=0.9)
    for prior in (7.0, "0.9", float("nan"), True, None):
        refuses(InputError, "prior", far.evaluate, good, prior=prior)
    for name in ("a\nb", "\x1b[2J", "=1+1", " =1+1", "\uff1d1+1", "x" * 201, "\u202eabc", 7):
        refuses(InputError, "name", far.evaluate, good, prior=0.9, name=name)
    for ask_about_a_model in (far.evaluate, lambda one: far.compare(one, one), guarded_scorer):
        refuses(InputError, "predictions", ask_about_a_model, far)
    assert far.queries_asked == 0


@pytest.mark.parametrize(
    "url", ["unix://", "unix:socket", "unix://host/socket", "ftp://x", "", "unix:///a?b", 7]
)
def test_an_address_that_is_none_is_refused(url):
    refuses(InputError, "url must be", RemoteHoldout, url)
    refuses(InputError, "takes no token", RemoteHoldout, "unix:///socket", "token")


# ---- connections that break


def test_a_box_that_does_not_answer_is_told_with_what_to_do(tmp_path):
    with pytest.raises(LedgerError, match=r"its owner starts it with box serve.*charged once at most"):
        RemoteHoldout(f"unix://{tmp_path}/socket", patience_seconds=0.05)


def test_something_that_is_no_box_is_told(tmp_path):
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "socket"))
        door.listen()

        def greet():
            with contextlib.suppress(OSError):
                while True:
                    with door.accept()[0] as caller:
                        caller.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=greet, daemon=True).start()
        refuses(HoldoutError, "not a box", RemoteHoldout, f"unix://{tmp_path}/socket", patience_seconds=0.05)
        door.shutdown(socket.SHUT_RDWR)


def test_a_question_whose_answer_was_lost_is_asked_again_and_charged_once(remote, monkeypatch):
    far = remote()
    real, lost = transport._received, []

    def received(*more):
        found = real(*more)
        if len(lost) < 2:
            lost.append(found)
            raise ConnectionResetError(0, "lost")
        return found

    monkeypatch.setattr(transport, "_received", received)
    answer = far.evaluate(predictions(0.9), prior=0.2)
    assert (answer.charged, answer.replayed, len(lost)) == (True, True, 2)
    assert (far.queries_asked, far.charges_left) == (1, 4)


def test_a_box_that_is_restarted_goes_on(tmp_path):
    (tmp_path / "labels.csv").write_text("y\n" + "0\n1\n" * 300)
    make_box(tmp_path / "box", tmp_path / "labels.csv", **WISH)
    with answering(tmp_path / "box") as url:
        far = RemoteHoldout(url, patience_seconds=5.0)
        far.evaluate(predictions(0.9), prior=0.2)
    with answering(tmp_path / "box"), far:
        assert far.evaluate(predictions(0.9), prior=0.2).replayed
        assert (far.queries_asked, far.charges_left) == (1, 4)


def test_a_batch_longer_than_a_message_goes_in_several(remote):
    far = remote(limits={"most_bytes": 16_000})
    answers = far.evaluate([predictions(0.9, shift) for shift in range(9)], prior=[0.9] * 9)
    assert [one.query for one in answers] == list(range(1, 10))
    refuses(InputError, "at most 16,000 bytes", far._transport.ask, {"ask": "evaluate"}, [np.zeros(4_000)])
    assert far.queries_asked == 9


def test_it_goes_to_worker_processes_and_threads(remote):
    far = remote()
    first = far.evaluate(predictions(0.9), prior=0.9)
    with pickle.loads(pickle.dumps(far)) as copy:
        assert copy.evaluate(predictions(0.9), prior=0.9) == first._replace(replayed=True)
    found = []
    threads = [threading.Thread(target=lambda: found.append(far.queries_asked)) for _ in range(8)]
    [one.start() for one in threads], [one.join() for one in threads]
    assert found == [1] * 8


def callers(opened, far, *starts):
    """Connections of others, each of which has sent the start of something."""
    for start in starts:
        caller = opened.enter_context(socket.socket(socket.AF_UNIX))
        caller.settimeout(0.5)
        caller.connect(far._transport.url.removeprefix("unix://"))
        caller.sendall(start)
        yield caller


def test_callers_who_never_finish_keep_nobody_out(remote):
    far = remote(limits={"connections": 4, "message_seconds": 0.3})
    with contextlib.ExitStack() as opened:
        list(callers(opened, far, *(b"", b"\0\0", packed({"ask": "about"})[:-3]) * 5))
        assert far.evaluate(predictions(0.9), prior=0.9).query == 1
        (caller,) = callers(opened, far, packed({"ask": "status"}) * 20)  # messages that come together
        found = b""
        while found.count(b"queries_left") < 20:
            found += caller.recv(1 << 16)


def test_long_messages_that_are_never_finished_take_bounded_memory(remote):
    far = remote(limits={"most_bytes": 100_000})
    with contextlib.ExitStack() as opened:
        halves = list(callers(opened, far, *[packed({"ask": "status"}, [np.zeros(12_000)])[:-8]] * 12))
        assert far.queries_asked == 0
        closed = 0
        for half in halves:
            with contextlib.suppress(TimeoutError, ConnectionResetError):
                half.settimeout(0.05)
                closed += half.recv(1) == b""
        assert closed >= 8


# ---- secrets


def searched(what, needles):
    """Return the secrets in what can be pickled, shown or told of a thing."""
    seen = [repr(what), str(what)]
    with contextlib.suppress(Exception):
        seen.append(repr({name: getattr(one, "__dict__", one) for name, one in vars(what).items()}))
    with contextlib.suppress(Exception):
        seen.append(pickle.dumps(what).decode("latin-1"))
    if isinstance(what, BaseException):
        seen += traceback.TracebackException.from_exception(what, capture_locals=True).format()
    return [needle for needle in needles if any(needle in one for one in seen)]


def outcome(call, *args, **kwargs):
    """Return what a call gives or raises, whose frames know no secret of the test's."""
    try:
        return call(*args, **kwargs)
    except (Halted, HoldoutError) as error:
        return error


def test_nothing_that_the_client_holds_shows_or_logs_is_secret(remote, tmp_path, caplog):
    labels = np.random.default_rng(5).integers(0, 2, ROWS)
    caplog.set_level("DEBUG")
    far, first = remote(labels, charges=1), labels[:64]
    key = read_key_file(tmp_path / "box" / "private" / "guard.db.key")
    needles = [key.hex(), key.decode("latin-1"), first.tobytes().decode("latin-1")]
    needles += [joint.join(map(str, first)) for joint in ("", " ", ", ")]
    things = [far, far.history(), far.plan, far.metric, far.classes]
    for prior, name in ((0.5, "a"), (0.99, "b"), (0.5, "c"), (7.0, "d"), (0.5, "\n")):
        asked = predictions(0.5, len(things))
        things.append(outcome(far.evaluate, asked, prior=prior, name=name))
    forbidden = ({"ask": "reveal"}, {"ask": "key"}, {"ask": "history", "after": -1})
    things += [outcome(far._transport.ask, head) for head in forbidden]
    assert [type(one) for one in things[5:]] == [Answer, Answer, Halted, *[InputError] * 5]
    things.append(things[7].history)
    assert [one for one in things if searched(one, needles)] == []
    assert not any(needle in caplog.text for needle in needles)
    assert searched(first.tolist(), needles)  # the search finds what is there
    assert searched(types.SimpleNamespace(key=key.hex()), needles)


def test_a_missing_wall_is_told(boxed):
    url = boxed()
    with pytest.warns(NoWallWarning, match="who can read its labels") as told:
        RemoteHoldout(url).close()
    assert [one.filename for one in told] == [__file__]


def test_a_ledger_that_fails_names_no_paths_to_who_asks(remote, tmp_path, capfd):
    guard = remote()
    (ledger,) = (tmp_path / "box").rglob("*.db")
    with contextlib.closing(sqlite3.connect(ledger)) as database, database:
        database.execute("DROP TABLE answers")
    caught = refuses(LedgerError, "", guard.evaluate, predictions(0.9), prior=0.9)
    assert "cannot use its ledger" in str(caught)
    assert str(ledger.parent) not in "".join(traceback.format_exception(caught))
    assert str(ledger) in capfd.readouterr().err  # the owner's log names it
