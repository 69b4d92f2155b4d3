"""The wrong proof about GPTT: its numbers against an independent computation, and what the script says of them."""

import importlib.util
import itertools
import math

import numpy as np
import pytest
from examples.scripts import EXAMPLES, run
from scipy import integrate


@pytest.fixture(scope="module")
def script():
    found = importlib.util.spec_from_file_location("wrong_svt_proof", EXAMPLES / "wrong_svt_proof.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def below(z, epsilon):
    """Distribution function of the Laplace law of scale 1/epsilon."""
    return math.exp(epsilon * z) / 2 if z < 0 else 1 - math.exp(-epsilon * z) / 2


def test_the_standard_technique_never_loses_more_than_lemma_1(script):
    table = script.against_the_standard_technique(1.0)
    assert (table["true loss"] <= 0.5 + 1e-9).all()
    assert table["true loss"].iloc[-1] == pytest.approx(0.5, abs=1e-6)  # tight
    assert (table["ln(kappa(t)^t / 2)"] <= table["true loss"]).all()  # the bound is true, and does not grow


def test_section_9_3s_three_dependencies(script):
    """Alpha falls with t, the interval grows with t, and kappa on it falls with t."""
    table = script.against_the_standard_technique(1.0)
    assert (np.diff(table["ln alpha"]) < 0).all()
    assert (np.diff(table["interval"]) > 0).all()
    assert (np.diff(table["kappa(t)"]) < 0).all()
    fixed = table["ln(kappa^t / 2), fixed"].to_numpy()
    assert fixed[-1] > 1e4  # what the wrong proof claims of a mechanism that loses one half
    assert (np.diff(fixed) > 0).all()


def test_gptt_loses_epsilon_2_with_every_pair_of_queries(script):
    table = script.against_gptt(0.5, 0.5)
    assert table["least ln kappa"].min() == pytest.approx(0.5, abs=1e-12)
    assert (table["true loss"] >= 0.5 * table["t"]).all()
    assert (table["true loss, 9.2"] >= 0.5 * table["t"]).all()


@pytest.mark.parametrize("t", [1, 5])
def test_discrete_noise_on_the_grid_is_near_the_integrals_of_the_paper(script, t, monkeypatch):
    monkeypatch.setattr(script, "LENGTHS", (t, t, t, t, t, t))
    monkeypatch.setattr(script, "STEPS", 64)

    def probability(queries, thresholds, epsilon):
        def integrand(z):
            return epsilon / 2 * math.exp(-epsilon * abs(z)) * queries(z)

        return sum(
            integrate.quad(integrand, a, b, epsabs=0, epsrel=1e-10)[0]
            for a, b in itertools.pairwise(thresholds)
        )

    ends = [-60, -20, -1, 0, 1, 20, 60]
    d = probability(lambda z: (below(z, 0.5) * (1 - below(z - 1, 0.5))) ** t, ends, 0.5)
    other = probability(lambda z: (below(z - 1, 0.5) * (1 - below(z, 0.5))) ** t, ends, 0.5)
    assert script.against_gptt(0.5, 0.5)["true loss"].iloc[0] == pytest.approx(math.log(d / other), rel=0.02)
    one = probability(lambda z: below(z, 0.25) ** t, ends, 0.5)
    two = probability(lambda z: below(z - 1, 0.25) ** t, ends, 0.5)
    table = script.against_the_standard_technique(1.0)
    assert table["true loss"].iloc[0] == pytest.approx(math.log(one / two), rel=0.02)
    assert table["ln alpha"].iloc[0] == pytest.approx(math.log(two), rel=0.02)


def test_the_script_says_so(tmp_path):
    text = run("wrong_svt_proof.py", folder=tmp_path)
    assert "the true loss is 0.500000" in text
    assert "claims a loss of 20,556" in text
