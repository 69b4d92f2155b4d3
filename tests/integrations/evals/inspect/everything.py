"""All files that an evaluation left in a folder, decompressed."""

import gzip
import sqlite3
import struct
import zipfile
import zlib

import zstandard

_ZSTANDARD = 93  # the compression that Inspect's logs use, and zipfile does not know everywhere
_HEADER = struct.Struct("<26xHH")  # lengths of a member's name and of its extra field


def texts_in(folder):
    """Return the texts in the files of a folder, by file name; also in members of archives and cells of databases."""
    return {
        path.relative_to(folder).as_posix(): "\n".join(
            part.decode("utf-8", "replace") for part in _parts(path.read_bytes(), path)
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def found_in(texts, secrets):
    """Return the files that hold one of these texts, each with the number of texts it holds."""
    counts = {name: sum(one in text for one in secrets) for name, text in texts.items()}
    return {name: count for name, count in counts.items() if count}


def _parts(data, path):
    yield data
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                yield from _unpacked(_member(data, info))
    elif data.startswith(b"SQLite format 3"):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (table,) in tables:
                for row in connection.execute(f'SELECT * FROM "{table}"'):
                    for cell in row:
                        yield from _unpacked(cell if isinstance(cell, bytes) else str(cell).encode())
        connection.close()
    else:
        yield from _unpacked(data)


def _member(data, info):
    """Return a member of a zip file, decompressed."""
    name, extra = _HEADER.unpack_from(data, info.header_offset)
    start = info.header_offset + _HEADER.size + name + extra
    raw = data[start : start + info.compress_size]
    if info.compress_type == zipfile.ZIP_DEFLATED:
        return zlib.decompress(raw, -zlib.MAX_WBITS)
    if info.compress_type == _ZSTANDARD:
        return _of_zstandard(raw)
    assert info.compress_type == zipfile.ZIP_STORED
    return raw


def _unpacked(data):
    yield data
    if data.startswith(b"\x1f\x8b"):
        yield gzip.decompress(data)
    elif data.startswith(b"\x28\xb5\x2f\xfd"):
        yield _of_zstandard(data)


def _of_zstandard(data):
    with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
        return reader.read()
