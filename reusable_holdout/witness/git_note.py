"""A witness that is a git note, of a repository or of its remote."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reusable_holdout.errors import LedgerError
from reusable_holdout.witness.head import Head, alone, highest

__all__ = ["GitWitness"]

_REF = "refs/notes/reusable-holdout"
_SECONDS = 60
_SETTINGS = (
    *("-c", "user.name=reusable-holdout", "-c", "user.email=reusable-holdout@localhost"),
    # a hook that asks must not call itself
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
)
_OF_ANOTHER = {  # by which a hook says where it runs: of all repositories git would take that one
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX"),
    *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH"),
    "GIT_CEILING_DIRECTORIES",
}
_PLAIN = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}


class GitWitness:
    """Note of a repository, on the empty tree; for guards that answer a few questions an hour, such as CI's.

    The empty tree is the same object in every clone, however shallow, and whatever is checked out. The note is fetched
    from a remote, another owner's, and pushed to it, never by force; without one it is worth what the repository's own
    safety is. `name` says which ledger's it is, where one repository is witness of several.
    """

    def __init__(self, repository: Path, remote: str = "", name: str = "") -> None:
        self._repository, self._remote, self._name = repository.absolute(), remote, name
        self._ref = f"{_REF}/{name or 'guard'}"

    @property
    def place(self) -> str:
        """As ``git:repository@remote#name``."""
        at, number = f"@{self._remote}" * bool(self._remote), f"#{self._name}" * bool(self._name)
        return f"git:{self._repository}{at}{number}"

    def read(self) -> Head | None:
        """Highest head in the note; None if there is none."""
        if self._remote:
            self._git("fetch", "--quiet", self._remote, f"+{_REF}/*:{_REF}/*")
        try:
            note = self._notes("show", self._tree())
        except _NoNoteError:
            return None
        return highest(note.encode() + b"\n", self.place)

    def advance(self, head: Head, *, after: Head | None) -> Head:
        """Write the note anew, if it is still that which was seen; what another has pushed meanwhile is no error."""
        with self._alone():
            last = self.read()
            if last is not None and (last != after or not head.is_later_than(last)):
                return last
            self._notes("add", "--force", "--message", head.record().decode().strip(), self._tree())
            if not self._remote:
                return head
            try:
                self._git("push", "--quiet", self._remote, f"{self._ref}:{self._ref}")
            except LedgerError:
                held = self.read()
                if held is None or held == last:
                    raise
                return held
        return head

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One of this repository at a time: git would take both of two notes that are written at once."""
        folder = Path(self._git("rev-parse", "--path-format=absolute", "--git-common-dir"))
        try:
            descriptor = os.open(folder / "reusable-holdout.lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise self._unreachable(str(error.strerror)) from None
        try:
            with alone(descriptor):
                yield
        finally:
            os.close(descriptor)

    def _tree(self) -> str:
        return self._git("hash-object", "-t", "tree", "--stdin")

    def _notes(self, *arguments: str) -> str:
        return self._git("notes", f"--ref={self._ref}", *arguments)

    def _git(self, *arguments: str) -> str:
        kept = {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER}
        try:
            done = subprocess.run(  # noqa: S603 - no shell, and nothing of it comes from a question
                ["git", "-C", str(self._repository), *_SETTINGS, *arguments],  # noqa: S607
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
                env=kept | _PLAIN,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise self._unreachable(type(error).__name__) from None
        if done.returncode == 0:
            return done.stdout.strip()
        if arguments[0] == "notes" and "no note found" in done.stderr.lower():
            raise _NoNoteError
        raise self._unreachable(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "git failed")

    def _unreachable(self, why: str) -> LedgerError:
        return LedgerError(
            f"the ledger's witness must be a git repository, whose notes can be written and, with a remote, fetched "
            f"and pushed; {self.place} is not ({why}); mend it, and ask again"
        )


class _NoNoteError(Exception):
    """There is no note yet."""
