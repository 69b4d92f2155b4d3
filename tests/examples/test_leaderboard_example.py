"""The replayed season: the served board tells the truth of all ten teams, the plain one does not."""

import json

import pytest
from examples.scripts import run
from servers import why_no_postgresql

pytestmark = pytest.mark.long(
    "examples/leaderboard",
    "examples/benchmarks/leaderboard.py",
    "examples/benchmarks/uploads.py",
    "integrations/reusable_holdout_leaderboard",
    "reusable_holdout",
)


def test_the_served_board_is_not_fooled(tmp_path):
    text = run("leaderboard/replay.py", "--quick", "--output", "board.png", folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["board.png"]
    assert (tmp_path / "board.png").stat().st_size > 10_000
    rows = {}
    for name, *numbers in map(str.split, filter(None, text.splitlines())):
        if len(numbers) == 9 and name != "team":
            rows.setdefault(name, []).append([float(number) for number in numbers])
    assert len(rows) == 10
    for games in rows.values():
        for _asked, _charges, guarded, low, high, fresh, *_ in games:
            assert low <= guarded <= high
            assert low < fresh < high
    too_good = {name: games[0][-1] for name, games in rows.items()}
    assert {name for name, gap in too_good.items() if gap > 0.015} == {"Boosting", "Flips", "Oracle"}
    assert abs(rows["Boosting"][0][2] - rows["Boosting"][0][5]) < 0.005
    assert rows["Flips"][0][2] >= 0.48
    assert "NOT AS CLAIMED" not in text


def test_the_benchmark_measures_every_database_and_loses_nothing(tmp_path):
    text = run("benchmarks/leaderboard.py", "--json", "--seconds", "0.2", "--sent", "24", folder=tmp_path)
    found = json.loads(text)
    names = ["SQLite files"] if why_no_postgresql() else ["SQLite files", "PostgreSQL server"]
    assert [(rate["database"], rate["clients"]) for rate in found["rates"]] == [
        (name, count) for name in names for count in (1, 2, 4)
    ]
    assert all(rate["submissions_per_second"] > 1 for rate in found["rates"])
    assert [one["database"] for one in found["survivals"]] == names
    for one in found["survivals"]:
        assert one["kills"] > 0
        assert {one[name] for name in ("sent", "answered", "in_ledger", "on_board")} == {96}
        assert one["charges_told"] == one["charges_in_ledger"] == 12
    assert list(tmp_path.iterdir()) == []


def test_neighbours_are_certified_and_no_pair_of_coin_flips_is(tmp_path):
    text = run("leaderboard/neighbours.py", "--quick", folder=tmp_path)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    honest = [row for row in rows if len(row) == 7 and row[2].isdecimal()]
    attacked = [row for row in rows if len(row) == 6 and row[1].isdecimal()]
    assert len(honest) == 4
    assert sum(int(row[4]) for row in honest) > sum(int(row[3]) for row in honest)
    assert {row[5] for row in honest} == {"0"}
    assert len(attacked) == 9
    assert {(row[3], row[4]) for row in attacked} == {("0", "0")}
    assert sum(int(row[5].replace(",", "")) for row in attacked) > 0
    assert list(tmp_path.iterdir()) == []


def test_the_order_inside_a_tie_agrees_with_the_truth_and_no_claim_stands_above_the_lead(tmp_path):
    text = run("leaderboard/order.py", "--quick", folder=tmp_path)
    head, *rows = [line.split() for line in text.splitlines()[1:-1]]
    boards = [dict(zip(head, row, strict=True)) for row in rows]
    assert len(boards) == 6
    assert all(float(one["by_value"]) >= 0.85 for one in boards)
    assert float(boards[0]["by_time"]) < -0.9
    assert {float(one["above_lead"]) for one in boards} == {0.0}
    assert list(tmp_path.iterdir()) == []


def test_ninety_anonymous_uploads_take_neither_memory_nor_disk(tmp_path):
    rows = run("benchmarks/uploads.py", folder=tmp_path).splitlines()[2:]
    assert len(rows) == 2
    for row in rows:
        _, connections, answered, held, spooled = row.strip("|").split("|")
        assert int(connections) == int(answered) == 90
        assert int(held) + int(spooled) <= 50
    assert list(tmp_path.iterdir()) == []
