"""A reader of foreign zip archives, with bounds on their size; also for Zstandard, which Python 3.13 lacks."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Self

from reusable_holdout.errors import InputError, MissingExtraError
from reusable_holdout_evals.readers.files import MOST_BYTES

__all__ = ["Archive"]

_ZSTANDARD = 93
_LOCAL_HEADER = struct.Struct("<4s5H3L2H")


class Archive:
    """A zip archive that is open for reading.

    A file in it is unpacked only up to the size that the archive states, and never beyond 1 GiB. So a small archive
    cannot fill the memory.

    Parameters
    ----------
    path : Path

    Raises
    ------
    InputError
        If the file cannot be read, or is no zip archive.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        problem = "" if path.is_file() else "there is no such file"  # reading a pipe might never end
        try:
            if not problem:
                self._file: BinaryIO = path.open("rb")
        except OSError as error:
            problem = f"it cannot be read ({type(error).__name__})"
        try:
            if not problem:
                self._zip = zipfile.ZipFile(self._file)
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError, struct.error):
            problem = "it is no zip archive, or is cut off"
            self._file.close()
        if problem:
            raise InputError(f"a log in Inspect's format .eval must be a zip archive; {path}: {problem}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()
        self._file.close()

    def __contains__(self, name: str) -> bool:
        return name in self._zip.NameToInfo

    def read(self, name: str) -> bytes:
        """Return the content of one file in the archive.

        Raises
        ------
        InputError
            If it is damaged, larger than the archive states, or larger than 1 GiB.
        MissingExtraError
            If it is packed with Zstandard, and no library that unpacks it is installed.
        """
        info = self._zip.NameToInfo[name]
        where = f"{name} in {self._path}"
        if info.file_size > MOST_BYTES:
            raise InputError(f"{where} must have at most {MOST_BYTES >> 30} GiB unpacked; it has more")
        try:
            with self._unpacking(info, where) as stream:
                content: bytes = stream.read(info.file_size + 1)  # one byte more than it may have
        except MissingExtraError:
            raise
        except Exception as error:  # libraries raise many kinds of errors for damaged bytes
            problem = f"it cannot be unpacked ({type(error).__name__})"
        else:
            if len(content) == info.file_size and zlib.crc32(content) == info.CRC:
                return content
            problem = "its content does not match the archive's directory"
        raise InputError(f"{where} must be complete; {problem}; copy the log again")

    def _unpacking(self, info: zipfile.ZipInfo, where: str) -> Any:
        if info.compress_type != _ZSTANDARD:
            return self._zip.open(info)
        self._file.seek(info.header_offset)
        header = _LOCAL_HEADER.unpack(self._file.read(_LOCAL_HEADER.size))
        if header[0] != b"PK\x03\x04" or info.flag_bits & 1 or info.compress_size > MOST_BYTES:
            raise zipfile.BadZipFile
        # skip the name of the file in the archive, and its extra fields
        self._file.seek(header[-2] + header[-1], io.SEEK_CUR)
        return _zstandard(io.BytesIO(self._file.read(info.compress_size)), where)


def _zstandard(packed: io.BytesIO, where: str) -> Any:
    """Return a stream that unpacks Zstandard, from one frame or several."""
    try:
        import zstandard  # noqa: PLC0415 - Inspect brings it
    except ImportError:
        try:
            import pyarrow as pa  # noqa: PLC0415
        except ImportError:
            raise MissingExtraError(f"{where}, packed with Zstandard,", "pyarrow", "large") from None
        return pa.CompressedInputStream(pa.PythonFile(packed, mode="r"), "zstd")
    return zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
