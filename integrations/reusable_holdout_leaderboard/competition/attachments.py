"""Files that organisers give to everyone: public data, descriptions of it, examples."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from pathlib import Path
from typing import NamedTuple

from reusable_holdout.errors import InputError
from reusable_holdout_leaderboard.competition.epoch import Epochs
from reusable_holdout_leaderboard.files.disclosure import labels_found
from reusable_holdout_leaderboard.files.labels import load_labels
from reusable_holdout_leaderboard.store.records import StoreError

__all__ = ["Attachments", "PublicFile"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MOST = 50


class PublicFile(NamedTuple):
    """A file that everyone may have."""

    name: str
    bytes: int


class Attachments(Epochs):
    """Public files of a competition, in a folder of their own."""

    def public_files(self) -> list[PublicFile]:
        """All of them, by name."""
        folder = self._place.public
        if not folder.is_dir():
            return []
        found = (one for one in folder.iterdir() if _NAME.fullmatch(one.name) and one.is_file())
        return sorted(PublicFile(one.name, one.stat().st_size) for one in found)

    def public_file(self, name: str) -> Path | None:
        """Where one of them lies; None if there is none."""
        path = self._place.public / name
        return path if _NAME.fullmatch(name) and path.is_file() else None

    def attach(self, name: str, content: bytes) -> PublicFile:
        """Give everyone a file; one of the same name is replaced. It is an event, with the file's SHA-256.

        Raises
        ------
        InputError
            If the name is no plain file name, there are too many files, or the file holds private labels.
        StoreError
            If it cannot be written.
        """
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InputError(
                "a public file's name must be 1 to 100 letters, digits, points, hyphens and underscores, a letter or "
                "digit first; rename it; nothing was changed"
            )
        known = {one.name for one in self.public_files()}
        if name not in known and len(known) >= _MOST:
            raise InputError(f"there are {_MOST} public files at most; remove one first; nothing was changed")
        self._check_private(content)
        _write(self._place.public / name, content)
        digest = hashlib.sha256(content).hexdigest()
        detail = {"file": name, "bytes": len(content), "sha256": digest}
        self._store.note(self._number, "attach", detail, at=self._clock())
        return PublicFile(name, len(content))

    def _check_private(self, content: bytes) -> None:
        """Refuse a file that holds labels, until the final standings are made: nothing is asked of them any more.

        Labels of earlier label sets are free.
        """
        if self._row().final is not None:
            return
        epoch = self._current()
        private = [load_labels(self._place.labels(epoch.number))]
        if len(epoch.fresh):
            private.append(load_labels(self._place.fresh_labels))
        found = labels_found(content, private)
        if found:
            raise InputError(
                f"a public file must not hold private labels; {found}; nothing was changed; leave that column out, or "
                "these rows"
            )

    def detach(self, name: str) -> None:
        """Take a public file away.

        Raises
        ------
        InputError
            If there is none of this name.
        """
        path = self.public_file(name)
        if path is None:
            raise InputError("there must be a public file of this name; there is none; nothing was changed")
        path.unlink(missing_ok=True)
        self._store.note(self._number, "detach", {"file": name}, at=self._clock())


def _write(path: Path, content: bytes) -> None:
    """Write a file, all or nothing."""
    part = path.with_name(f".{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        part.replace(path)
    except OSError as error:
        raise StoreError(f"a public file must be one that can be written; {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
