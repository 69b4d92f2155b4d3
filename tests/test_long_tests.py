"""A long test is left out only when nothing that it is about has changed."""

import subprocess

import long_tests
import pytest


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository of two rooms whose present content has passed everything."""
    for file in ("reusable_holdout/noise/laplace.py", "reusable_holdout/plan.py", "tests/noise/test_law.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("1\n")
    (tmp_path / ".ci").mkdir()
    monkeypatch.setattr(long_tests, "ROOT", tmp_path)
    monkeypatch.setattr(long_tests, "LANDED", tmp_path / ".ci" / "landed")
    monkeypatch.delenv(long_tests.ALL, raising=False)
    _git(tmp_path, "init", "-q")
    _commit(tmp_path)
    (tmp_path / ".ci" / "landed").write_text(_git(tmp_path, "rev-parse", "HEAD^{tree}"))
    return tmp_path


def _git(folder, *arguments):
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def _commit(folder):
    _git(folder, "add", "-A")
    _git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all")


class _Item:
    def __init__(self, path, *rooms):
        self.path, self._marker = path, pytest.mark.long(*rooms).mark if rooms else None

    def get_closest_marker(self, name):
        return self._marker if name == "long" else None

    def iter_markers(self, name):
        return [self._marker] if name == "long" and self._marker else []


class _Config:
    hook = property(lambda self: self)

    def pytest_deselected(self, items):
        self.left_out = items


def selected(repository):
    """Which of a short test, a long one about the noise and a long one about the plan would run."""
    own = repository / "tests" / "noise" / "test_law.py"
    items = {
        "short": _Item(own),
        "noise": _Item(own, "reusable_holdout/noise"),
        "plan": _Item(repository / "tests" / "test_plan.py", "reusable_holdout/plan.py"),
    }
    kept = list(items.values())
    long_tests.select(_Config(), kept)
    return {name for name, item in items.items() if item in kept}


def test_nothing_long_runs_when_nothing_has_changed(repository):
    assert selected(repository) == {"short"}
    _commit(repository)  # the note itself
    assert selected(repository) == {"short"}


@pytest.mark.parametrize(
    ("changed", "needed"),
    [
        ("reusable_holdout/noise/laplace.py", {"short", "noise"}),
        ("reusable_holdout/noise/added.py", {"short", "noise"}),
        ("reusable_holdout/noise_free.py", {"short"}),  # another room whose name begins alike
        ("reusable_holdout/plan.py", {"short", "plan"}),
        ("tests/noise/test_law.py", {"short", "noise"}),
        ("tests/noise/test_other.py", {"short"}),
        ("tests/noise/scripted.py", {"short", "noise"}),  # what a test may import
        ("README.md", {"short"}),
        ("tests/conftest.py", {"short", "noise", "plan"}),  # shared by all
        ("pyproject.toml", {"short", "noise", "plan"}),
        ("something/unheard/of.py", {"short", "noise", "plan"}),
    ],
)
def test_a_long_test_runs_when_a_file_of_its_rooms_changes_committed_or_not(repository, changed, needed):
    path = repository / changed
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("2\n")
    assert selected(repository) == needed
    _commit(repository)
    assert selected(repository) == needed


def test_a_file_that_moved_out_of_a_room_has_changed_it(repository):
    (repository / "reusable_holdout/noise/laplace.py").rename(repository / "reusable_holdout/laplace.py")
    _commit(repository)
    assert selected(repository) == {"short", "noise"}


@pytest.mark.parametrize("landed", [None, "0" * 40, "nonsense"])
def test_everything_runs_when_it_is_not_known_what_changed(repository, landed):
    if landed is None:
        long_tests.LANDED.unlink()
    else:
        long_tests.LANDED.write_text(landed)
    assert selected(repository) == {"short", "noise", "plan"}


def test_everything_runs_when_asked(repository, monkeypatch):
    monkeypatch.setenv(long_tests.ALL, "1")
    assert selected(repository) == {"short", "noise", "plan"}


def test_a_room_that_is_not_there_is_a_mistake_whether_or_not_everything_runs(repository, monkeypatch):
    item = _Item(
        repository / "tests" / "noise" / "test_law.py", "reusable_holdout/noise", "reusable_holdout/nosie"
    )
    for everything in ("", "1"):
        monkeypatch.setenv(long_tests.ALL, everything)
        with pytest.raises(pytest.UsageError, match="not there: reusable_holdout/nosie"):
            long_tests.select(_Config(), [item])


def test_costly_examples_are_all_drawn_when_everything_runs(monkeypatch):
    monkeypatch.setenv(long_tests.ALL, "1")
    assert long_tests.examples(50) == 50
    monkeypatch.delenv(long_tests.ALL)
    assert long_tests.examples(50) == 13
