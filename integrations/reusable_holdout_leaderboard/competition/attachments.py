"""Files that a competition gives to everyone, such as training data, descriptions and examples."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from reusable_holdout.errors import InputError
from reusable_holdout_leaderboard.competition.base import Base
from reusable_holdout_leaderboard.files.disclosure import labels_found
from reusable_holdout_leaderboard.files.labels import load_labels
from reusable_holdout_leaderboard.private_files import write_private
from reusable_holdout_leaderboard.store.records import PublicFile, StoreError

__all__ = ["Attachments"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MOST = 50


class Attachments(Base):
    """The part of a competition that publishes files. They lie in a folder of their own."""

    def public_files(self) -> list[PublicFile]:
        """Return all public files, sorted by name."""
        folder = self._place.public
        if not folder.is_dir():
            return []
        found = (one for one in folder.iterdir() if _NAME.fullmatch(one.name) and one.is_file())
        return sorted(PublicFile(one.name, one.stat().st_size) for one in found)

    def public_file(self, name: str) -> Path | None:
        """Return the path of the public file with this name, or None if there is no such file."""
        path = self._place.public / name
        return path if _NAME.fullmatch(name) and path.is_file() else None

    def attach(self, name: str, content: bytes) -> PublicFile:
        """Publish a file, or replace the public file of the same name.

        The change is recorded as a public event, together with the file's SHA-256.

        Raises
        ------
        InputError
            If the name is not a plain file name, there are too many files, or the file holds private labels.
        StoreError
            If the file cannot be written.
        """
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InputError(
                "a public file's name must be 1 to 100 letters, digits, dots, hyphens and underscores, and begin with "
                "a letter or digit; rename it; nothing was changed"
            )
        known = {one.name for one in self.public_files()}
        if name not in known and len(known) >= _MOST:
            raise InputError(f"there are at most {_MOST} public files; remove one first; nothing was changed")
        self._check_labels(content)
        problem = None
        try:
            write_private(self._place.public / name, content)
        except OSError as error:
            problem = error.strerror
        if problem is not None:
            raise StoreError(f"the folder of public files must be writable; {problem}")
        detail = {"file": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        with self._changing() as (connection, _):
            self._tell(connection, "attach", detail=detail)
        return PublicFile(name, len(content))

    def detach(self, name: str) -> None:
        """Remove a public file.

        Raises
        ------
        InputError
            If there is no public file of this name.
        """
        path = self.public_file(name)
        if path is None:
            raise InputError("there must be a public file of this name; there is none; nothing was changed")
        path.unlink(missing_ok=True)
        with self._changing() as (connection, _):
            self._tell(connection, "detach", detail={"file": name})

    def _check_labels(self, content: bytes) -> None:
        """Refuse a file that holds private labels.

        Only the labels of the current epoch and the fresh labels are private. After the final standings are made, no
        labels are private any more.
        """
        if self._state().final is not None:
            return
        epoch = self._current()
        private = [load_labels(self._place.labels(epoch.number))]
        if len(epoch.fresh):
            private.append(load_labels(self._place.fresh_labels))
        found = labels_found(content, private)
        if found:
            raise InputError(
                f"a public file must not hold private labels; {found}; nothing was changed; leave that column or these "
                "rows out"
            )
