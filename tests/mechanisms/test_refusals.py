"""Parameters out of range: every public function refuses them by name, and takes those that are just in range."""

import copy
import inspect
import math
import pickle
from fractions import Fraction

import numpy as np
from cases import for_each, refuses

from reusable_holdout import mechanisms
from reusable_holdout.errors import HandleError, InputError
from reusable_holdout.mechanisms import accounting
from reusable_holdout.mechanisms.accounting import PrivacyAccountant, PureEvent, Repetitions
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.noise import DiscreteLaplace

INF, NAN = math.inf, math.nan
# Values that are refused, values that are just taken, and words of the refusal.
POSITIVE = [0.0, -1.0, INF, NAN], [1e-9, 5.0], "finite and (above|at least) 0"
NOT_NEGATIVE = [-1e-9, INF, NAN], [0.0, 5.0], "finite and at least 0"
UNIT = [0.0, -1.0, INF, NAN], [1e-3, 1e9], "positive finite number"
RANGED = [0.0, -1.0, INF, NAN, 0.99e-100, 1.01e100], [1e-100, 1e100], "finite"
DELTA = [-1e-9, 1.0, 1.5, NAN], [0.0, 0.99], "delta"
INNER_DELTA = [0.0, 1.0, -0.1, 1.5, NAN], [1e-9, 0.99], "delta"
FAILURES = [-1e-9, 1e-6, 2e-6], [0.0, 9e-7], "failures are at least 0"
BETA = [0.0, 1.0, NAN], [1e-9, 0.99], r"beta lies in \(0, 1\)"
COUNT = [0, -1], [1, 3], "at least 1|at least one"
WHOLE = [0, -1, 1.5, 2.0, 10**15 + 1], [1, np.int64(2)], "whole number|at most 1,000,000,"
PLACES = [0, -1, 4], [1, 2], "the number of candidates, 3"
NINE = [0, 10], [1, 9], "the number of candidates, 9"
RATE = [-1e-9, 1 + 1e-9, 1.5, NAN], [1e-9, 1.0], "a rate lies in"
Q = [0.0, -0.1, 1.01, 1.5, NAN], [0.4, 1.0], "q lies in"
MEAN = [0.39, 1.01, NAN], [None, 0.4, 1.0], "at least the smallest chance"
BEST = ["best"], ["optimal"], "got 'best'"

COMPOSED = {"epsilon": 1.0, "count": 3, "delta": 1e-6}
CHARGED = {"epsilon": 0.1, "charges": 5, "delta": 1e-6}
STREAM = {"threshold": 0.0, "charges": 3, "epsilon": 0.1}
CHOICE = {"candidates": 9, "epsilon": 1.0, "beta": 0.05}
TABLE = {"epsilon": 1.0, "delta": 1e-3, "count": 3, "candidates": 9}
MIXED = {"delta": 1e-6, "largest_epsilon": 0.1, "smallest_q": 0.4}
THREE = {"scores": [1.0, 2.0, 3.0], "epsilon": 1.0}
SCALES = {"charges": 2, "epsilon": 0.5, "sensitivity": 1}
CALLS = {"epsilon": 12.0, "delta": 0.5, "largest_epsilon": 0.1}
SYNTHETIC = {"rows": 100, "queries": 3, "cells": 3, "size": 2, "epsilon": 1.0, "beta": 0.1}
WORDS = {"scores": {"a": 1e9}, "count": 1, "epsilon": 1.0, "delta": 0.5, "known": 3}
VOTES = {"votes": [1, 2], "threshold": 1, "epsilon": 1.0}
DRAWN = {"rows": [0], "queries": np.eye(2), "size": 1, "epsilon": 1.0}
LESS = "calls_delta is at least 0 and less than delta / targets"
RUNS = {
    "candidates": [1],
    "algorithm": lambda *_: (1, 1.0),
    "repetitions": Repetitions(mean=1.0),
    "epsilon": 1.0,
}

CASES = [
    ("optimal_composition", COMPOSED, {"epsilon": NOT_NEGATIVE, "count": COUNT, "delta": DELTA}),
    ("optimal_epsilon_each", COMPOSED, {"epsilon": ([0.0, -1.0, INF], [1e-9], ""), "count": COUNT, "delta": DELTA}),
    ("advanced_composition", COMPOSED, {"epsilon": NOT_NEGATIVE, "count": COUNT, "delta": INNER_DELTA}),
    ("optimal_delta", {"total": 0.1, "epsilon": 0.1, "count": 3},
     {"total": NOT_NEGATIVE, "epsilon": NOT_NEGATIVE, "count": COUNT}),
    ("bounded_range_composition", COMPOSED, {"epsilon": POSITIVE, "count": COUNT, "delta": DELTA}),
    ("bounded_range_epsilon_each", COMPOSED, {"epsilon": POSITIVE, "count": COUNT, "delta": DELTA}),
    ("gaussian_delta", {"epsilon": 1.0, "deviation": 1.0},
     {"epsilon": NOT_NEGATIVE, "deviation": POSITIVE, "sensitivity": POSITIVE}),
    ("gaussian_deviation", {"epsilon": 1.0, "delta": 1e-6},
     {"epsilon": POSITIVE, "delta": INNER_DELTA, "sensitivity": POSITIVE}),
    ("PrivacyFilter", {"epsilon": 1.0, "delta": 1e-6},
     {"epsilon": POSITIVE, "delta": INNER_DELTA, "failures": FAILURES}),
    ("PrivacyOdometer", {"delta": 1e-6}, {"delta": INNER_DELTA, "failures": FAILURES}),
    ("PureEvent", {}, {"epsilon": NOT_NEGATIVE}),
    ("ApproximateEvent", {"epsilon": 0.1, "failing": 0.1}, {"epsilon": NOT_NEGATIVE, "failing": DELTA}),
    ("ConcentratedEvent", {}, {"rho": POSITIVE}),
    ("BoundedRangeEvent", {}, {"epsilon": POSITIVE}),
    ("GaussianEvent", {}, {"noise_multiplier": POSITIVE}),
    ("SubsampledEvent", {"event": PureEvent(0.1)}, {"rate": ([0.0, -0.1, 1.01, NAN], [1e-9, 1.0], "a rate lies in")}),
    ("SubsampledEvent", {"rate": 0.5}, {"event": ([accounting.ConcentratedEvent(0.1)], [PureEvent(0.1)], "profile")}),
    ("TargetChargingEvent", {"epsilon": 0.1, "charges": 1, "q": 0.4},
     {"epsilon": POSITIVE, "charges": ([0, -1, 1.5, 10**7 + 1], [1, np.int64(3)], "charges"), "q": Q, "mean": MEAN}),
    ("TargetChargingEvent", {"epsilon": 0.1, "charges": 3}, {"q": ([1e-13], [1e-5], "^charges")}),
    ("basic_composition", {}, {"epsilons": ([[0.1, bad] for bad in (-1e-9, INF, NAN, -1)], [[0.0]], "every epsilon")}),
    ("subsampled_epsilon", {"epsilon": 0.5, "rate": 0.5}, {"epsilon": NOT_NEGATIVE, "rate": RATE}),
    ("epsilon_of_the_sample", {"epsilon": 0.5, "rate": 0.5}, {"epsilon": NOT_NEGATIVE, "rate": RATE}),
    ("epsilon_of_the_sample", {"epsilon": 0.5}, {"rate": ([0.0], [5e-324], "empty sample")}),
    ("not_prior_q", {}, {"epsilon": POSITIVE}),
    ("not_prior_mean", {}, {"epsilon": POSITIVE}),
    ("boundary_epsilon", {}, {"epsilon": POSITIVE}),
    ("boundary_wrapped_epsilon", {}, {"epsilon": POSITIVE}),
    ("boundary_q", {}, {"epsilon": POSITIVE}),
    ("differing_runs_q", {}, {"epsilon": POSITIVE}),
    ("between_thresholds_q", {"epsilon": 0.1, "width": 1.0},
     {"epsilon": POSITIVE, "width": ([0.0, NAN], [INF], "above 0")}),
    ("target_charging", CHARGED | {"q": 0.4},
     {"epsilon": POSITIVE, "charges": COUNT, "delta": INNER_DELTA, "q": Q, "mean": MEAN, "targets": COUNT}),
    ("target_charging_delta", {"total": 0.5, "epsilon": 0.1, "charges": 1, "q": 0.4},
     {"total": NOT_NEGATIVE, "epsilon": POSITIVE, "charges": COUNT, "q": Q, "mean": MEAN, "targets": COUNT}),
    ("target_charging_epsilon_each", CHARGED | {"q": accounting.not_prior_q},
     {"epsilon": POSITIVE, "charges": COUNT, "delta": INNER_DELTA, "targets": COUNT}),
    ("mixed_charging_epsilon", MIXED | {"weight": 2.0}, {"weight": RANGED, "largest_epsilon": RANGED, "smallest_q": Q}),
    ("mixed_charging_weight", MIXED | {"epsilon": 2.0}, {"epsilon": RANGED, "delta": INNER_DELTA}),
    ("one_shot_top_k_epsilon_each", {"k": 2, "candidates": 3, "epsilon": 1.0, "delta": 1e-6},
     {"k": PLACES, "epsilon": ([0.0, -1.0, INF], [1.0], ""), "delta": DELTA}),
    ("sparse_scales", SCALES,
     {"charges": COUNT, "epsilon": POSITIVE, "delta": ([-0.1, 1.0, NAN], [0.0, 1e-6], "delta"), "composition": BEST}),
    ("numeric_sparse_scales", SCALES, {"charges": COUNT, "epsilon": POSITIVE, "composition": BEST}),
    ("standard_svt_scales", SCALES,
     {"charges": COUNT, "epsilon": POSITIVE, "answers": ([0.5, -0.1, NAN], [0.0, 0.4], "must be a part of epsilon")}),
    ("NumericSparse", STREAM, {"split": (["even"], ["book"], "split is"), "composition": BEST}),
    ("StandardSVT", STREAM,
     {"ratio": ([0.0, INF, NAN], [0.01, None], "the ratio e2/e1"), "noise": (["gaussian"], ["exponential"], "noise is"),
      "sensitivity": UNIT, "threshold": ([NAN, INF], [-5.0], "a threshold is a finite number")}),
    ("Sparse", STREAM, {"noise": (["gaussian"], ["exponential"], "noise is"), "sensitivity": UNIT}),
    ("ConditionalStream", STREAM | {"delta": 1e-6}, {"charges": COUNT, "delta": INNER_DELTA, "epsilon": POSITIVE}),
    ("retraversal", {"values": [0.0, 1.0], "threshold": 0.5, "charges": 2, "epsilon": 1.0},
     {"raised_by": ([NAN, INF], [-1.0], "raised_by"), "passes": COUNT, "charges": COUNT}),
    ("compare_mechanisms", CHARGED,
     {"charges": COUNT, "epsilon": POSITIVE, "delta": DELTA, "sensitivity": UNIT, "queries": COUNT, "beta": BETA}),
    ("compare_selections", TABLE, {"epsilon": POSITIVE, "delta": DELTA, "count": NINE, "sensitivity": UNIT}),
    ("exponential_accuracy", CHOICE, {"candidates": COUNT, "epsilon": POSITIVE, "beta": BETA, "count": NINE}),
    ("noisy_max_accuracy", CHOICE,
     {"epsilon": POSITIVE, "beta": BETA, "k": NINE, "sensitivity": UNIT, "noise": (["x"], ["laplace"], "noise is")}),
    ("noisy_max_accuracy", CHOICE | {"noise": "exponential"}, {"k": ([2], [1], "k must be 1")}),
    ("exponential_top", THREE | {"count": 1}, {"count": PLACES, "delta": DELTA}),
    ("permute_and_flip_top", THREE | {"count": 1}, {"count": PLACES, "delta": DELTA}),
    ("select_top", THREE | {"count": 1}, {"count": PLACES, "delta": DELTA}),
    ("select_then_measure", THREE | {"count": 1}, {"mechanism": (["best"], ["one_shot_top_k"], "mechanism is one of")}),
    ("one_shot_top_k", THREE | {"k": 1},
     {"k": PLACES, "delta": DELTA, "stop_gap": ([0.0, -1.0, INF, NAN], [None, 5e-324], "stop_gap is finite and")}),
    ("noisy_top_k_gaps", THREE, {"k": ([0, 3], [1, 2], "less than the number of candidates, 3")}),
    ("report_noisy_max", THREE, {"noise": (["gauss"], ["gumbel"], "noise is")}),
    ("synthetic_size", {"queries": 3, "accuracy": 0.1},
     {"queries": COUNT, "accuracy": ([0.0, 1.5, NAN], [1.0], "accuracy lies in")}),
    ("synthetic_accuracy", SYNTHETIC,
     {"rows": COUNT, "queries": COUNT, "cells": COUNT, "size": COUNT, "epsilon": POSITIVE, "beta": BETA}),
    ("synthetic_data", DRAWN,
     {"epsilon": POSITIVE, "size": COUNT, "accuracy": ([0.1], [None], "accuracy or size"),
      "rows": ([[], [[0, 1]]], [[1]], "a list of cell numbers, at least one")}),
    ("synthetic_data", DRAWN | {"size": None}, {"accuracy": ([None], [0.5], "accuracy or size")}),
    ("synthetic_data", DRAWN,
     {"rows": ([[0.0, 1.0], [NAN], [0, -1, 1], [0, 2, 1], ["a"]], [[0, 1]], "integer from 0 to 1"),
      "queries": ([[0.0, 1.0], np.zeros((0, 2)), np.zeros((2, 0))], [[[0.0, 1.0]]], "a row per query")}),
    ("synthetic_data", DRAWN, {"queries": ([[[bad, 0.0]] for bad in (NAN, 1.5, -0.5)], [[[1, 0]]], r"in \[0, 1\]")}),
    ("unknown_domain_top", WORDS,
     {"count": ([0, 4], [1, 3], "count is at least 1"), "items_per_row": ([0, -1], [None, 1], "items_per_row"),
      "delta": INNER_DELTA, "epsilon": POSITIVE, "sensitivity": UNIT}),
    ("laplace_accuracy", {"epsilon": 1.0, "beta": 0.1}, {"epsilon": POSITIVE, "beta": BETA, "answers": COUNT}),
    ("laplace_mechanism", {"values": [1.0], "epsilon": 1.0}, {"epsilon": POSITIVE, "sensitivity": UNIT}),
    ("gaussian_mechanism", {"values": [1.0], "epsilon": 1.0, "delta": 1e-6},
     {"epsilon": POSITIVE, "delta": INNER_DELTA, "sensitivity": UNIT}),
    ("TargetCharging", CHARGED,
     {"charges": COUNT, "sensitivity": UNIT, "gap": ([0.0, -1.0, INF, NAN], [None, 9.0], "a gap is")}),
    ("TargetInteraction", CHARGED | {"delta": 0.5}, {"calls_delta": ([0.5, -0.1, NAN, 1.0], [0.0, 0.4], LESS)}),
    ("TargetInteraction", CHARGED | {"delta": 0.5, "targets": 2}, {"calls_delta": ([0.25], [0.2], LESS)}),
    ("TargetInteraction", CHARGED, {"charges": COUNT, "epsilon": POSITIVE, "delta": INNER_DELTA, "targets": COUNT}),
    ("MixedInteraction", CALLS,
     {"epsilon": (RANGED[0], [12.0], "finite"), "delta": INNER_DELTA, "smallest_q": Q,
      "largest_epsilon": ([0.0, 11.9], [0.5], "epsilon"),
      "calls_delta": ([0.5, 0.75, -0.125, NAN], [0.0, 0.4], "calls_delta is at least 0")}),
    ("IndividualCharging", CHARGED | {"records": 2},
     {"records": COUNT, "charges": COUNT, "epsilon": POSITIVE, "delta": INNER_DELTA}),
    ("exponential_weights", {"scores": [1, 2], "epsilon": 1.0},
     {"epsilon": POSITIVE, "sensitivity": COUNT,
      "scores": ([[], [0.5, 1.0], [1, 0.5], [2, NAN, 1]], [[1]], "scores are integers")}),
    ("boundary_wrapper", {}, {"weights": ([[]], [[1]], "at least one weight")}),
    ("boundary_wrapper", {},
     {"weights": ([[0.5, 0.5], [1, NAN]], [[Fraction(1, 2), 1]], "integers or Fractions, because a rounded")}),
    ("boundary_wrapper", {}, {"weights": ([[1, -1], [0, 0]], [[0, 1]], "at least 0 and not all 0")}),
    ("exponential_weights_or_low", VOTES,
     {"votes": ([[], [0.5, 1.0]], [np.array([1, 2])], "scores are integers"),
      "threshold": ([1.5, NAN], [np.int64(2)], "whole number of votes"), "epsilon": POSITIVE}),
    ("private_selection", RUNS, {"candidates": ([[]], [[1]], "at least one"), "epsilon": POSITIVE, "delta": DELTA}),
    ("DistinctSketch", {"registers": 1}, {"epsilon": ([0.0, INF, NAN, 1e-300], [1.0], "")}),
    ("DistinctSketch", {"epsilon": 1.0}, {"registers": ([0, 48, 2**17], [1, 64, 2**16], "power of two")}),
    ("DistinctSketch", {"epsilon": 1 / 300}, {"registers": ([2**16], [64], "at most 16777216, .*fewer registers")}),
]  # fmt: skip
RUN = [(Repetitions(mean=3.0, shape=shape), "delta lies in") for shape in (0.0, INF)]
METHODS = [
    (PrivacyAccountant().add, {"event": PureEvent(0.1)}, {"count": WHOLE}),
    (PrivacyAccountant().epsilon, {}, {"delta": DELTA}),
    (PrivacyAccountant().delta, {}, {"epsilon": NOT_NEGATIVE}),
    (Grid.of, {}, {"sensitivity": ([0.0, -1.0, INF, NAN, 1e-290, 1e290], [1.1e-290, 1e289], "positive finite")}),
    (mechanisms.RandomWords(1).below, {}, {"count": ([0, -1, 2**63 + 1], [1, 2**63], "count lies between")}),
    (mechanisms.RandomWords(1).share, {"denominator": 2}, {"numerator": ([-1, 3], [0, 2], "a probability")}),
    (mechanisms.RandomWords(1).share, {"numerator": 0}, {"denominator": ([0, -1], [1], "a probability")}),
    (mechanisms.RandomWords(1).decay, {}, {"exponent": ([Fraction(-1)], [Fraction(0), Fraction(10**9)], "at least 0")}),
    *((law(1).tail_quantile, {}, {"log_probability": ([0.0, 1.0, -INF, NAN], [-1e-9], "log_probability is finite")})
      for law in (DiscreteLaplace, mechanisms.DiscreteExponential)),
    *((law.epsilon, {}, {"epsilon": NOT_NEGATIVE}) for law, _ in RUN),
    *((law.epsilon_each, {}, {"epsilon": POSITIVE}) for law, _ in RUN),
    *((law.delta, {}, {"delta": ([-1e-9, 1 + 1e-9, NAN], [0.0, 1.0], words)}) for law, words in RUN),
    *((law.delta_each, {}, {"delta": DELTA}) for law, _ in RUN),
    *((law.renyi, {"run": lambda _: 0.0}, {"order": ([1.0, 0.5, INF, NAN], [1.0 + 1e-9], "an order is finite")})
      for law, _ in RUN),
]  # fmt: skip


def public(name):
    return getattr(accounting, name, None) or getattr(mechanisms, name)


@for_each(("function", "good", "bad"), [*((public(name), *rest) for name, *rest in CASES), *METHODS])
def test_a_parameter_out_of_range_is_refused_by_name_and_one_at_its_limit_is_taken(function, good, bad):
    for name, (refused, taken, words) in bad.items():
        for value in taken:
            function(**(good | {name: value}))
        for value in refused:
            refuses(InputError, words or name, function, **good | {name: value})


def test_queries_are_said_to_be_monotonic_or_are_not():
    """Half the noise is enough for them, and too little for others."""
    makers = [
        inspect.unwrap(getattr(room, name)) for room in (mechanisms, accounting) for name in room.__all__
    ]
    taken = [
        inspect.signature(one).parameters for one in makers if inspect.isroutine(one) or inspect.isclass(one)
    ]
    defaults = [parameters["monotonic"].default for parameters in taken if "monotonic" in parameters]
    assert len(defaults) > 3
    assert not any(defaults)


kept = mechanisms.TargetCharging(**CHARGED, seed=1)
kept.conditional_release(123456.0, low=1e9, name="a")
HIDDEN = [
    (kept, f"TargetCharging(epsilon_each={kept.epsilon_each}, charges_left=5)"),
    (mechanisms.TargetInteraction(**CHARGED), "TargetInteraction(epsilon_each="),
    (mechanisms.MixedInteraction(epsilon=8.0, delta=0.5, largest_epsilon=0.1), "MixedInteraction(weight="),
    (mechanisms.IndividualCharging(17, **CHARGED), "IndividualCharging(epsilon_each="),
    (mechanisms.DistinctSketch(epsilon=1.0), "DistinctSketch(registers=64)"),
]


@for_each(("one", "text"), HIDDEN)
def test_a_secret_state_neither_shows_nor_leaves_its_process(one, text):
    assert repr(mechanisms.RandomWords(seed=1)) == "RandomWords(key=<hidden>)"
    assert repr(one).startswith(text)
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
        refuses(HandleError, "", duplicate, one)
