"""All files that an evaluation left in a folder, decompressed."""

import gzip
import sqlite3
import zipfile

import zstandard
from reusable_holdout_evals.readers.archives import Archive


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
        with zipfile.ZipFile(path) as listed, Archive(path) as archive:
            for name in listed.namelist():
                yield from _unpacked(archive.read(name))
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


def _unpacked(data):
    yield data
    if data.startswith(b"\x1f\x8b"):
        yield gzip.decompress(data)
    elif data.startswith(b"\x28\xb5\x2f\xfd"):
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
            yield reader.read()
