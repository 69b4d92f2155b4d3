"""The place of a competition: where its labels, its key and its ledger lie, and what else remembers the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

from reusable_holdout.errors import InputError

__all__ = ["Place", "check_database", "schema_of"]


class Place(NamedTuple):
    """Ledger, key file and witness of a competition, in a folder of its own.

    Attributes
    ----------
    folder : Path
        Of this competition alone.
    ledger : str
        SQLite file or URL.
    key_file : Path
    witness : str or None
        What else remembers how far the ledger has come; None for the one that stands in the ledger, if any.
    """

    folder: Path
    ledger: str
    key_file: Path
    witness: str | None = None

    @classmethod
    def of(
        cls,
        folder: Path,
        slug: str,
        *,
        database: str | None,
        key_file: Path | None,
        witness: str | None = None,
    ) -> Place:
        """Return the place of a competition; on a server its ledger has a schema of its own.

        Raises
        ------
        InputError
            If the witness lies in the folder, with which it would be restored.
        """
        if witness and _lies_in(witness, folder):
            raise InputError(
                "a board's witness must lie outside its folder, for an older copy of the folder would bring an older "
                f"witness; got {witness}; nothing was made; name a file of another owner, git:repository or a URL"
            )
        own = folder.absolute() / slug
        if database is None:
            ledger = str(own / "ledger.db")
        else:
            check_database(database)
            url = sa.make_url(database)
            options = f"{url.query.get('options', '')} -csearch_path={schema_of(slug)}".strip()
            ledger = url.update_query_dict({"options": options}).render_as_string(hide_password=False)
        key = own / "ledger.key" if key_file is None else key_file.absolute()
        return cls(own, ledger, key, witness or None)

    def __repr__(self) -> str:
        return f"<Place: {self.folder}>"  # the URL may hold a password

    def labels(self, epoch: int) -> Path:
        """File of an epoch's labels."""
        return self.folder / f"labels-{epoch}.parquet"

    @property
    def public(self) -> Path:
        """Folder of the files that everyone may have."""
        return self.folder / "public"

    @property
    def fresh_labels(self) -> Path:
        """File of the labels that the final standings are made with."""
        return self.folder / "fresh-labels.parquet"


def _lies_in(witness: str, folder: Path) -> bool:
    """Return True if a witness is a file, or a repository without a remote, somewhere in a folder."""
    if "://" in witness:
        return False
    path = witness.removeprefix("git:")
    if path != witness and "@" in path:
        return False
    return Path(path.partition("#")[0]).resolve().is_relative_to(folder.resolve())


def check_database(database: str | None) -> None:
    """Refuse a database that is no PostgreSQL server; None is SQLite.

    Raises
    ------
    InputError
        Without the URL, which may hold a password.
    """
    if database is None:
        return
    try:
        backend = sa.make_url(database).get_backend_name()
    except (sa.exc.ArgumentError, ValueError, AttributeError):
        backend = "something else"
    if backend != "postgresql":
        raise InputError(
            f"database must be the URL of a PostgreSQL server; got {backend}; leave it out for SQLite files in the "
            "folder"
        )


def schema_of(slug: str) -> str:
    """Name of the schema of a competition's ledger on a server."""
    return f"board_{slug.replace('-', '_')}"
