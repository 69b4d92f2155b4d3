"""A whole run, on a small package, and its parts."""

import dataclasses
import re

import pytest
from cases import refuses
from mutation.__main__ import main
from mutation.operators import mutants_of
from mutation.project import PassedOver, Project, Room
from mutation.reach import Reach, Test, reach_of_tests
from mutation.report import Tried, report
from mutation.sample import sample
from mutation.survivors import read
from mutation.tree import blocks_of, digest
from mutation.trial import Result, try_mutant, turns
from mutation.workers import workers

pytestmark = pytest.mark.long("tests/mutation")

_ORDER = '''"""Order."""

_FAST = 100


def larger(a, b):
    """Larger of two."""
    return a if a > b else b


def smaller(a, b):
    """Smaller of two."""
    return a if a < b else b


def uncalled(a):
    """Asked by no test."""
    return not a
'''
_LOOP = '''"""A loop."""


def count(limit):
    """Count to a limit."""
    number = 0
    while number < limit:
        number += 1
    return number
'''
_TESTS_OF_ORDER = """from toy.order import larger, smaller


def test_the_larger():
    assert larger(1, 2) == 2
    assert larger(4, 3) == 4


def test_the_smaller_of_equals_is_the_second():
    assert isinstance(smaller(1, 1.0), float)


def test_that_fails_on_the_original():
    assert larger(1, 1) == 2
"""
_TESTS_OF_LOOP = """import subprocess
import sys


def test_count_in_a_process_of_its_own():
    code = "from toy.loop import count; print(count(3), count(0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "3 0\\n"
"""
_KNOWN = """[[survivor]]
file = "toy/order.py"
function = "larger"
operator = "boundary"
line = "return a if a > b else b"
reason = "of equals, either is the larger"
"""


@pytest.fixture
def project(tmp_path):
    for name, text in {
        "toy/__init__.py": "",
        "toy/order.py": _ORDER,
        "toy/loop.py": _LOOP,
        "tests/test_order.py": _TESTS_OF_ORDER,
        "tests/test_loop.py": _TESTS_OF_LOOP,
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = ["--import-mode=importlib"]\n',
        "survivors.toml": _KNOWN,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return Project(
        top=tmp_path,
        package="toy",
        rooms={"order": Room("toy/order.py", ("tests",)), "loop": Room("toy/loop.py", ("tests",))},
        tests="tests",
        tests_left_out=(),
        servers=(),
        libraries=(),
        passed_over=(PassedOver(("number",), "^_FAST", "how fast"),),
        known=tmp_path / "survivors.toml",
        grace_seconds=3.0,
    )


@pytest.mark.long("tests/mutation")
def test_a_run_tells_the_killed_from_the_survivors_and_goes_on_where_it_stopped(project, capsys):
    assert main(["--sample", "0", "--workers", "1"], project) == 1
    out, err = capsys.readouterr()
    assert "| order | 3 | 1 | 0 | 2 | 66.7 |" in out
    assert "| loop | 5 | 3 | 2 | 0 | 0.0 |" in out  # two that never end
    assert "of equals, either is the larger" in out
    assert re.search(r"uncalled, not: `not a` -> `\(a\)`\n  NOT NAMED \(0 tests ran\)", out)
    assert "at most 3% may survive; 2 of 8 do" in err
    assert "1 are not" in err
    assert "left out: tests/test_order.py::test_that_fails_on_the_original" in err
    assert (project.top / "toy/loop.py").read_text() == _LOOP

    lines = (project.kept / "results.jsonl").read_text().splitlines()
    kept = [line for line in lines if "timed out" in line]
    (project.kept / "results.jsonl").write_text("\n".join(kept) + "\n")
    main(["--sample", "0", "--workers", "2"], project)
    again, err = capsys.readouterr()
    assert "2 of them have been tried before" in err
    assert "finding out" not in err
    assert again == out


def test_some_functions_may_be_passed_over(project):
    passed_over = PassedOver(("not", "returned"), "", "why", function="^uncalled$")
    changed = dataclasses.replace(project, passed_over=(*project.passed_over, passed_over))
    functions = [
        {mutant.function for mutant in one.candidates(one.rooms["order"])} for one in (project, changed)
    ]
    assert functions == [{"larger", "smaller", "uncalled"}, {"larger", "smaller"}]


def test_what_tests_reach_is_found_again_after_a_change_unless_it_is_to_be_trusted(project):
    said = []
    for source, trusting in ((_ORDER, False), (_ORDER + "\n", True), (_ORDER + "\n", False), (_ORDER, True)):
        (project.top / "toy/order.py").write_text(source)
        reach = reach_of_tests(project, count=1, say=said.append, trusting=trusting)
        [callers] = reach.callers["toy/order.py:smaller"].values()
        assert {test.name for test in callers} == {
            "tests/test_order.py::test_the_smaller_of_equals_is_the_second"
        }
    began = [text for text in said if "finding out" in text]
    assert [re.findall(r"\d+", text) for text in began] == [["2", "2"], ["1", "2"]]


def test_a_mutant_in_a_branch_is_tried_by_the_tests_that_enter_it_or_all_callers_of_a_changed_function():
    source = "def f(a):\n    if a:\n        return 1\n    return 2\n"
    whole, branch, rest = (f"a.py:{block.name}" for block in blocks_of(source))
    test = {"outcome": "passed", "seconds": 0.1}
    reach = Reach()
    reach.add(
        {
            "servers": [],
            "shared": [],
            "tests": [test | {"test": name} for name in ("enters", "passes")],
            "reached": {"enters": [whole, branch], "passes": [whole, rest]},
        }
    )
    changed = source.replace("if a", "if a > 3")
    other = {"servers": [], "shared": [], "tests": [test | {"test": "later"}]}
    reach.add(other | {"reached": {"later": [f"a.py:{blocks_of(changed)[2].name}"]}})
    every = {"enters", "passes"}
    for text, of_each in (
        (source, [{"enters", "later"}, {"passes", "later"}]),
        (changed, [every, every, every, every | {"later"}]),
    ):
        mutants = mutants_of(text, "a.py")
        assert [{test.name for test in reach.tests(mutant, text)} for mutant in mutants] == of_each


@pytest.fixture
def tried(project):
    """Function that makes a mutant of the toy's order with its outcome; without a name, a function's first."""

    def make(function, outcome):
        mutants = project.candidates(project.rooms["order"])
        mutant = next(mutant for mutant in mutants if mutant.function == function)
        return Tried("order", mutant, _ORDER, Result(mutant.name, outcome, "", "", 1, [], ""))

    return make


def test_a_survivor_that_was_named_and_is_killed_now_is_a_fault(project, tried):
    larger = tried("larger", "killed")
    _, problems = report([larger], read(project.known), {larger.mutant.identity})
    assert problems == [
        f"a survivor that is named must survive; {larger.mutant.identity} does not any more: take it out"
    ]


def test_a_survivor_that_was_named_and_is_no_mutant_any_more_is_a_fault(project, tried):
    smaller = tried("smaller", "killed")
    _, [problem] = report([smaller], read(project.known), {smaller.mutant.identity})
    assert problem.endswith("'return a if a > b else b', 1) is none any more: take it out")


def test_a_survivor_of_the_rest_of_the_mutants_may_be_named(project, tried):
    larger, smaller = tried("larger", "killed"), tried("smaller", "killed")
    _, problems = report([smaller], read(project.known), {larger.mutant.identity, smaller.mutant.identity})
    assert problems == []


def test_more_survivors_than_3_percent_are_too_many(project, tried):
    survivor, killed = tried("larger", "survived"), tried("smaller", "killed")
    known = read(project.known)
    _, problems = report([survivor, *33 * [killed]], known, {survivor.mutant.identity})
    assert problems == []
    _, problems = report([survivor, *32 * [killed]], known, {survivor.mutant.identity})
    assert problems == ["at most 3% may survive; 1 of 33 do"]


def test_what_is_written_of_a_survivor_is_an_entry_without_a_reason(project, tried):
    text, _ = report([tried("larger", "survived")], {}, set())
    written = text.split("for survivors.toml:\n")[1]
    project.known.write_text(written)
    refuses(ValueError, "reason", read, project.known)
    project.known.write_text(written.replace('reason = ""', 'reason = "of equals, either is the larger"'))
    assert list(read(project.known)) == [tried("larger", "survived").mutant.identity]


def test_named_survivors_of_rooms_that_are_not_asked_for_do_not_count(project):
    assert read(project.known, but_not_of=[project.rooms["order"]]) == {}
    assert len(read(project.known, but_not_of=[project.rooms["loop"]])) == 1


def test_a_room_that_is_unknown_is_refused(project, capsys):
    refuses(SystemExit, "", main, ["--rooms", "order,cellar"], project)
    assert "no room is called cellar" in capsys.readouterr().err


def test_a_survivor_named_twice_is_refused(project):
    project.known.write_text(2 * _KNOWN)
    refuses(ValueError, "twice", read, project.known)


def test_a_sample_is_the_same_every_time_and_in_proportion():
    mutants = mutants_of("a = [" + "1, " * 30 + "]", "long.py") + mutants_of(
        "b = [1, 1]\nc = [2]", "short.py"
    )
    chosen = sample(mutants, 11, seed=0)
    assert set(chosen) == set(sample(mutants[::-1], 11, seed=0))
    assert [mutant.file for mutant in chosen].count("long.py") == 10
    assert chosen != sample(mutants, 11, seed=1)
    assert set(sample(mutants, 1000, seed=0)) == set(mutants)


def _test(name, seconds, *, shared=0.0, server=False):
    return Test(name, seconds, shared, server)


class _Answers:
    """A worker that fails these tests of any mutant, and those of the original too."""

    def __init__(self, of_mutants, of_the_original=()):
        self.failing = {True: set(of_mutants), False: set(of_the_original)}
        self.passed, self.doubted, self.asked = set(), set(), []

    def ask(self, job):
        names = [name for name, _ in job["tests"]]
        mutated = digest(job["source"]) != job["of"]
        self.asked.append((mutated, names))
        for place, name in enumerate(names, 1):
            if name in self.failing[mutated]:
                return {"outcome": "timed out", "ran": place, "by": name, "why": ""}
        return {"outcome": "survived", "ran": len(names), "by": "", "why": ""}


def test_a_test_that_the_original_fails_alone_kills_no_mutant(project):
    """Such as one for which an earlier test had started a pool of processes when it was timed."""
    mutant = project.candidates(project.rooms["order"])[0]
    names = [f"tests/test_order.py::{letter}" for letter in "abc"]
    planned = [[_test(name, 1.0) for name in names]]
    worker = _Answers(names[1:2], names[1:2])
    result = try_mutant(worker, mutant, planned, project)
    assert (result.outcome, result.by, result.ran) == ("survived", "", 3)
    assert worker.asked == [(True, names), (False, names[1:2]), (True, names[2:])]
    assert try_mutant(worker, mutant, planned, project).outcome == "survived"
    assert worker.asked[3:] == [(True, [names[0], names[2]])]


def test_a_mutant_that_cannot_be_imported_is_killed_where_the_settings_of_pytest_name_its_class(project):
    """The fault: pytest refused its own settings, which ended the whole run."""
    (project.top / "toy/order.py").write_text(
        '"""Odd."""\n\nSHARE = 6 // (3 - 2)\n\n\nclass Odd(UserWarning):\n    """Odd."""\n'
    )
    (project.top / "tests/test_order.py").write_text(
        "from toy.order import SHARE\n\n\ndef test_share():\n    assert SHARE == 6\n"
    )
    with (project.top / "pyproject.toml").open("a") as settings:
        settings.write('filterwarnings = ["ignore::toy.order.Odd"]\n')
    (mutant,) = (
        one
        for one in project.candidates(project.rooms["order"])
        if one.replacement == "3" and one.operator == "number"
    )
    planned = [[_test("tests/test_order.py::test_share", 1.0)]]
    with workers(project, 1) as (worker,):
        result = try_mutant(worker, mutant, planned, project)
    assert (result.outcome, result.by) == ("killed", "its import")
    assert "ZeroDivisionError" in result.why


def test_a_test_that_killed_is_run_alone_on_the_original_once(project):
    mutant = project.candidates(project.rooms["order"])[0]
    planned = [[_test("tests/test_order.py::a", 1.0)], [_test("tests/test_order.py::b", 1.0)]]
    worker = _Answers(["tests/test_order.py::b"])
    for _ in range(2):
        assert try_mutant(worker, mutant, planned, project).by == "tests/test_order.py::b"
    assert [mutated for mutated, _ in worker.asked] == [True, True, False, True, True]


def _turns(tests):
    [mutant] = mutants_of("a = 1", "toy/order.py")
    return turns(mutant, Room("toy", ("tests/toy",)), tests)


def _turns(tests):
    [mutant] = mutants_of("a = 1", "toy/order.py")
    return turns(mutant, Room("toy", ("tests/toy",)), tests)


def _turns(tests):
    [mutant] = mutants_of("a = 1", "toy/order.py")
    return turns(mutant, Room("toy", ("tests/toy",)), tests)


def _turns(tests):
    [mutant] = mutants_of("a = 1", "toy/order.py")
    return turns(mutant, Room("toy", ("tests/toy",)), tests)


def test_tests_of_the_room_come_first_and_the_fastest_of_them():
    slow, fast = _test("tests/toy/test_a.py::a", 2.0), _test("tests/toy/test_b.py::b", 1.0)
    doctest, far = _test("toy/order.py::c", 1.5), _test("tests/other/test_d.py::d", 0.1)
    assert _turns([slow, far, doctest, fast]) == [[fast], [doctest, slow], [far]]


def test_tests_of_one_file_stay_together():
    first, second, third = (
        _test(f"tests/toy/test_{file}.py::t{seconds}", seconds)
        for file, seconds in (("a", 0.1), ("b", 0.2), ("a", 0.3))
    )
    assert _turns([third, second, first]) == [[first, third, second]]


def test_what_takes_too_long_is_left_out_unless_it_is_all_there_is():
    long, short = _test("tests/toy/test_a.py::a", 100.0), _test("tests/toy/test_a.py::b", 1.0)
    assert _turns([long, short]) == [[short]]
    assert _turns([long]) == [[long]]
    shared = _test("tests/toy/test_b.py::c", 1.0, shared=60.0)
    assert _turns([short, shared]) == [[short]]


def test_servers_are_started_for_a_mutant_only_after_all_other_tests_passed():
    server, plain = _test("tests/toy/test_a.py::a", 1.0, server=True), _test("tests/toy/test_a.py::b", 2.0)
    assert _turns([server, plain]) == [[plain], [server]]
    assert _turns([server]) == [[server]]
