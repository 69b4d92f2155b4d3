"""Noise of numbered questions: the stream that its notes name, the same alone, in a batch and in any order."""

import hashlib

import numpy as np
from cases import for_each

from reusable_holdout.mechanisms import DiscreteExponential
from reusable_holdout.mechanisms.samplers.numbered import NumberedNoise
from reusable_holdout.noise import DiscreteLaplace, KeyedNoise, key_from_seed

KEY = key_from_seed(0)


def questions(numbers):
    return [number.to_bytes(8, "big") for number in numbers]


@for_each("law", [DiscreteLaplace(0.3), DiscreteLaplace(1e6), DiscreteExponential(1e6)])
def test_one_question_gets_the_same_noise_alone_in_a_batch_and_in_any_order(law):
    asked = questions([*range(300), 2**40, 2**64 - 1, 7, 63, 64])
    batch = NumberedNoise(KEY).draw_many(law, label="query", questions=asked)
    alone = NumberedNoise(KEY)
    assert [alone.draw(law, label="query", question=question) for question in asked] == batch.tolist()
    order = np.random.default_rng(0).permutation(len(asked))
    shuffled = alone.draw_many(law, label="query", questions=[asked[at] for at in order])
    assert shuffled.tolist() == batch[order].tolist()
    assert batch[7] == batch[-3]


@for_each("number", [0, 5, 63, 64, 1_000])
@for_each("label", ["query", "answer"])
def test_the_words_are_those_of_the_notes(number, label):
    law = DiscreteLaplace(1000)
    name = f"{label}/block".encode()
    head = b"reusable-holdout/noise/1" + KEY + (3).to_bytes(8, "big") + len(name).to_bytes(2, "big") + name
    block, place = divmod(number, 64)
    stream = hashlib.shake_256(head + block.to_bytes(8, "big")).digest(64 * law.stream_bytes)
    part = stream[place * law.stream_bytes : (place + 1) * law.stream_bytes]
    noise = NumberedNoise(KEY, epoch=3)
    (expected,) = law.decode_many(
        part, lambda draw, position: noise._further(label, position, number.to_bytes(8, "big"))
    )
    assert noise.draw(law, label=label, question=number.to_bytes(8, "big")) == expected


def test_key_epoch_label_and_number_each_renew_the_noise():
    law, asked = DiscreteLaplace(1e6), questions(range(1_000))
    draws = [
        noise.draw_many(law, label=label, questions=moved)
        for noise, label, moved in [
            (NumberedNoise(KEY), "query", asked),
            (NumberedNoise(key_from_seed(1)), "query", asked),
            (NumberedNoise(KEY, epoch=1), "query", asked),
            (NumberedNoise(KEY), "answer", asked),
            (NumberedNoise(KEY), "query", questions(range(64, 1_064))),
            (KeyedNoise(KEY), "query", asked),
        ]
    ]
    for at, one in enumerate(draws):
        assert len(np.unique(one)) > 990
        for other in draws[:at]:
            assert (one == other).mean() < 0.01


def test_a_question_that_is_no_number_is_drawn_as_a_guard_draws():
    law, asked = DiscreteLaplace(1e6), [b"", b"a", bytes(9), bytes(32)]
    noise, keyed = NumberedNoise(KEY), KeyedNoise(KEY)
    for question in asked:
        drawn = noise.draw(law, label="query", question=question)
        assert drawn == keyed.draw(law, label="query", question=question)
    rows = [one.draw_many(law, label="query", questions=asked).tolist() for one in (noise, keyed)]
    assert rows[0] == rows[1]
    assert noise.draw_many(law, label="query", questions=[]).shape == (0,)
    assert noise.draw_many(DiscreteLaplace(0), label="query", questions=questions([1, 2])).tolist() == [0, 0]
    assert noise.draw(DiscreteLaplace(0), label="query", question=bytes(8)) == 0
