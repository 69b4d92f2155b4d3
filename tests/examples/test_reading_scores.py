"""The benchmark of reading evaluation files runs; how fast is not a test's matter."""

import json

import pytest
from examples.scripts import run

pytestmark = pytest.mark.long(
    "examples/benchmarks/reading_scores.py", "integrations/reusable_holdout_evals/readers"
)


def test_files_of_both_tools_are_read_and_asked_about(tmp_path):
    found = json.loads(run("benchmarks/reading_scores.py", "--quick", "--json", folder=tmp_path))
    assert [one["what"] for one in found] == ["an .eval log of Inspect", "5 files of lm-evaluation-harness"]
    for one in found:
        assert one["both"] == pytest.approx(one["read"] + one["asked"])
        assert 0 < one["asked"] < one["process"]
    assert list(tmp_path.iterdir()) == []
