"""A witness that is a git note of a repository or of its remote."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from reusable_holdout.errors import LedgerError
from reusable_holdout.witness.head import Head, highest, locked

_REF = "refs/notes/reusable-holdout"
_SECONDS = 60
_SETTINGS = (
    *("-c", "user.name=reusable-holdout", "-c", "user.email=reusable-holdout@localhost"),
    # git runs no hooks: a hook that asks a guard must not call itself
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
)
_OF_A_HOOK = {  # variables set in a hook: with them git would use the hook's repository, whichever is named
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX"),
    *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH"),
    "GIT_CEILING_DIRECTORIES",
}
_PLAIN = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}


class GitWitness:
    """A note of a repository, on the empty tree; for guards that answer a few questions an hour, such as CI's.

    The empty tree is the same object in every clone, however shallow, whichever commit is checked out. The note is
    fetched from a remote, which another owner keeps, and pushed to it, never by force. Without a remote it is as safe
    as the repository. `name` tells the notes of several ledgers apart in one repository.
    """

    def __init__(self, repository: Path, remote: str = "", name: str = "") -> None:
        self._repository, self._remote = repository.absolute(), remote
        self._ref = f"{_REF}/{name or 'guard'}"
        at, number = f"@{remote}" * bool(remote), f"#{name}" * bool(name)
        self.place = f"git:{self._repository}{at}{number}"

    def read(self) -> Head | None:
        """Return the highest head in the note; None if there is none."""
        if self._remote:
            self._git("fetch", "--quiet", self._remote, f"+{_REF}/*:{_REF}/*")
        tree = self._tree()
        if tree not in self._notes("list").split():
            return None
        return highest(self._notes("show", tree).encode() + b"\n", self.place)

    def advance(self, head: Head, *, after: Head | None) -> Head:
        """Replace the note, if the head may; if another note was pushed meanwhile, return its head without an error."""
        folder = Path(self._git("rev-parse", "--path-format=absolute", "--git-common-dir"))
        # without the lock two processes of this repository could each write a note, and git would accept both
        with locked(folder / "reusable-holdout.lock", self._unreachable):
            last = self.read()
            if last is not None and not head.may_replace(last, after=after):
                return last
            self._notes("add", "--force", "--message", head.record().decode().strip(), self._tree())
            try:
                if self._remote:
                    self._git("push", "--quiet", self._remote, f"{self._ref}:{self._ref}")
            except LedgerError:
                held = self.read()
                if held is None or held == last:
                    raise
                return held
        return head

    def _tree(self) -> str:
        return self._git("hash-object", "-t", "tree", "--stdin")

    def _notes(self, *arguments: str) -> str:
        return self._git("notes", f"--ref={self._ref}", *arguments)

    def _git(self, *arguments: str) -> str:
        kept = {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK}
        try:
            done = subprocess.run(  # noqa: S603 - no shell, and no part of it comes from a question
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
        if done.returncode:
            raise self._unreachable((done.stderr.strip() or "git failed").splitlines()[-1])
        return done.stdout.strip()

    def _unreachable(self, why: str) -> LedgerError:
        return LedgerError(
            f"the ledger's witness must be a git repository, whose notes can be written and, with a remote, fetched "
            f"and pushed; {self.place} is not ({why}); repair it, and ask again"
        )
