"""The example of priors: what in-sample priors cost, out-of-sample ones do not."""

import pandas as pd
import pytest
from examples.scripts import run

pytestmark = pytest.mark.long("examples/priors_matter.py", "reusable_holdout")


def test_in_sample_priors_cost_the_charges_that_others_save(tmp_path):
    text = run("priors_matter.py", "--quick", "--jobs", "1", "--output", "here", folder=tmp_path)
    table = pd.read_csv(tmp_path / "here" / "priors_matter.csv").set_index(["tolerance", "prior"])
    widest = table.loc[table.index.levels[0].max()]
    assert widest.loc["in-sample", "charges"] >= 3
    for prior in ("out-of-bag", "cross-validated"):
        assert widest.loc[prior, "charges"] <= 1
        assert widest.loc[prior, "answered"] == 12
        assert widest.loc[prior, "|prior - fresh|"] < widest.loc["in-sample", "|prior - fresh|"] / 2
    assert (table["held"] == 1.0).all()
    assert "fewer charges than with in-sample priors" in text
    assert (tmp_path / "here" / "priors_matter.png").stat().st_size > 10_000
