"""A witness that is a git note, of a repository or of its remote."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from reusable_holdout.errors import LedgerError
from reusable_holdout.witness.head import Head, highest

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["GitWitness"]

_REF = "refs/notes/reusable-holdout"
_SECONDS = 60


class GitWitness:
    """Note on the first commit of a repository; for guards that answer a few questions an hour, such as CI's.

    Parameters
    ----------
    repository : Path
    remote : str
        Name of the remote that is another owner's: the note is fetched from it and pushed to it, never by force. Empty
        for none, and then the note is worth what the repository's own safety is.
    name : str
        Which ledger's, where one repository is witness of several.
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
            note = self._notes("show", self._first())
        except _NoNoteError:
            return None
        return highest(note.encode() + b"\n", self.place)

    def advance(self, head: Head, *, after: Head | None) -> Head:
        """Write the note anew, if it is still that which was seen; what another has pushed meanwhile is no error."""
        last = self.read()
        if last is not None and last != after:
            return last
        self._notes("add", "--force", "--message", head.record().decode().strip(), self._first())
        if self._remote:
            self._git("push", "--quiet", self._remote, self._ref)
        return head

    def _first(self) -> str:
        commits = self._git("rev-list", "--max-parents=0", "HEAD").split()
        return commits[-1]

    def _notes(self, *arguments: str) -> str:
        return self._git("notes", f"--ref={self._ref}", *arguments)

    def _git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=reusable-holdout", "-c", "user.email=reusable-holdout@localhost")
        try:
            done = subprocess.run(  # noqa: S603 - no shell, and nothing of it comes from a question
                ["git", "-C", str(self._repository), *identity, *arguments],  # noqa: S607
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
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
            f"the ledger's witness must be a git repository with a commit, whose notes can be written and, with a "
            f"remote, pushed; {self.place} is not ({why}); mend it, and ask again"
        )


class _NoNoteError(Exception):
    """The first commit has no note yet."""
