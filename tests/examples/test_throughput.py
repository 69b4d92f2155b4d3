"""The benchmark of processes that share a ledger runs, on whatever databases this machine has."""

import json

import pytest
from examples.scripts import run
from servers import why_no_postgresql

pytestmark = pytest.mark.long("examples/benchmarks/throughput.py", "reusable_holdout")


def test_every_number_of_processes_is_measured_on_every_database(tmp_path):
    rates = json.loads(
        run("benchmarks/throughput.py", "--quick", "--json", "--questions", "20", folder=tmp_path)
    )
    ledgers = ["SQLite file"] if why_no_postgresql() else ["SQLite file", "PostgreSQL server"]
    assert [(rate["ledger"], rate["processes"]) for rate in rates] == [
        (ledger, count) for ledger in ledgers for count in (1, 2, 4)
    ]
    assert all(rate["answers_per_second"] > 1 for rate in rates)
    assert list(tmp_path.iterdir()) == []
