"""The leaderboard example: plain boards fall, guarded ones stand, and it says so."""

import pytest
from examples.scripts import run

pytestmark = pytest.mark.long("examples/leaderboard_attack.py", "reusable_holdout")


def test_guarded_boards_stand_where_plain_ones_fall(tmp_path):
    text = run("leaderboard_attack.py", "--quick", "--output", "board.png", folder=tmp_path)
    assert (tmp_path / "board.png").stat().st_size > 10_000
    rows = [line for line in text.splitlines() if "guarded" in line or "plain, exact" in line]
    assert len(rows) == 6
    for line in rows:
        *_, reported, fresh, _halted, _of, _runs = line.split()
        assert float(fresh) == 0.5
        if "guarded" in line:
            assert float(reported) >= 0.48
        else:
            assert float(reported) < 0.45
    assert "NOT AS CLAIMED" not in text
