"""Each operator on a snippet, and what names a mutant."""

import ast
import re
from pathlib import Path

import pytest
from cases import for_each
from long_tests import ACCOUNTING
from mutation.operators import apply, mutants_of
from mutation.tree import blocks_of, watched

_PACKAGE = Path(__file__).parents[2] / "reusable_holdout"


def _changes(source, operator=None):
    """Each mutant's text, without the parentheses that keep it together."""
    mutants = [mutant for mutant in mutants_of(source, "a.py") if operator in {None, mutant.operator}]
    return [ast.unparse(ast.parse(apply(mutant, source))) for mutant in mutants]


@for_each(
    ("operator", "source", "mutated"),
    [
        ("boundary", "a < b", ["a <= b"]),
        ("boundary", "a <= b", ["a < b"]),
        ("boundary", "a > b", ["a >= b"]),
        ("boundary", "a <= b < c", ["a < b < c", "a <= b <= c"]),
        ("negation", "a == b", ["a != b"]),
        ("negation", "a is not b", ["a is b"]),
        ("negation", "a in b", ["a not in b"]),
        ("arithmetic", "a + b", ["a - b"]),
        ("arithmetic", "a * b - c", ["a * b + c", "a / b - c"]),
        ("arithmetic", "a - (b + c)", ["a + (b + c)", "a - (b - c)"]),
        ("arithmetic", "a ** b // c", ["a ** b * c", "a * b // c"]),
        ("arithmetic", "a += b", ["a -= b"]),
        ("bits", "a << b | c & d", ["a << b & (c & d)", "a >> b | c & d", "a << b | (c | d)"]),
        ("sign", "a * -b", ["a * b"]),
        ("and/or", "a and b", ["a or b"]),
        ("and/or", "a or b and c", ["a and (b and c)", "a or (b or c)"]),
        ("side", "a and b", ["b", "a"]),
        ("side", "a or b or c", ["b or c", "a or c", "a or b"]),
        ("not", "not a", ["a"]),
        ("function", "min(a, b)", ["max(a, b)"]),
        ("function", "math.floor(a)", ["math.ceil(a)"]),
        ("function", "np.maximum(a, b)", ["np.minimum(a, b)"]),
        ("number", "a[7]", ["a[8]"]),
        ("number", "a = 0.5", ["a = 0.75"]),
        ("number", "a = 0.0", ["a = 1.0"]),
        ("truth", "a(b=True)", ["a(b=False)"]),
        ("dropped", "a(b)\nc += d", ["pass\nc += d", "a(b)\npass"]),
        ("returned", "def f():\n    return g(a)", ["def f():\n    return None"]),
    ],
)
def test_an_operator_makes_these_of_that(operator, source, mutated):
    assert _changes(source, operator) == mutated


@for_each(
    "source",
    [
        '"""1 < 2"""',
        "raise ValueError(a + 1)",
        "a = f'{b + 1}'",
        "a: Literal[1]",
        "A: TypeAlias = Literal[1]",
        "A = Literal[1, 2]",
        "def f(a: Literal[1]) -> Literal[2]: ...",
        "@lru_cache(maxsize=2)\ndef f(): ...",
        "class A(B, key=True): ...",
        "class A:\n    def __repr__(self):\n        return 'a' * 2",
        "__all__ = ['a'] + b",
        "if TYPE_CHECKING:\n    a = 1",
        "problem = LedgerError(1)",
        "isinstance(a, int | str) if b else c",
        "zip(a, b, strict=True) if b else c",
        "def f():\n    return None",
        "a = 1e-9",
    ],
)
def test_what_is_no_answer_of_the_program_is_not_mutated(source):
    assert _changes(source) == []


def test_a_function_in_which_something_can_be_changed_keeps_what_it_returns():
    assert _changes("def f():\n    return a + b") == ["def f():\n    return a - b"]


def test_defaults_belong_to_their_function():
    [mutant] = mutants_of("class A:\n    def f(self, a=1): ...", "a.py")
    assert (mutant.function, mutant.operator) == ("A.f", "number")


def test_the_lines_below_a_change_stay_where_they_are():
    source = "a = (b +\n     c)\nf(\n    d,\n)\ne = 1\n"
    for mutant in mutants_of(source, "a.py"):
        lines = apply(mutant, source).splitlines()
        assert len(lines) == 6
        assert mutant.line.startswith("e") or lines[5] == "e = 1"


def test_text_before_a_change_may_have_any_letters():
    assert _changes("a = 'ä€𝄞' + b") == ["a = 'ä€𝄞' - b"]


def test_an_identity_outlives_lines_that_move():
    source = "def f(a):\n    return a + 1\n"
    moved = "import math\n\n\ndef g():\n    f(1)\n\n\n" + source
    before = {mutant.identity for mutant in mutants_of(source, "a.py")}
    after = {mutant.identity for mutant in mutants_of(moved, "a.py") if mutant.function == "f"}
    assert before == after


def test_mutants_that_look_alike_are_counted():
    source = "def f(a):\n    a += 1\n    a += 1\n    return [1, 1]\n"
    identities = [mutant.identity for mutant in mutants_of(source, "a.py")]
    assert len(set(identities)) == len(identities)
    assert [mutant.occurrence for mutant in mutants_of(source, "a.py") if "[" in mutant.line] == [1, 2]


@pytest.mark.long("tests/mutation", *ACCOUNTING)
@pytest.mark.parametrize(
    "path", sorted(_PACKAGE.glob("mechanisms/accounting/*.py")), ids=lambda path: path.name
)
def test_every_mutant_of_a_source_is_another_program(path):
    source = path.read_text()
    original = ast.dump(ast.parse(source))
    for mutant in mutants_of(source, path.name):
        mutated = apply(mutant, source)
        assert ast.dump(ast.parse(mutated)) != original
        assert mutated.count("\n") == source.count("\n")


_WATCHED = '''"""Text."""

from __future__ import annotations


class A:
    def f(self, x):
        """Text."""
        if x > 1:
            return 1
        elif x > 0:
            y = 2
        else:
            y = 3
        return y

    @staticmethod
    def g(): return 2

def h():
    @cache
    def k():
        for _ in range(2):
            pass
        return 3

    return k()
'''


class _Shortened(list):
    def append(self, name):
        super().append(re.sub("@......", "", name))


def test_a_block_is_another_when_its_function_changes_and_not_when_lines_move():
    changed = _WATCHED.replace("return 1", "return 7")
    versions = [
        {block.function: block.version for block in blocks_of(source)}
        for source in (_WATCHED, changed, _WATCHED.replace('"""Text."""\n', '"""Other text."""\n\n\n'))
    ]
    assert versions[0] == versions[2]
    assert {name for name in versions[0] if versions[0][name] != versions[1][name]} == {"A.f"}


def test_a_watched_source_takes_note_first_thing_in_every_block():
    found, seen = _Shortened(), set()
    text = watched("a.py", _WATCHED).replace(
        "from mutation.noting import reached as __reached__, seen as __seen__", ""
    )
    names = {"__reached__": found.append, "__seen__": seen, "cache": lambda function: function}
    exec(compile(text, "a.py", "exec"), names)
    instance = names["A"]()
    assert (instance.f(2), names["A"].g(), names["h"]()) == (1, 2, 3)
    assert found == ["a.py:A.f#0", "a.py:A.f#1", "a.py:A.g#0", "a.py:h#0", "a.py:h.k#0", *2 * ["a.py:h.k#1"]]
    found.clear()
    assert (instance.f(1), instance.f(0)) == (2, 3)
    assert found == [f"a.py:A.f#{number}" for number in (0, 2, 4, 0, 3, 4)]
    seen.update(f"a.py:{block.name}" for block in blocks_of(_WATCHED))
    found.clear()
    assert names["A"].g() == 2
    assert found == []


def test_a_block_is_a_body_or_what_follows_a_statement_that_may_leave_it():
    spans = [(f"{block.function}#{block.number}", block.first, block.last) for block in blocks_of(_WATCHED)]
    assert spans == [
        ("A.f#0", 9, 14),
        ("A.f#1", 10, 10),
        ("A.f#2", 12, 12),
        ("A.f#3", 14, 14),
        ("A.f#4", 15, 15),
        ("A.g#0", 18, 18),
        ("h#0", 21, 27),
        ("h.k#0", 23, 25),
        ("h.k#1", 24, 24),
    ]


@pytest.mark.long("tests/mutation")
@for_each("path", sorted(_PACKAGE.rglob("*.py")), ids=lambda path: path.stem)
def test_every_source_can_be_watched(path):
    compile(watched(path.name, path.read_text()), path.name, "exec")
