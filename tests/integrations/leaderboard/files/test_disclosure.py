"""A public file must not hold the labels, in any format, order of rows or naming of columns."""

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile

import numpy as np
import pandas as pd
import pytest
from reusable_holdout_leaderboard.files.disclosure import labels_found
from reusable_holdout_leaderboard.files.labels import Labels

from reusable_holdout.errors import InputError

ROWS = 300
RNG = np.random.default_rng(5)
Y = RNG.integers(0, 2, ROWS)
IDS = tuple(f"r{row}" for row in range(ROWS))
LABELS = Labels(IDS, Y)
FEATURES = RNG.normal(size=(ROWS, 2)).round(3)


def table(*columns, header=None, delimiter=","):
    rows = [delimiter.join(map(str, row)) for row in zip(*columns, strict=True)]
    return "\n".join([delimiter.join(header), *rows] if header else rows).encode()


def found(content, labels=LABELS):
    return labels_found(content, [labels])


ORDER = RNG.permutation(ROWS)
NAMED = np.where(Y == 1, ">50K", "<=50K")
SHUFFLED = table(
    FEATURES[ORDER, 0], NAMED[ORDER], np.array(IDS)[ORDER], header=["age", "sold", "customer"], delimiter=";"
)


def zipped(content, name="data.csv"):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README", "hello")
        archive.writestr(name, content)
    return buffer.getvalue()


def saved(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


HOLDING = {
    "the labels file": table(IDS, Y, header=["id", "label"]),
    "the labels file without a header": table(IDS, Y),
    "other names, another order, other classes": SHUFFLED,
    "quoted": b"\n".join(b'"' + line.replace(b";", b'";"') + b'"' for line in SHUFFLED.split(b"\n")),
    "a part of the rows": table(IDS[:40], Y[:40], header=["id", "label"]),
    "training rows, too": table(
        [*(f"t{row}" for row in range(500)), *IDS], [*RNG.integers(0, 2, 500), *Y], header=["id", "income"]
    ),
    "with missing labels elsewhere": table([*IDS, "t1", "t2"], [*(f"{y}.0" for y in Y), "", "1.0"]),
    "another encoding": SHUFFLED.replace(b"sold", b"verkauft f\xfcr"),
    "UTF-16": SHUFFLED.decode().encode("utf-16"),
    "gzip": gzip.compress(SHUFFLED),
    "zip": zipped(SHUFFLED),
    "zip in zip": zipped(zipped(SHUFFLED), "inner.zip"),
    "JSON": json.dumps([{"y": int(y), "who": name} for name, y in zip(IDS, Y, strict=True)]).encode(),
    "JSON by column": json.dumps({"label": dict(zip(IDS, Y.tolist(), strict=True))}).encode(),
    "JSON lines": b"\n".join(json.dumps([name, int(y)]).encode() for name, y in zip(IDS, Y, strict=True)),
    "labels alone": table(Y, header=["label"]),
    "labels alone, sorted": table(np.sort(Y), header=["label"]),
    "labels in order among features": table(FEATURES[:, 0], 1 - Y, header=["a", "b"]),
    "an array": saved(np.column_stack([FEATURES, Y])),
}


def tarred(content):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo("data.csv")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


PLAIN = table(IDS, Y, header=["id", "label"])
BY_ID = dict(zip(IDS, Y.tolist(), strict=True))
RECORDS = [{"id": name, "label": label} for name, label in BY_ID.items()]
HOLDING |= {
    "Parquet": pd.DataFrame({"y": Y[ORDER] == 1}, index=[IDS[row] for row in ORDER]).to_parquet(),
    "packed by bzip2": bz2.compress(PLAIN),
    "packed by xz": lzma.compress(PLAIN),
    "packed by tar": tarred(PLAIN),
    "lines as on old machines": PLAIN.replace(b"\n", b"\r"),
    "under a title": b"labels of this year\n" + PLAIN,
    "between spaces": PLAIN.replace(b",", b" "),
    "YAML": PLAIN.replace(b",", b": "),
    "JSON by id": json.dumps(BY_ID).encode(),
    "JSON inside JSON": json.dumps({"version": 1, "rows": RECORDS}).encode(),
    "JSON rows by id": json.dumps({name: {"label": label} for name, label in BY_ID.items()}).encode(),
    "JSON of each class": json.dumps({k: [n for n, y in BY_ID.items() if y == k] for k in (0, 1)}).encode(),
    "JSON lines of one entry": "\n".join(json.dumps({name: y}) for name, y in BY_ID.items()).encode(),
    "lying": table(["id", "label"], *zip(IDS, Y, strict=True)),
    "one row wrong": table(IDS, [1 - Y[0], *Y[1:]]),
    "a row of another class": table([*IDS, "r0"], [*Y, 7]),
}


def test_gold_answers_are_found_though_each_is_a_class_of_its_own():
    answers = np.array([f"gold {row}" for row in range(ROWS)])
    labels = Labels(IDS, answers)
    assert found(table(IDS, answers), labels)
    assert not found(table(IDS, [f"prompt {row}" for row in range(ROWS)]), labels)


def test_a_file_that_is_no_table_holds_no_labels():
    for content in (
        b"\x89PNG\r\n\x1a\n\0\0\rIHDR\n" * 40,
        b"%PDF-1.7\r1 0 obj\r\0\r",
        b"\x80\x04\0\r\0",
        b"",
        b"\r",
    ):
        assert not found(content)


@pytest.mark.parametrize("name", HOLDING)
def test_a_file_that_holds_the_labels_is_found(name):
    assert found(HOLDING[name])


def test_labels_without_ids_are_found_where_they_begin():
    before = RNG.integers(0, 2, 1_000)
    content = table([*before, *Y, *before], header=["label"])
    assert found(content, Labels(None, Y))
    assert not found(table(before, header=["label"]), Labels(None, Y))


def test_labels_that_are_numbers_are_found():
    values = RNG.normal(size=ROWS)
    labels = Labels(IDS, values)
    assert found(table(np.array(IDS)[ORDER], values[ORDER]), labels)
    assert found(table(FEATURES[:, 0], values), Labels(None, values))
    assert not found(table(IDS, values + RNG.normal(0.0, 0.01, ROWS)), labels)
    assert not found(table(IDS, range(ROWS)), labels)


ALMOST = np.where(np.arange(ROWS) < 3, 1 - Y, Y)
HARMLESS = {
    "features of the rows": table(IDS, *FEATURES.T, np.abs(FEATURES[:, 0]) > 1, header=["id", "a", "b", "c"]),
    "training rows with labels": table([f"t{k}" for k in range(ROWS)], RNG.integers(0, 2, ROWS)),
    "a sample submission": table(IDS, np.zeros(ROWS, int), header=["id", "prediction"]),
    "a good baseline's predictions": table(IDS, ALMOST, header=["id", "prediction"]),
    "prose": b"# The task\n\nPredict the income, which is 0 or 1.\n",
    "a picture": b"\x89PNG\r\n\x1a\n" + RNG.bytes(2_000),
    "nothing": b"",
    "broken gzip": gzip.compress(b"x" * 100)[:-9],
    "broken zip": zipped(b"x")[:-30],
    "broken JSON": b'{"a": [1, 2',
    "ragged": b"a,b\n1\n1,2,3\n",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_file_without_the_labels_is_not(name):
    assert not found(HARMLESS[name])


@pytest.fixture
def both(make_competition, fresh_labels_file):
    return make_competition(fresh=fresh_labels_file)


def test_an_organiser_cannot_attach_the_labels_by_mistake(both, labels_file, fresh_labels_file):
    for path in (labels_file, fresh_labels_file):
        with pytest.raises(InputError, match=r"must not hold private labels.*nothing was changed"):
            both.attach("data.csv", path.read_bytes())
    assert both.public_files() == []
    assert both.changes() == []


def test_the_server_refuses_them_without_quoting_a_label(serve, labels_file):
    site = serve()
    told = site.admin.post("admin/attach", files={"file": ("train.csv", labels_file.read_bytes())})
    assert told.status_code == 422
    assert told.json()["error"]["message"] == (
        "a public file must not hold private labels; its column 2 has the labels of 600 rows, beside their ids; "
        "nothing was changed; leave that column or these rows out"
    )
    assert site.competition.public_files() == []


def test_labels_of_an_earlier_label_set_are_free(both, labels_file, next_labels_file):
    both.rotate(next_labels_file, early=True)
    both.attach("earlier.csv", labels_file.read_bytes())
    with pytest.raises(InputError, match="must not hold private labels"):
        both.attach("present.csv", next_labels_file.read_bytes())


def test_once_the_final_is_made_all_labels_may_be_published(both, labels_file, fresh_labels_file):
    both.freeze()
    both.final_standings()
    for path in (labels_file, fresh_labels_file):
        both.attach(path.name, path.read_bytes())
    assert len(both.public_files()) == 2
