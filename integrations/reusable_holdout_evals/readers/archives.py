"""Packed files of others, unpacked with bounds: members of a zip archive, and CSV.

Zstandard, too, which Python 3.13 does not know.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Self

from reusable_holdout.errors import InputError, MissingExtraError
from reusable_holdout_evals.readers.json_files import MOST_BYTES

__all__ = ["Archive", "check_unpacked"]

_ZSTANDARD = 93
_LOCAL_HEADER = struct.Struct("<4s5H3L2H")
_STEP = 1 << 24
_PACKED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def check_unpacked(path: Path, *, what: str) -> None:
    """Refuse a packed file, as pandas would unpack it whole, that is larger than the bound when it is unpacked.

    Raises
    ------
    InputError
        If it is larger. Whatever else is wrong with it is told by whoever reads it.
    """
    size, ending = 0, path.suffix.lower()
    if ending == ".zip" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:  # which unpacks no more of a member than its directory says
            size = sum(one.file_size for one in archive.infolist())
    elif ending in _PACKED:
        with _PACKED[ending](path, "rb") as stream:
            while size <= MOST_BYTES and (piece := stream.read(_STEP)):
                size += len(piece)
    if size > MOST_BYTES:
        raise InputError(
            f"{what} must have at most {MOST_BYTES >> 30} GiB unpacked; {path} has more; pass Parquet"
        )


class Archive:
    """A zip archive.

    No member is unpacked beyond what its directory says, nor beyond a bound: a small file can't fill the memory.

    Parameters
    ----------
    path : Path

    Raises
    ------
    InputError
        If it is none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        problem = "" if path.is_file() else "there is no such file"  # a pipe would never end
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
            raise InputError(
                f"a log in Inspect's format .eval must be a file, a zip archive; {path}: {problem}"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()
        self._file.close()

    def __contains__(self, name: str) -> bool:
        return name in self._zip.NameToInfo

    def read(self, name: str) -> bytes:
        """Content of a member.

        Raises
        ------
        InputError
            If it is larger than it says or than the bound, or damaged.
        MissingExtraError
            If it is packed with Zstandard and no library unpacks it.
        """
        info = self._zip.NameToInfo[name]
        where = f"{name} in {self._path}"
        if info.file_size > MOST_BYTES:
            raise InputError(f"{where} must have at most {MOST_BYTES >> 30} GiB unpacked; it has more")
        problem = ""
        try:
            with self._unpacking(info) as stream:
                content = _at_most(stream, info.file_size)
        except MissingExtraError:
            raise
        except Exception as error:  # whatever a library raises about damaged bytes
            problem = f"it cannot be unpacked ({type(error).__name__})"
        else:
            if len(content) == info.file_size and zlib.crc32(content) == info.CRC:
                return content
            problem = "its content is not what the archive's directory says"
        raise InputError(f"{where} must be whole; {problem}; copy the log anew")

    def _unpacking(self, info: zipfile.ZipInfo) -> Any:
        if info.compress_type != _ZSTANDARD:
            return self._zip.open(info)
        return _zstandard(io.BytesIO(self._packed(info)), f"{info.filename} in {self._path}")

    def _packed(self, info: zipfile.ZipInfo) -> bytes:
        """Bytes of a member as they stand in the archive."""
        self._file.seek(info.header_offset)
        header = _LOCAL_HEADER.unpack(self._file.read(_LOCAL_HEADER.size))
        if header[0] != b"PK\x03\x04" or info.flag_bits & 1 or info.compress_size > MOST_BYTES:
            raise zipfile.BadZipFile
        self._file.seek(header[-2] + header[-1], io.SEEK_CUR)  # its name, and what else is said of it
        return self._file.read(info.compress_size)


def _at_most(stream: Any, size: int) -> bytes:
    """Up to one byte more than what is expected."""
    pieces, left = [], size + 1
    while left > 0:
        piece = stream.read(min(left, _STEP))
        if not piece:
            break
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _zstandard(packed: io.BytesIO, where: str) -> Any:
    """Stream that unpacks Zstandard, of one frame or several."""
    try:
        import zstandard  # noqa: PLC0415 - whoever has Inspect has it
    except ImportError:
        try:
            import pyarrow as pa  # noqa: PLC0415
        except ImportError:
            raise MissingExtraError(f"{where}, packed with Zstandard,", "pyarrow", "large") from None
        return pa.CompressedInputStream(pa.PythonFile(packed, mode="r"), "zstd")
    return zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
