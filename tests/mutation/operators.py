"""Mutants of a source text: one changed expression, or one dropped statement, each.

An operator is a rule that makes a wrong program of a right one:

=================  ====================================================================
boundary           ``<`` and ``<=`` change places, ``>`` and ``>=`` too
negation           ``==`` and ``!=``, ``is`` and ``is not``, ``in`` and ``not in``
arithmetic         ``+`` and ``-``, ``*`` and ``/``, ``//`` to ``*``, ``**`` to ``*``
bits               ``<<`` and ``>>``, ``&`` and ``|``
sign               ``-x`` to ``x``
and/or             ``and`` and ``or``
side               one side of an ``and`` or ``or`` is left out
not                ``not x`` to ``x``
function           ``min`` and ``max``, ``floor`` and ``ceil``, ``any`` and ``all``, and NumPy's
number             an integer n to n + 1, a float x to 1.5 x
truth              ``True`` and ``False``
dropped            a statement that is a call, or an augmented assignment, is left out
returned           ``return x`` to ``return None``, in functions in which nothing else can be changed
=================  ====================================================================

Not mutated: text and what builds it (strings, f-strings, ``__repr__``), what is raised, annotations and other types,
decorators, ``__all__``, blocks for type checkers: a changed message is no wrong answer. Nor is a float below 1e-6, an
allowance for rounding, made half as large again: those are several times what is needed.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

__all__ = ["Mutant", "apply", "mutants_of"]

_BOUNDARY = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_NEGATION = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
}
_BITS = {ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
_PAIRS = [
    ("min", "max"),
    ("floor", "ceil"),
    ("any", "all"),
    ("minimum", "maximum"),
    ("argmin", "argmax"),
    ("nanmin", "nanmax"),
]
_FUNCTIONS = {**dict(_PAIRS), **{second: first for first, second in _PAIRS}}
_ROUNDING = 1e-6
_TEXT_FUNCTIONS = {"__repr__", "__str__"}
_TYPE_MAKERS = {"TypeVar", "NewType", "ParamSpec", "cast", "Literal", "Callable"}
_SILENT_KEYWORDS = {
    "strict",  # of zip: the lengths agree anyhow
    "stacklevel",  # of a warning
    "maxsize",  # of a cache
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file.

    Attributes
    ----------
    file, function : str
        Where: path from the top, and qualified name; empty at the level of the module.
    operator : str
    line : str
        Text of the source line on which the changed code begins.
    occurrence : int
        Counts from 1 the mutants that are alike in all of the above.
    start, end : int
        The bytes of the source that are replaced.
    replacement : str
    """

    file: str
    function: str
    operator: str
    line: str
    occurrence: int
    start: int
    end: int
    replacement: str

    @property
    def identity(self) -> tuple[str, str, str, str, int]:
        """What names it, whatever lines were added above it."""
        return self.file, self.function, self.operator, self.line, self.occurrence

    @property
    def name(self) -> str:
        """Short form of the identity."""
        return hashlib.sha256(repr(self.identity).encode()).hexdigest()[:12]


def apply(mutant: Mutant, source: str) -> str:
    """Source text with the change made; every other line stays where it is."""
    content = source.encode()
    return (content[: mutant.start] + mutant.replacement.encode() + content[mutant.end :]).decode()


def mutants_of(source: str, file: str) -> list[Mutant]:
    """Every mutant of a source text, in the order of the text."""
    finder = _Finder(source, file)
    finder.visit(ast.parse(source))
    counts: dict[tuple[str, str, str], int] = {}
    numbered = []
    for mutant in sorted(finder.found, key=lambda mutant: mutant.start):
        alike = (mutant.function, mutant.operator, mutant.line)
        counts[alike] = counts.get(alike, 0) + 1
        numbered.append(replace(mutant, occurrence=counts[alike]))
    return numbered


class _Finder(ast.NodeVisitor):
    """Walks the tree with the names of the functions it is in."""

    def __init__(self, source: str, file: str) -> None:
        self.found: list[Mutant] = []
        self._file = file
        self._content = source.encode()
        self._lines = self._content.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self._names: list[str] = []

    # ---- what is found

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def _add(self, operator: str, node: ast.expr | ast.stmt, text: str, *, closing: str = "") -> None:
        start, end = self._span(node)
        lines = self._content[start:end].count(b"\n")  # so many that the lines below stay where they are
        line = self._lines[node.lineno - 1].decode().strip()
        replacement = text + "\n" * lines + closing
        self.found.append(
            Mutant(self._file, ".".join(self._names), operator, line, 0, start, end, replacement)
        )

    def _change(self, operator: str, node: ast.expr, new: ast.expr) -> None:
        self._add(operator, node, f"({ast.unparse(new)}", closing=")")

    # ---- where not to look

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if node.name in _TEXT_FUNCTIONS:
            return
        self._names.append(node.name)
        before = len(self.found)
        defaults = [*node.args.defaults, *(value for value in node.args.kw_defaults if value is not None)]
        self._visit_all(defaults)
        self._visit_all(node.body)
        if len(self.found) == before:
            for statement in _own_returns(node.body):
                self._add("returned", statement, "return None")
        self._names.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - the name that NodeVisitor looks for

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._names.append(node.name)
        self._visit_all(node.body)
        self._names.pop()

    def visit_Raise(self, node: ast.Raise) -> None:
        """Nothing of what is raised."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Nothing of what is written."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and "TypeAlias" not in ast.unparse(node.annotation):
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if not names & {"__all__", "__slots__", "__match_args__"} and not _is_type(node.value):
            self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.unparse(node.test):
            self._visit_all(node.orelse)
        else:
            self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        self.visit(node.test)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in _SILENT_KEYWORDS:
            self.visit(node.value)

    # ---- where to look

    def visit_Compare(self, node: ast.Compare) -> None:
        for place, operator in enumerate(node.ops):
            for name, table in (("boundary", _BOUNDARY), ("negation", _NEGATION)):
                if type(operator) in table:
                    new = copy.deepcopy(node)
                    new.ops[place] = table[type(operator)]()
                    self._change(name, node, new)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        for name, table in (("arithmetic", _ARITHMETIC), ("bits", _BITS)):
            if type(node.op) in table:
                self._change(name, node, ast.BinOp(node.left, table[type(node.op)](), node.right))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._change("and/or", node, ast.BoolOp(other, node.values))
        for place in range(len(node.values)):
            left = node.values[:place] + node.values[place + 1 :]
            self._change("side", node, left[0] if len(left) == 1 else ast.BoolOp(node.op, left))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._change("not", node, node.operand)
        elif isinstance(node.op, ast.USub):
            self._change("sign", node, node.operand)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = _last_name(node.func)
        if name in _FUNCTIONS:
            new = copy.deepcopy(node.func)
            _rename(new, _FUNCTIONS[name])
            self._add("function", node.func, ast.unparse(new))
        if name.endswith(("Error", "Warning")) or name == "warn":
            return  # its text
        if name in {"isinstance", "issubclass"}:
            self.visit(node.args[0])
            return
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._add("truth", node, repr(not value))
        elif isinstance(value, int):
            self._add("number", node, repr(value + 1))
        elif isinstance(value, float) and not 0.0 < value < _ROUNDING:
            self._add("number", node, repr(1.5 * value if value else 1.0))

    def visit_Expr(self, node: ast.Expr) -> None:
        called = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(called, ast.Call):
            self._add("dropped", node, "pass")
        self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add("dropped", node, "pass")
        for name, table in (("arithmetic", _ARITHMETIC), ("bits", _BITS)):
            if type(node.op) in table:
                new = ast.AugAssign(node.target, table[type(node.op)](), node.value)
                self._add(name, node, ast.unparse(new))
        self.visit(node.value)

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)


def _own_returns(body: list[ast.stmt]) -> Iterator[ast.Return]:
    """Those of a value, of this function and not of one inside it."""
    for statement in body:
        if isinstance(statement, ast.Return):
            if statement.value is not None and ast.unparse(statement.value) != "None":
                yield statement
        elif not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for name in ("body", "orelse", "finalbody"):
                yield from _own_returns(getattr(statement, name, []))
            for handler in getattr(statement, "handlers", []) + getattr(statement, "cases", []):
                yield from _own_returns(handler.body)


def _last_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _rename(node: ast.expr, name: str) -> None:
    if isinstance(node, ast.Name):
        node.id = name
    elif isinstance(node, ast.Attribute):
        node.attr = name


def _is_type(node: ast.expr) -> bool:
    made = (
        node.func if isinstance(node, ast.Call) else node.value if isinstance(node, ast.Subscript) else None
    )
    return made is not None and _last_name(made) in _TYPE_MAKERS - {"cast"}
