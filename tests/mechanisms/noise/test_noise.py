"""Keyed noise: a function of key, epoch, label and question, the same alone and in a batch."""

from __future__ import annotations

import copy
import hashlib
import pickle

import numpy as np
import pytest

from reusable_holdout.errors import HandleError, InputError
from reusable_holdout.mechanisms import DiscreteLaplace, KeyedNoise, key_from_seed, new_key
from reusable_holdout.mechanisms.noise.geometric import GeometricRow

KEY = key_from_seed(0)
LAW = DiscreteLaplace(0.01 * 2**32)
QUESTIONS = [hashlib.sha256(number.to_bytes(4, "big")).digest() for number in range(10_000)]

GOLDEN_QUERY = [22474726, -3740015, -47763442]
GOLDEN_ANSWER = 3
GOLDEN_KEY = "323fafc035e696c10fec0338ba7788651d08766122bd9cf5f4b5ea7746b8e3dd"
GOLDEN_TIE = (169, 138381502)  # question, noise


@pytest.mark.parametrize("scale", [0.2, 1.0, 1000.0, 0.01 * 2**32, 2.0**50])
def test_one_question_gets_the_same_noise_alone_and_in_a_batch(
    scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    law, noise, slow = DiscreteLaplace(scale), KeyedNoise(KEY), []
    decode_slowly = GeometricRow._decode_slowly
    monkeypatch.setattr(
        GeometricRow, "_decode_slowly", lambda *given: slow.append(1) or decode_slowly(*given)
    )
    batch = noise.draw_many(law, label="query", questions=QUESTIONS)
    in_batch = len(slow)
    alone = [noise.draw(law, label="query", question=question) for question in QUESTIONS]
    assert batch.dtype == np.int64
    assert batch.tolist() == alone
    assert len(slow) == 2 * in_batch
    if scale >= 1:
        assert in_batch > 0, "among 10,000 questions some words tie"


def test_noise_never_changes_from_one_version_to_the_next() -> None:
    noise = KeyedNoise(KEY, epoch=3)
    assert [noise.draw(LAW, label="query", question=q) for q in (b"", b"a", QUESTIONS[0])] == GOLDEN_QUERY
    assert noise.draw(DiscreteLaplace(5), label="answer", question=b"a") == GOLDEN_ANSWER
    assert key_from_seed(12345).hex() == GOLDEN_KEY


def test_a_tied_draw_never_changes_either() -> None:
    noise, law = KeyedNoise(KEY), DiscreteLaplace(0.01 * 2**32)
    stream = hashlib.shake_256(noise._domain("query") + QUESTIONS[GOLDEN_TIE[0]]).digest(law.stream_bytes)
    words = np.frombuffer(stream, "<u2")
    assert (words == law._row.prefixes).any()
    assert noise.draw(law, label="query", question=QUESTIONS[GOLDEN_TIE[0]]) == GOLDEN_TIE[1]


def test_key_epoch_label_and_question_each_renew_the_noise() -> None:
    streams = [
        KeyedNoise(key, epoch=epoch).draw_many(
            LAW, label=label, questions=[q + tail for q in QUESTIONS[:1000]]
        )
        for key, epoch, label, tail in [
            (KEY, 0, "query", b""),
            (key_from_seed(1), 0, "query", b""),
            (KEY, 1, "query", b""),
            (KEY, 0, "answer", b""),
            (KEY, 0, "query", b"!"),
        ]
    ]
    for i, one in enumerate(streams):
        for other in streams[:i]:
            assert (one == other).mean() < 0.01


def test_label_and_question_do_not_run_into_each_other() -> None:
    noise = KeyedNoise(KEY)
    assert noise.draw(LAW, label="ab", question=b"c") != noise.draw(LAW, label="a", question=b"bc")


def test_a_label_cannot_name_the_stream_of_a_tie() -> None:
    with pytest.raises(InputError, match="label"):
        KeyedNoise(KEY).draw(LAW, label="query/tie/0", question=b"")


@pytest.mark.parametrize("key", [b"", b"x" * 31, b"x" * 33, "x" * 32, None])
def test_a_key_is_32_bytes(key: object) -> None:
    with pytest.raises(InputError, match="32 bytes"):
        KeyedNoise(key)  # type: ignore[arg-type]


@pytest.mark.parametrize("epoch", [-1, 2**64])
def test_an_epoch_fits_eight_bytes(epoch: int) -> None:
    with pytest.raises(InputError, match="epoch"):
        KeyedNoise(KEY, epoch=epoch)


def test_the_key_does_not_show() -> None:
    noise = KeyedNoise(KEY, epoch=7)
    noise.draw(LAW, label="query", question=b"")
    assert repr(noise) == "KeyedNoise(key=<hidden>, epoch=7)"
    assert noise.epoch == 7


@pytest.mark.parametrize("leave", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_key_does_not_leave_its_process(leave: object) -> None:
    with pytest.raises(HandleError):
        leave(KeyedNoise(KEY))  # type: ignore[operator]


def test_fresh_keys_differ_and_seeded_keys_repeat() -> None:
    assert new_key() != new_key()
    assert key_from_seed(5) == key_from_seed(np.int64(5)) != key_from_seed(6)
    with pytest.raises(InputError, match="integer"):
        key_from_seed(0.5)  # type: ignore[arg-type]


def test_an_empty_batch_is_empty() -> None:
    assert KeyedNoise(KEY).draw_many(LAW, label="query", questions=[]).shape == (0,)
