"""Words that a reader meets alone: the first line of a docstring, in an index, an editor or the API's description."""

import ast
import re
from itertools import pairwise
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_LEANS = re.compile(r"(The same\b(?!.* as )|Those of\b|That of\b|As \w|Of \w|Its \w|One of them|All of it\b)")
_CLAUSES = re.compile(r"(What|Whether|Whoever|Who|How|Of|Where|If)\b")  # a subordinate clause is no sentence
_KINDS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def first_lines(node, name):
    """First line of each public docstring below a node, with where it stands."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, _KINDS) and not inner.name.startswith("_"):
            text = ast.get_docstring(inner)
            if text:
                yield f"{name}.{inner.name}: {text.splitlines()[0]}"
            if isinstance(inner, ast.ClassDef):
                yield from first_lines(inner, f"{name}.{inner.name}")


def all_first_lines(tree, name):
    """First line of every docstring of a module, with where it stands: private ones, its own, and those of names."""
    for node in ast.walk(tree):
        if isinstance(node, (*_KINDS, ast.Module)):
            text = ast.get_docstring(node)
            if text:
                yield f"{name} {getattr(node, 'name', 'module')}: {text.splitlines()[0]}"
        if isinstance(node, ast.ClassDef | ast.Module):
            for before, after in pairwise(node.body):
                if isinstance(before, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr):
                    text = getattr(after.value, "value", None)
                    if isinstance(text, str):
                        yield f"{name} line {after.lineno}: {text.splitlines()[0]}"


def test_no_docstring_leans_on_the_one_before_it():
    found = []
    for folder in ("reusable_holdout", "integrations"):
        for path in sorted((_ROOT / folder).rglob("*.py")):
            found += first_lines(ast.parse(path.read_text()), str(path.relative_to(_ROOT)))
    assert len(found) > 2_000
    assert [line for line in found if _LEANS.match(line.split(": ", 1)[1])] == []


def test_what_leans_is_seen():
    assert _LEANS.match("The same of a ratio's.")
    assert _LEANS.match("Of each team, in each epoch.")
    assert not _LEANS.match("One public file of the competition.")


def test_no_docstring_begins_with_a_clause():
    found = []
    for folder in ("reusable_holdout", "integrations"):
        for path in sorted((_ROOT / folder).rglob("*.py")):
            found += all_first_lines(ast.parse(path.read_text()), str(path.relative_to(_ROOT)))
    assert len(found) > 3_000
    assert [line for line in found if _CLAUSES.match(line.split(": ", 1)[1])] == []


def test_a_clause_is_seen_in_private_docstrings_too():
    source = (
        '"""How it works."""\n_N = 1\n"""What it is."""\n'
        'class _A:\n    """An A."""\n    def _b(self):\n        """Whether it is so."""\n'
    )
    lines = list(all_first_lines(ast.parse(source), "a.py"))
    assert lines == [
        "a.py module: How it works.",
        "a.py line 3: What it is.",
        "a.py _A: An A.",
        "a.py _b: Whether it is so.",
    ]
    assert [bool(_CLAUSES.match(line.split(": ", 1)[1])) for line in lines] == [True, True, False, True]
    assert not _CLAUSES.match("Whole number of at least 1.")
