"""The example of a guarded choice: nothing halts, the final holds, and what is looked up is what was fitted."""

import numpy as np
import pandas as pd
import pytest
from examples.scripts import run
from sklearn.model_selection import cross_val_predict

ROOMS = ["examples/guarded_choice.py", "examples/searches"]


@pytest.mark.long(*ROOMS, "integrations/reusable_holdout_sklearn", "reusable_holdout")
def test_searches_are_answered_and_their_finals_hold(tmp_path):
    text = run("guarded_choice.py", "--quick", "--jobs", "1", folder=tmp_path)
    table = pd.read_csv(tmp_path / "guarded_choice.csv")
    assert len(table) == 4
    assert not table["halted"].any()
    assert table["holds"].all()
    assert (table["looks"] < 2.6).all()
    assert (table["guarded"] - table["plain"]).mean() <= 0.001
    assert text.count("halted or refused: 0 (goal 0)") == 2


def test_predictions_of_training_rows_are_out_of_their_fold(imported):
    models = imported("searches.candidates")
    rows = models.load("breast cancer")
    parts = models.split(rows, train=200, holdout=200, seed=0)
    assert [len(part) for part in parts] == [200, 200, 169]
    assert len(np.unique(np.concatenate(parts))) == 569
    (tree,) = models.propose(1, few_rows=True, seed=0)
    fitted = models.fit(rows, parts, [tree], jobs=1)
    X, y = rows.X[parts.train], rows.y[parts.train]
    folded = cross_val_predict(tree, X, y, cv=fitted.folds)
    np.testing.assert_array_equal(fitted.predictions[0, parts.train], folded)
    assert fitted.means[0] == pytest.approx(np.mean(folded == y))
    whole = tree.fit(X, y).predict(rows.X[parts.fresh])
    np.testing.assert_array_equal(fitted.predictions[0, parts.fresh], whole)
