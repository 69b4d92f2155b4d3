"""The noise key in a file of its own, so that a ledger can be handed to others without it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
from pathlib import Path

from reusable_holdout.errors import LedgerError, LedgerKeyError
from reusable_holdout.noise.keyed import KEY_BYTES, new_key

_HEX = re.compile(rb"[0-9A-Fa-f]{64}")


def create_key_file(path: Path, key: bytes | None = None) -> bytes:
    """Write a key where only its owner can read it, and return the key that is there.

    Of two processes that race, one wins, and both get the winner's key.

    Parameters
    ----------
    path : Path
        File to make, mode 0600; left alone if it exists.
    key : bytes, optional
        The key; by default 32 bytes from the operating system.

    Raises
    ------
    LedgerError
        If the file cannot be written.
    LedgerKeyError
        If the key has a wrong length, or the file that exists cannot be used.
    """
    if key is not None and len(key) != KEY_BYTES:
        raise LedgerKeyError(f"a key must have {KEY_BYTES} bytes; got {len(key)}; nothing was written")
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write((new_key() if key is None else key).hex().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)  # unlike a rename, it never replaces a key that is in use
        _sync_folder(path.parent)
    except OSError as error:
        raise LedgerError(
            f"the noise key must be writable at {path}; it is not ({error.strerror}); choose another folder"
        ) from None
    finally:
        temporary.unlink(missing_ok=True)
    return read_key_file(path)


def read_key_file(path: Path) -> bytes:
    """Read a key.

    Raises
    ------
    LedgerKeyError
        If the file is missing, others can read it, or it holds no key.
    """
    try:
        with path.open("rb") as file:  # take the mode of the file that is read, not of its path
            mode = os.fstat(file.fileno()).st_mode & 0o777
            text = file.read().strip()
    except OSError:
        raise LedgerKeyError(
            f"this ledger's noise key must lie in {path}; it cannot be read there; nothing was asked; restore the file "
            "(without its key a ledger cannot go on: new noise would help average out the old), or start on fresh rows"
        ) from None
    if mode & 0o077:
        raise LedgerKeyError(
            f"only its owner may read {path}; its mode is {mode:o}; chmod 600 it if nobody has read it"
        )
    if _HEX.fullmatch(text) is None:
        raise LedgerKeyError(f"{path} must hold one key of {KEY_BYTES} bytes in hex; it does not; restore it")
    return bytes.fromhex(text.decode())


def key_commitment(key: bytes) -> str:
    """Return a digest of a key: it is equal for equal keys, and tells nothing else about them."""
    return hashlib.blake2b(b"commitment", key=key, digest_size=32).hexdigest()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
