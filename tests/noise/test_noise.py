"""Keyed noise: a function of key, epoch, label and question, the same alone and in a batch."""

import copy
import hashlib
import itertools
import pickle

import numpy as np
from cases import for_each, refuses

from reusable_holdout.errors import HandleError, InputError
from reusable_holdout.mechanisms.samplers.numbered import NumberedNoise
from reusable_holdout.noise import DiscreteLaplace, KeyedNoise, discrete_laplace, key_from_seed, new_key
from reusable_holdout.noise.discrete_laplace import flip

KEY = key_from_seed(0)
LAW = DiscreteLaplace(0.01 * 2**32)
QUESTIONS = [hashlib.sha256(number.to_bytes(4, "big")).digest() for number in range(10_000)]

GOLDEN_QUERY = [22474726, -3740015, -47763442]
GOLDEN_ANSWER = 3
GOLDEN_KEY = "323fafc035e696c10fec0338ba7788651d08766122bd9cf5f4b5ea7746b8e3dd"
GOLDEN_TIE = (169, 138381502)  # question, noise


@for_each("scale", [0.2, 1.0, 1000.0, 0.01 * 2**32, 2.0**50])
def test_one_question_gets_the_same_noise_alone_and_in_a_batch(scale, monkeypatch):
    law, noise, ties = DiscreteLaplace(scale), KeyedNoise(KEY), []
    counted = lambda *given, known: ties.append(known) or flip(*given, known=known)  # noqa: E731
    monkeypatch.setattr(discrete_laplace, "flip", counted)
    batch = noise.draw_many(law, label="query", questions=QUESTIONS)
    in_batch = ties.count(1)
    alone = [noise.draw(law, label="query", question=question) for question in QUESTIONS]
    assert batch.dtype == np.int64
    assert batch.tolist() == alone
    assert ties.count(1) == 2 * in_batch
    if scale >= 1:
        assert in_batch > 0, "among 10,000 questions some words tie"


def test_noise_never_changes_from_one_version_to_the_next():
    noise = KeyedNoise(KEY, epoch=3)
    assert [noise.draw(LAW, label="query", question=q) for q in (b"", b"a", QUESTIONS[0])] == GOLDEN_QUERY
    assert noise.draw(DiscreteLaplace(5), label="answer", question=b"a") == GOLDEN_ANSWER
    assert key_from_seed(12345).hex() == GOLDEN_KEY


def test_a_tied_draw_never_changes_either():
    noise, law = KeyedNoise(KEY), DiscreteLaplace(0.01 * 2**32)
    stream = hashlib.shake_256(noise._prefix("query") + QUESTIONS[GOLDEN_TIE[0]]).digest(law.stream_bytes)
    words = np.frombuffer(stream, "<u2")
    assert (words == law._row.prefixes).any()
    assert noise.draw(law, label="query", question=QUESTIONS[GOLDEN_TIE[0]]) == GOLDEN_TIE[1]


def test_key_epoch_label_and_question_each_renew_the_noise():
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


def test_a_label_cannot_name_the_stream_of_a_tie():
    for noise in (KeyedNoise(KEY), NumberedNoise(KEY)):
        for label in ("query/tie/0", "/"):
            for question in (b"", bytes(8)):
                refuses(InputError, "label", noise.draw, LAW, label=label, question=question)
                refuses(InputError, "label", noise.draw_many, LAW, label=label, questions=[question])


class Tied:
    """A law whose draws tie at every position: each gives a further word of one position, by default the first."""

    stream_bytes = 2

    def __init__(self, position, skip=0):
        self.position = position
        self.skip = skip

    def decode_many(self, stream, further):
        words = (further(draw, self.position) for draw in range(len(stream) // 2))
        return np.array([next(itertools.islice(each, self.skip, None)) for each in words])


def test_ties_of_different_positions_and_questions_read_different_words():
    """Coins that tie in one draw, or in two draws, would else fall alike: the noise would not have its law."""
    noise, questions = KeyedNoise(KEY), QUESTIONS[:300]
    words = np.stack([noise.draw_many(Tied(p), label="query", questions=questions) for p in range(60)])
    for axis in (0, 1):  # of uniform 16-bit words one in 65,536 equals its neighbour
        assert (np.diff(words, axis=axis) != 0).mean() > 0.999
    assert len(np.unique(words)) > 0.8 * words.size
    for position in (0, 1, 59):
        alone = [noise.draw(Tied(position), label="query", question=question) for question in questions]
        assert words[position].tolist() == alone


def test_the_words_of_a_tie_are_those_of_the_notes():
    """SHAKE-256 of domain, key, epoch, label, question, with a label that names the position."""
    for label, position, question in itertools.product(("query", "answer"), (0, 1, 40), (b"", b"a")):
        name = f"{label}/tie/{position}".encode()
        head = b"reusable-holdout/noise/1" + KEY + (3).to_bytes(8, "big") + len(name).to_bytes(2, "big")
        words = np.frombuffer(hashlib.shake_256(head + name + question).digest(400), "<u2")
        for skip in (0, 1, 2, 63, 64, 199):
            drawn = KeyedNoise(KEY, epoch=3).draw(Tied(position, skip), label=label, question=question)
            assert drawn == words[skip]


@for_each("epoch", [-1, 2**64])
def test_a_key_is_32_bytes_and_an_epoch_fits_eight(epoch):
    for key in (b"", b"x" * 31, b"x" * 33, "x" * 32, None):
        refuses(InputError, "32 bytes", KeyedNoise, key)
    refuses(InputError, "epoch", KeyedNoise, KEY, epoch=epoch)
    assert [KeyedNoise(KEY, epoch=last).epoch for last in (0, 2**64 - 1)] == [0, 2**64 - 1]


@for_each("kind", [KeyedNoise, NumberedNoise])
def test_a_key_neither_shows_nor_leaves_its_process(kind):
    noise = kind(KEY, epoch=7)
    noise.draw(LAW, label="query", question=bytes(8))
    assert repr(noise) == f"{kind.__name__}(key=<hidden>, epoch=7)"
    assert (noise.epoch, kind(KEY).epoch) == (7, 0)
    assert noise.draw_many(LAW, label="query", questions=[]).shape == (0,)
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        refuses(HandleError, "", leave, noise)


def test_fresh_keys_differ_and_seeded_keys_repeat():
    assert new_key() != new_key()
    assert key_from_seed(5) == key_from_seed(np.int64(5)) != key_from_seed(6)
    refuses(InputError, "integer", key_from_seed, 0.5)
