"""Repositories that a witness may meet: in a hook, shallow, without commits, named by somebody who means harm."""

import os
import subprocess

import pytest
from made_guards import made_guard
from witness.guards import LABELS, PLAN, git, made

from reusable_holdout import verify
from reusable_holdout.errors import LedgerError, RolledBackError
from reusable_holdout.witness import Head, witness_at

FIRST, SECOND, THIRD = (Head(1, query, bytes([query]) * 32) for query in (1, 2, 3))


@pytest.fixture
def repository(tmp_path):
    git("init", tmp_path / "repository")
    git("-C", tmp_path / "repository", "commit", "--allow-empty", "--message", "first")
    return tmp_path / "repository"


@pytest.fixture
def remote(tmp_path, repository):
    git("clone", "--bare", repository, tmp_path / "remote")
    git("-C", repository, "remote", "add", "theirs", tmp_path / "remote")
    return tmp_path / "remote"


def failing_hook(hooks, name):
    hooks.mkdir(exist_ok=True)
    (hooks / name).write_text("#!/bin/sh\nexit 1\n")
    (hooks / name).chmod(0o755)
    return hooks / name


@pytest.mark.parametrize("folder", ["new", "a@b/c#d/repository"])
def test_a_repository_of_any_path_and_without_a_commit_will_do(tmp_path, folder):
    git("init", tmp_path / folder)
    witness = witness_at(f"git:{tmp_path / folder}")
    assert witness.read() is None
    assert witness.advance(FIRST, after=None) == FIRST
    assert witness_at(witness.place).read() == FIRST


def test_it_remembers_whatever_is_checked_out_and_each_name_by_itself(repository):
    witness = witness_at(f"git:{repository}")
    witness.advance(FIRST, after=None)
    git("-C", repository, "checkout", "--orphan", "other")
    git("-C", repository, "commit", "--allow-empty", "--message", "another first")
    assert witness.read() == FIRST
    assert witness_at(f"git:{repository}#other").read() is None


def test_a_shallow_clone_sees_what_others_have_told(tmp_path, repository, remote):
    witness_at(f"git:{repository}@theirs").advance(FIRST, after=None)
    git("-C", repository, "commit", "--allow-empty", "--message", "second")
    git("-C", repository, "push", "theirs", "HEAD")
    git("clone", "--depth", "1", f"file://{remote}", tmp_path / "shallow")
    assert witness_at(f"git:{tmp_path / 'shallow'}@origin").read() == FIRST


def test_in_a_hook_of_another_repository_it_is_still_the_named_one(tmp_path, repository, monkeypatch):
    other = tmp_path / "other"
    git("init", other)
    with monkeypatch.context() as hook:
        hook.setenv("GIT_DIR", str(other / ".git"))
        hook.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
        witness_at(f"git:{repository}").advance(FIRST, after=None)
    assert witness_at(f"git:{repository}").read() == FIRST
    assert witness_at(f"git:{other}").read() is None


@pytest.mark.usefixtures("remote")
def test_no_hook_runs_and_git_speaks_the_language_that_is_understood(repository, tmp_path, monkeypatch):
    failing_hook(repository / ".git" / "hooks", "pre-push")
    real, here = subprocess.check_output(["which", "git"], text=True).strip(), tmp_path / "bin"
    here.mkdir()
    (here / "git").write_text(f'#!/bin/sh\necho "$LC_ALL" >> {tmp_path}/languages\nexec {real} "$@"\n')
    (here / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{here}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert witness_at(f"git:{repository}@theirs").advance(FIRST, after=None) == FIRST
    assert set((tmp_path / "languages").read_text().split()) == {"C"}


def test_who_pushes_second_hears_what_was_pushed_first(tmp_path, repository, remote, monkeypatch):
    git("clone", remote, tmp_path / "clone")
    one, other = witness_at(f"git:{repository}@theirs"), witness_at(f"git:{tmp_path / 'clone'}@origin")
    one.advance(FIRST, after=None)
    read, races = type(other).read, iter([True])

    def read_and_be_late(self):
        found = read(self)
        if self is other and next(races, False):
            one.advance(SECOND, after=FIRST)
        return found

    monkeypatch.setattr(type(other), "read", read_and_be_late)
    assert other.advance(THIRD, after=FIRST) == SECOND
    assert one.read() == other.read() == SECOND


@pytest.mark.parametrize(
    "part", ["@--upload-pack=touch {pwned};", "@-x#guard", "#../../heads/main", "#a:refs/heads/main"]
)
def test_a_place_in_a_ledger_that_somebody_sent_runs_nothing(tmp_path, repository, part):
    place = f"git:{repository}{part.format(pwned=tmp_path / 'pwned')}"
    for use in (witness_at(place).read, lambda: made(tmp_path / "guard.db", place)):
        with pytest.raises(LedgerError):
            use()
    assert not (tmp_path / "pwned").exists()


def test_a_push_that_fails_keeps_the_answer_inside(tmp_path, repository, remote):
    path, place = tmp_path / "guard.db", f"git:{repository}@theirs"
    with made(path, place) as guard:
        hook = failing_hook(remote / "hooks", "pre-receive")
        with pytest.raises(LedgerError, match="held back until the witness can be reached"):
            guard.evaluate(LABELS, prior=1.0)
        hook.unlink()
        assert guard.evaluate(LABELS, prior=1.0).replayed
    assert verify(path).witnessed
    with pytest.raises(RolledBackError):
        made_guard(None, LABELS, ledger=tmp_path / "second.db", witness=place, **PLAN)
