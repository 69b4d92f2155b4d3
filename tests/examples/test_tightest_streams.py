"""The tables of docs/sparse-vector.md are what the script prints."""

import pytest
from examples.scripts import EXAMPLES, run
from long_tests import MECHANISMS

PAGE = (EXAMPLES.parent / "docs" / "sparse-vector.md").read_text()


@pytest.mark.long(*MECHANISMS, "examples/tightest_streams.py", "docs/sparse-vector.md")
@pytest.mark.parametrize("options", [(), ("--monotonic",), ("--charges", "30")])
def test_the_page_shows_what_the_script_prints(options, tmp_path):
    printed = run("tightest_streams.py", *options, folder=tmp_path)
    assert len(printed.splitlines()) >= 8
    assert printed in PAGE
