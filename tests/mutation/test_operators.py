"""Each operator on a snippet, and what names a mutant."""

import ast
from pathlib import Path

import pytest
from cases import for_each
from mutation.operators import apply, mutants_of
from mutation.tree import watched

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


@pytest.mark.parametrize("path", sorted(_PACKAGE.glob("accounting/*.py")), ids=lambda path: path.name)
def test_every_mutant_of_a_source_is_another_program(path):
    source = path.read_text()
    original = ast.dump(ast.parse(source))
    for mutant in mutants_of(source, path.name):
        mutated = apply(mutant, source)
        assert ast.dump(ast.parse(mutated)) != original
        assert mutated.count("\n") == source.count("\n")


def test_a_watched_source_takes_note_first_thing_in_every_function():
    source = (
        '"""Text."""\n\nfrom __future__ import annotations\n\n\n'
        'class A:\n    def f(self):\n        """Text."""\n        return 1\n\n'
        "    @staticmethod\n    def g(): return 2\n\n"
        "def h():\n    @cache\n    def k():\n        return 3\n\n    return k()\n"
    )
    found = []
    text = watched("a.py", source).replace("from mutation.noting import called as __called__", "")
    names = {"__called__": found.append, "cache": lambda function: function}
    exec(compile(text, "a.py", "exec"), names)
    assert (names["A"]().f(), names["A"].g(), names["h"]()) == (1, 2, 3)
    assert found == ["a.py:A.f", "a.py:A.g", "a.py:h", "a.py:h.k"]


@for_each("path", sorted(_PACKAGE.rglob("*.py")), ids=lambda path: path.stem)
def test_every_source_can_be_watched(path):
    compile(watched(path.name, path.read_text()), path.name, "exec")
