"""What the example scripts printed: whole, shown on the site, and where it takes seconds printed again."""

import re

import pytest
from documents.due import DUE, README, again, code_of, due
from documents.pages import DOCS, ROOT
from documents.recorded import printed_by, unprinted
from site_pages import sources
from site_recorded import RECORDED, Recorded, parts, recorded, scripts, with_recorded

_ALL = recorded()


def test_every_file_names_a_command_that_exists_and_is_called_by_it():
    assert len(_ALL) >= 13
    assert {one.name for one in _ALL} == {
        path.relative_to(RECORDED).as_posix() for path in RECORDED.rglob("*.txt")
    }
    for one in _ALL:
        assert (ROOT / "examples" / f"{one.script}.py").is_file(), one.command
        assert one.command.startswith(f"python examples/{one.script}.py"), one.command
        assert re.match(
            r"reusable-holdout \d+\.\d+\.\d+(\.dev\d+)?(, \d{4}-\d\d-\d\d, on \d+ (quiet )?cores|$)", one.made
        ), one
        assert one.printed.strip(), one.command


def test_every_file_is_shown_where_its_script_is_named():
    pages = [with_recorded(source.text) for source in sources() if source.page.startswith("measured/")]
    for one in _ALL:
        shown = [page for page in pages if f'??? quote "`{one.command}` printed ({one.made})"' in page]
        assert len(shown) >= 1, one.command
        assert f"    {max(one.printed.splitlines(), key=len)}\n" in shown[0]


def test_a_recorded_run_knows_its_script_its_file_and_whether_times_were_printed():
    one = Recorded("python examples/coverage.py --runs 7", "reusable-holdout 0.2.0", "a\n\n  b\n")
    assert (one.script, one.name) == ("coverage", "coverage-runs-7.txt")
    assert not one.timed
    assert one._replace(made=f"{one.made}, 2026-11-23, on 2 quiet cores").timed
    assert one.file == "python examples/coverage.py --runs 7\nreusable-holdout 0.2.0\n\na\n\n  b\n"


_CODE = re.compile(r"^```python\n.*?^```(?:\n\n```text\n.*?^```)?$", re.DOTALL | re.MULTILINE)
_STATED = {".95", ".9"}  # a confidence and an estimate, and no results
_OF_OTHERS = {
    "mechanisms.md",
    "metrics.md",
    "one-budget.md",
    "overlaps.md",
    "training-loops.md",
}  # code's, or timed


def test_figures_of_a_part_whose_scripts_are_recorded_are_what_they_printed():
    same_again = [one for one in _ALL if not one.timed]
    there = {one.script for one in same_again}
    pages = [
        ROOT / "examples" / "README.md",
        *(page for page in DOCS.glob("*.md") if page.name not in _OF_OTHERS),
    ]
    held = 0
    for part in (part for page in pages for part in parts(page.read_text())):
        named = scripts(part)
        if named and named <= there:
            printed = "".join(one.printed for one in same_again if one.script in named)
            said = _CODE.sub("", part)  # what code of a page prints is compared where it runs
            assert set(unprinted(said, printed)) <= _STATED, part.partition("\n")[0]
            held += 1
    assert held >= 9


def test_a_figure_that_was_not_printed_is_found():
    printed = "0.1285 1,127.4 3e-05 99.8"
    assert unprinted("of .13, .129, 1,127.4, 12.9% and 12.85%, 99.80 or version 0.2.0", printed) == []
    assert unprinted("of .12, 0.127, 1,127.5 and .0001", printed) == [".12", "0.127", "1,127.5", ".0001"]


AGAIN = {
    "every_theorem.txt": ("reusable_holdout/mechanisms", "reusable_holdout/mechanisms/accounting"),
    "published_mistakes.txt": ("reusable_holdout/mechanisms",),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=pytest.mark.long(f"examples/{name.partition('-')[0].removesuffix('.txt')}.py", *rooms)
        )
        for name, rooms in AGAIN.items()
    ],
)
def test_what_takes_seconds_is_printed_again_to_the_letter(name):
    (one,) = (one for one in _ALL if one.name == name)
    assert printed_by(one.command) == one.printed


# ---- times, which a landing measures again


def test_the_costs_are_on_their_page_as_they_were_measured_and_so_is_every_sentence_that_quotes_them():
    page, files = README.read_text(), {one.command: one for one in _ALL}
    for command in DUE:
        one = files[command]
        assert one.timed
        assert re.search(r", of the code [0-9a-f]{12}$", one.made), one.made
        assert one.printed in page, command
        script = command.rpartition("examples/")[2]
        for text in (page, *(place.read_text() for place in DOCS.glob("*.md"))):
            said = [line for line in text.splitlines() if script in line and "(0.1" not in line]
            assert unprinted("\n".join(said), one.printed) == [], command


def test_what_was_measured_of_other_code_is_measured_again_and_changed_on_its_page(tmp_path, monkeypatch):
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "one.py").write_text("1\n")
    before = code_of(["room"], tmp_path)
    (tmp_path / "room" / "one.py").write_text("2\n")
    assert code_of(["room"], tmp_path) != before
    (tmp_path / "room" / "one.py").write_text("1\n")
    assert code_of(["room"], tmp_path) == before
    command, page = "python examples/one.py", tmp_path / "page.md"
    page.write_text("It takes\n\n1.5 ms\n\nor so.\n")
    monkeypatch.setitem(DUE, command, ("tests/documents",))
    assert command in due()
    for printed in ("1.5 ms\n", "2.5 ms\n"):
        monkeypatch.setattr("documents.due.printed_by", lambda _, printed=printed: printed)
        again(command, page, tmp_path)
    assert page.read_text() == "It takes\n\n2.5 ms\n\nor so.\n"
    kept = (tmp_path / "one.txt").read_text()
    assert kept.endswith(f", of the code {code_of(['tests/documents'])}\n\n2.5 ms\n")
    monkeypatch.setattr("documents.due.recorded", lambda: [Recorded(*kept.split("\n", maxsplit=3)[:2], "")])
    assert command not in due()
