"""What a model's code does is part of it; where the code lies, and how it is laid out, is not."""

import functools
import subprocess
import sys
import textwrap
import types

import joblib
import numpy as np
import pytest
from cases import for_each
from joblib import delayed
from sklearn.linear_model import LogisticRegression

from reusable_holdout.guard.fingerprint import fingerprint
from reusable_holdout.guard.fingerprint.code import edition

MODEL = """
import functools
import logging
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

BAR = 0.5
WORDS = {"low": 0, "high": 1}
log = logging.getLogger("mine")

def helper(X):
    return X[:, 0] * 2

def logged(function):
    @functools.wraps(function)
    def call(self, X):
        log.debug("asked")
        return function(self, X)
    return call

class Base:
    offset = 1

    def shifted(self, X):
        return helper(X) + self.offset

class Model(Base, ClassifierMixin, TransformerMixin, BaseEstimator):
    def __init__(self, C=1.0):
        self.C = C

    @logged
    def predict(self, X, *, power=2):
        if power > 1:
            rows = [value > BAR for value in self.shifted(X)]
        return np.array([WORDS["high"] if one else 0 for one in rows])

    def transform(self, X):
        return X

    @property
    def width(self):
        return 3

    @staticmethod
    def least():
        return 4

    @classmethod
    def make(cls):
        return cls(5)

    @functools.cached_property
    def kept(self):
        return lambda: 6

made = Model()
"""


def made(source, name="__main__", file="<cell 1>", what="made"):
    """What a cell of a notebook makes."""
    names = {"__name__": name}
    exec(compile(textwrap.dedent(source), file, "exec"), names)
    return names[what]


def of(source, **more):
    return fingerprint(made(source, **more))


@for_each(
    ("old", "new"),
    [
        ("X[:, 0] * 2", "X[:, 0] * 3"),  # a helper
        ("X[:, 0] * 2", "X[:, 0] + 2"),
        ("BAR = 0.5", "BAR = 0.6"),  # a constant
        ('"high": 1', '"high": 2'),
        ("offset = 1", "offset = 2"),  # an attribute of the base
        ("+ self.offset", "- self.offset"),
        ("power=2", "power=3"),  # a default
        ("value > BAR", "value >= BAR"),  # in a comprehension
        ('log.debug("asked")', 'log.info("asked")'),  # in a decorator
        ("return 3", "return 33"),
        ("return 4", "return 44"),
        ("return cls(5)", "return cls(55)"),
        ("lambda: 6", "lambda: 66"),
        ("C=1.0", "C=2.0"),
        ("Model(Base, ", "Model("),
    ],
)
def test_another_line_of_code_is_another_model(old, new):
    assert MODEL.count(old) >= 1
    assert of(MODEL.replace(old, new)) != of(MODEL)


@for_each(
    ("old", "new"),
    [
        ("\nBAR", "\n# a comment\n\n\nBAR"),
        ("    def __init__", '    """What it is."""\n\n    def __init__'),
        ("        if power", '        """Predict."""\n        if power'),
        ("def helper(X):", 'def helper(X: "np.ndarray") -> "np.ndarray":\n    "Twice."'),
        ("BAR = 0.5", "BAR = 0.5\nunused = 7"),
        ("made = Model()", "def other():\n    return BAR\n\nmade = Model()"),
    ],
)
def test_comments_docstrings_and_what_it_does_not_use_are_no_part_of_it(old, new):
    assert of(MODEL.replace(old, new)) == of(MODEL)


def test_the_same_cell_run_again_is_the_same_model_whatever_it_is_called():
    assert of(MODEL) == of(MODEL) == of(MODEL, file="<stdin>", name="elsewhere")


def test_a_class_that_a_notebook_defines_anew_under_a_model_leaves_the_model_what_it_was(monkeypatch):
    cell = types.ModuleType("cell")
    monkeypatch.setitem(sys.modules, "cell", cell)
    vars(cell).update(__name__="cell")
    exec(MODEL, vars(cell))
    old, first = cell.made, fingerprint(cell.made)
    exec(MODEL.replace("BAR = 0.5", "BAR = 0.6").replace("offset = 1", "offset = 9"), vars(cell))
    assert fingerprint(old) != fingerprint(cell.made)
    exec(MODEL, vars(cell))
    assert fingerprint(old) == first == fingerprint(cell.made)


def lambdas(bar):
    return lambda X: X + bar


def test_a_lambda_is_its_code_and_what_it_closes_over():
    assert fingerprint(lambdas(1)) == fingerprint(lambdas(1))
    assert fingerprint(lambdas(1)) != fingerprint(lambdas(2))
    assert fingerprint(lambda X: X > 1) != fingerprint(lambda X: X > 1.0)
    assert fingerprint(lambda X: X in {1, 2}) == fingerprint(lambda X: X in {2, 1})


@for_each(
    "source",
    [
        """
        from dataclasses import dataclass, field
        @dataclass
        class Made:
            C: float = 1.0
            names: list = field(default_factory=list)
        made = Made()
        """,
        """
        from enum import Enum
        class Made(Enum):
            LOW = 1.0
        made = Made.LOW
        """,
        """
        from collections import namedtuple
        made = namedtuple("Made", ["C"])(1.0)
        """,
        """
        from abc import ABC, abstractmethod
        class Top(ABC):
            @abstractmethod
            def predict(self): ...
        class Made(Top):
            __slots__ = ("C", "other")
            def predict(self):
                return super().__init__()
        made = Made()
        made.C = 1.0
        """,
        """
        import functools
        @functools.lru_cache
        def f(C=1.0):
            return f
        made = functools.partial(f, 1)
        """,
        """
        from typing import Generic, TypeVar
        T = TypeVar("T")
        class Made(Generic[T]):
            C = 1.0
            def even(self, n):
                return n == 0 or odd(self, n - 1)
        def odd(self, n):
            return n != 0 and Made.even(self, n - 1)
        made = Made()
        """,
    ],
)
def test_classes_of_every_make_are_read(source):
    assert of(source) == of(source)
    assert of(source) != of(source.replace("1.0", "2.0").replace('["C"]', '["D"]'))


@for_each(
    "source",
    [
        "import threading\nlock = threading.Lock()\ndef made():\n    return lock",
        "rows = (one for one in 'ab')\ndef made():\n    return next(rows)",
        "def made():\n    import not_there_yet\n    return not_there_yet.f()",
        "import weakref\nclass A: ...\na = A()\nkept = weakref.ref(a)\ndef made():\n    return kept()",
        "import zlib\npacked = zlib.compressobj()\ndef made():\n    return packed",
    ],
)
def test_what_cannot_be_read_is_a_new_question_each_time(source):
    assert len({of(source) for _ in range(2)}) == 2
    function = made(source)
    assert fingerprint(function) != fingerprint(function)


# ---- processes and folders

ASK = """
import sys
sys.path.insert(0, {folder!r})
from reusable_holdout.guard.fingerprint import fingerprint
{body}
print(fingerprint(made).hex())
"""


def run(script, folder):
    folder.mkdir(exist_ok=True)
    (folder / "script.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.long("reusable_holdout/guard/fingerprint")
def test_a_script_in_two_processes_and_folders_is_one_model_until_it_is_edited(tmp_path):
    script = ASK.format(folder="", body=MODEL)
    here = run(script, tmp_path / "here")
    assert run("# a comment\n\n" + script, tmp_path / "there") == here
    assert run(script.replace("BAR = 0.5", "BAR = 0.6"), tmp_path / "here") != here


def test_a_module_that_is_edited_is_another_model_and_so_is_one_that_it_uses(tmp_path):
    folder = tmp_path / "modules"
    folder.mkdir()
    helper = "def f(X):\n    return X * 2\n\ndef unused():\n    return 1\n"
    (folder / "mine.py").write_text(
        "import helping\n\nclass Model:\n    def predict(self, X):\n        return helping.f(X)\n"
    )
    (folder / "helping.py").write_text(helper)
    script = ASK.format(folder=str(folder), body="from mine import Model\nmade = Model()")
    here = run(script, tmp_path / "a")
    (folder / "helping.py").write_text("# moved\n" + helper.replace("return 1", "return 1_000"))
    assert run(script, tmp_path / "b") == here
    (folder / "helping.py").write_text(helper.replace("X * 2", "X * 2000"))
    assert run(script, tmp_path / "a") != here


WORKERS = """
import joblib
{body}
def there(one):
    from reusable_holdout.guard.fingerprint import fingerprint
    return fingerprint(one).hex()
if __name__ == "__main__":
    first = there(made)
    for found in joblib.Parallel(2)(joblib.delayed(there)(made) for _ in range(2)):
        assert found == first
    print(first)
"""


@pytest.mark.long("reusable_holdout/guard/fingerprint")
def test_a_class_of_the_script_has_its_fingerprint_in_a_worker_too(tmp_path):
    plain = MODEL.replace(
        "functools.cached_property", "property"
    )  # a cached property holds a lock until Python 3.12
    script = WORKERS.format(body=plain + "\nmade.also = lambda X: Model\n")
    assert run(script, tmp_path / "work") == run(script, tmp_path / "work")


def test_a_lambda_of_a_test_has_its_fingerprint_in_a_worker_too():
    model = LogisticRegression().set_params(C=2.0)
    model.by = lambdas(3)
    found = joblib.Parallel(2)(delayed(fingerprint)(model) for _ in range(2))
    assert found == [fingerprint(model)] * 2


# ---- what is installed


def test_installed_code_counts_by_its_version_and_ones_own_by_its_code(monkeypatch):
    import sklearn

    assert edition("sklearn").split()[-1] == sklearn.__version__
    assert edition("json").startswith("python")
    assert edition("builtins").startswith("python")
    assert edition("__main__") is None
    assert edition("never_imported") is None
    here = fingerprint(LogisticRegression())
    monkeypatch.setattr(sklearn, "__version__", "0.1")
    assert fingerprint(LogisticRegression()) != here


def test_a_package_without_a_version_is_ones_own(monkeypatch, tmp_path):
    monkeypatch.setattr("reusable_holdout.guard.fingerprint.code._folders", lambda: ((str(tmp_path),), ()))
    (tmp_path / "loose_package_of_a_test.py").write_text("def f(): return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import loose_package_of_a_test as loose

    assert edition(loose.__name__) is None
    loose.__version__ = "1.0"
    assert edition(loose.__name__) == "loose_package_of_a_test 1.0"
    sys.modules.pop(loose.__name__)


class Constant:
    def __init__(self, value):
        self.value = value

    def __get__(self, model, owner=None):
        return lambda X: np.full(len(X), self.value)


@pytest.mark.parametrize(
    "put",
    [
        Constant,
        lambda value: lambda self, X: np.full(len(X), value),
        lambda value: property(lambda self: lambda X: np.full(len(X), value)),
        lambda value: staticmethod(lambda X: np.full(len(X), value)),
        lambda value: functools.partialmethod(lambda self, X: np.full(len(X), value)),
    ],
    ids=["descriptor", "method", "property", "static method", "partial method"],
)
def test_whatever_was_put_into_an_installed_class_counts(put, monkeypatch):
    found = [fingerprint(LogisticRegression())]
    for value in (0, 1):
        monkeypatch.setattr(LogisticRegression, "predict", put(value))
        found.append(fingerprint(LogisticRegression()))
    assert len(set(found)) == 3
    assert fingerprint(LogisticRegression()) == found[2]


def test_a_method_that_was_bound_to_one_model_counts_by_what_it_does():
    def patched(predict):
        model = LogisticRegression()
        model.predict = types.MethodType(predict, model)
        return fingerprint(model)

    ones, zeros = lambda self, X: np.ones(len(X)), lambda self, X: np.zeros(len(X))
    assert len({patched(ones), patched(zeros), fingerprint(LogisticRegression())}) == 3
    assert patched(ones) == patched(ones)


def test_a_name_that_is_borrowed_from_an_installed_function_does_not_stand_for_the_code():
    @functools.wraps(np.mean)
    def mine(X):
        return X[0]

    @functools.wraps(np.mean)
    def other(X):
        return X[1]

    assert len({fingerprint(one) for one in (mine, other, np.mean)}) == 3


def test_that_pickle_has_met_a_class_is_no_part_of_it():
    class Part:
        pass

    class Whole:
        def __init__(self):
            self.part = Part()

    whole = Whole()
    before = fingerprint(whole)  # the class of the part is read before the part itself is
    assert "__slotnames__" in vars(Part)
    assert fingerprint(whole) == before
