"""Loops in the manner of Lightning and Keras; Keras's own where it is installed."""

import importlib.util
import pickle

import numpy as np
import pytest
from conformance.stand_ins import KerasStandIn, LightningStandIn, Trainer, callback_class
from reusable_holdout_callbacks.bases import base_class

from reusable_holdout.errors import Halted, InputError


def classify(model, X):
    told = model.forward(X) if isinstance(model, LightningStandIn) else model(X)[:, 0]
    return (np.asarray(told) > 0.5).astype(int)


def lightning(callback, rows, *, epochs=6, **wish):
    trainer = Trainer([callback], max_epochs=epochs, **wish)
    module = LightningStandIn(rows.X.shape[1])
    trainer.fit(module, (rows.X, rows.two[0]), (rows.X_valid, rows.two[1]))
    return trainer, module


def keras(callback, rows, *, epochs=6, valid=True, others=()):
    model = KerasStandIn(rows.X.shape[1])
    validation = (rows.X_valid, rows.two[1]) if valid else None
    model.fit(rows.X, rows.two[0], validation_data=validation, epochs=epochs, callbacks=[*others, callback])
    return model


LOOPS = {
    "lightning": ("LightningCallback", lightning, "val_acc"),
    "keras": ("KerasCallback", keras, "val_accuracy"),
}


@pytest.fixture(params=LOOPS)
def loop(request):
    return request.param


@pytest.fixture
def Callback(loop):
    return callback_class(LOOPS[loop][0])


@pytest.fixture
def run(loop):
    return LOOPS[loop][1]


@pytest.fixture
def name(loop):
    return LOOPS[loop][2]


def test_each_epoch_is_asked_about_with_the_logged_score_as_its_prior(Callback, run, name, make_guard, rows):
    guard = make_guard()
    asked = Callback(guard, classify, prior=name)
    run(asked, rows)
    assert [one.round for one in asked.answers] == [1, 2, 3, 4, 5, 6]
    assert (guard.history()["prior"] > 0.8).all()
    assert guard.history()["charged"].sum() == 0  # in training mode the stand-in predicts one class
    by_function = Callback(guard, classify, prior=lambda scores: scores[name])
    run(by_function, rows)
    assert guard.queries_asked == 6
    assert all(one.answer.replayed for one in by_function.answers)


def test_every_so_many_epochs_and_the_last(Callback, run, name, make_guard, rows):
    asked = Callback(make_guard(), classify, prior=name, every=4)
    run(asked, rows, epochs=10)
    assert [one.round for one in asked.answers] == [4, 8, 10]


def test_a_halt_is_raised_or_stops(Callback, run, loop, name, make_guard, rows):
    asked = Callback(make_guard(queries=3), classify, prior=name)
    with pytest.raises(Halted) as caught:
        run(asked, rows)
    assert caught.value.answers == [one.answer for one in asked.answers]
    assert len(asked.answers) == 3
    asked = Callback(make_guard(queries=3), classify, prior=name, on_halt="stop")
    with pytest.warns(RuntimeWarning, match="stopped after round 4"):
        done = run(asked, rows)
    assert len(asked.answers) == 3
    assert (done[0].should_stop and done[0].current_epoch == 4) if loop == "lightning" else done.stop_training


def test_a_score_that_is_not_logged_is_told_with_those_that_are(Callback, run, name, make_guard, rows):
    guard = make_guard()
    with pytest.raises(InputError, match=f"there is no score 'val_f1'; logged was: .*{name}"):
        run(Callback(guard, classify, prior="val_f1", every=5), rows)
    assert guard.queries_asked == 0


def test_a_function_that_fails_on_whatever_rows_is_refused_free(Callback, run, name, make_guard, rows):
    def narrow(model, X):
        raise ValueError(f"cannot take {np.shape(X)}, only (any, 9)")

    guard = make_guard()
    with pytest.raises(InputError, match=r"ValueError: cannot take \(rows, 4\), only"):
        run(Callback(guard, narrow, prior=name), rows)
    assert guard.queries_asked == 0


def test_what_does_not_fit_is_refused_when_it_is_made(Callback, name, make_guard):
    guard = make_guard()
    with pytest.raises(InputError, match="predict must be a function"):
        Callback(guard, "predict", prior=name)
    with pytest.raises(InputError, match=r'none is named; nothing was made; pass prior="val_acc'):
        Callback(guard, classify)
    with pytest.raises(InputError, match="Callback needs predict, which did not come"):
        Callback(guard)


def test_a_ladder_takes_no_prior(Callback, run, make_guard, rows):
    asked = Callback(make_guard(policy="ladder", threshold=None), classify)
    run(asked, rows)
    assert len(asked.answers) == 6


# ---- of Lightning


def test_epochs_without_validation_are_not_asked_about(make_guard, rows):
    asked = callback_class("LightningCallback")(make_guard(), classify, prior="val_acc", every=3)
    _, module = lightning(asked, rows, epochs=9, check_val_every_n_epoch=2)
    assert [one.round for one in asked.answers] == [4, 6]  # at the end the scores are those of epoch 8
    assert module.training


@pytest.mark.parametrize("wish", [{"world_size": 2}, {"enable_validation": False}])
def test_trainings_that_cannot_be_asked_about_are_refused_before_they_begin(make_guard, rows, wish):
    guard = make_guard()
    asked = callback_class("LightningCallback")(guard, classify, prior="val_acc")
    with pytest.raises(InputError, match="nothing was asked"):
        lightning(asked, rows, **wish)
    assert asked.state_key == "LightningCallback{'metric': 'accuracy'}"
    assert guard.queries_asked == 0


def test_a_trial_run_asks_nothing(make_guard, rows):
    asked = callback_class("LightningCallback")(make_guard(), classify, prior="val_acc")
    lightning(asked, rows, epochs=1, fast_dev_run=True)
    assert asked.answers == []


# ---- of Keras


def test_the_epoch_that_early_stopping_ends_with_is_asked_about(make_guard, rows):
    Callback = callback_class("KerasCallback")

    class Stop(Callback.__bases__[1]):
        def on_train_begin(self, logs=None):
            pass

        def on_epoch_end(self, epoch, logs=None):
            self.model.stop_training = epoch == 2

    asked = Callback(make_guard(), classify, prior="val_accuracy", every=100)
    keras(asked, rows, others=[Stop()])
    assert [one.round for one in asked.answers] == [3]


@pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="keras is not installed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_kerass_own_loop_asks_replays_and_stops(make_guard, rows):
    import keras as real
    from reusable_holdout_callbacks import KerasCallback
    from reusable_holdout_callbacks.of_keras import KerasModel

    def train(callback):
        real.utils.clear_session()
        real.utils.set_random_seed(0)
        layers = [
            real.layers.Input((4,)),
            real.layers.Dense(4, "relu"),
            real.layers.Dense(1, activation="sigmoid"),
        ]
        model = real.Sequential(layers)
        model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
        valid = (rows.X_valid, rows.two[1])
        model.fit(
            rows.X,
            rows.two[0],
            validation_data=valid,
            epochs=5,
            batch_size=20,
            verbose=0,
            callbacks=[callback],
        )
        return model

    guard = make_guard()
    asked = KerasCallback(guard, classify, prior="val_accuracy", every=2)
    model = train(asked)
    train(asked)
    assert [(one.round, one.answer.replayed) for one in asked.answers] == [(2, True), (4, True), (5, True)]
    assert guard.queries_asked == 3
    again = pickle.loads(pickle.dumps(KerasModel(model, classify)))
    assert (again.predict(rows.X_held) == classify(model, rows.X_held)).all()
    with pytest.raises(Halted):
        train(KerasCallback(make_guard(queries=3), classify, prior="val_accuracy"))
    with pytest.warns(RuntimeWarning, match="stopped after round 4"):
        model = train(KerasCallback(make_guard(queries=3), classify, prior="val_accuracy", on_halt="stop"))
    assert model.stop_training


# ---- a library that is not there


def test_without_the_library_it_is_told_what_to_install():
    with pytest.raises(InputError, match="SomeCallback needs nolib: pip install nolib; nothing was made"):
        type(
            "SomeCallback",
            (base_class("Callback", ("nolib.callbacks",), needs="nolib: pip install nolib"),),
            {},
        )()
