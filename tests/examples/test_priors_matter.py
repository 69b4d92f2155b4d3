"""What a prior costs: in-sample priors are charged, cross-validated ones hardly."""

import pandas as pd
from examples.test_examples import run


def test_in_sample_priors_are_charged_and_cross_validated_ones_are_not(tmp_path):
    text = run("priors_matter.py", "--quick", "--output", "found", folder=tmp_path)
    (path,) = (tmp_path / "found").glob("*.csv")
    table = pd.read_csv(path).groupby("prior")[["charges", "answered"]].mean()
    assert table.loc["in-sample", "charges"] > table.loc["cross-validated", "charges"] + 2
    assert table.loc["in-sample", "answered"] < table.loc["cross-validated", "answered"]
    assert "intervals that hold the fresh score" in text
