"""Weights that lie behind a path are part of the model."""

from pathlib import Path

import numpy as np
import pytest
from cases import for_each

from reusable_holdout.guard.fingerprint import fingerprint


def loading(source):
    """Function that a notebook defines."""
    names = {"__name__": "__main__"}
    exec(source, names)
    return names["made"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@for_each("kind", [str, Path, lambda text: [{"path": text}]])
@for_each("name", ["weights.bin", "./weights.bin", "inside/../weights.bin", "{}/weights.bin"])
def test_weights_behind_a_path_are_part_of_the_model(folder, kind, name):
    (folder / "inside").mkdir(exist_ok=True)
    model = kind(name.format(folder))
    (folder / "weights.bin").write_bytes(b"one")
    here = fingerprint(model)
    assert fingerprint(model) == here
    (folder / "weights.bin").write_bytes(b"two")
    assert fingerprint(model) != here
    (folder / "weights.bin").unlink()
    gone = fingerprint(model)
    assert gone == fingerprint(model) != here


def test_a_folder_counts_with_all_files_below_it_and_their_names(folder):
    (folder / "net" / "deep").mkdir(parents=True)
    (folder / "net" / "deep" / "a.bin").write_bytes(b"1")
    seen = {fingerprint("net")}
    (folder / "net" / "b.bin").write_bytes(b"2")
    seen.add(fingerprint("net"))
    (folder / "net" / "b.bin").rename(folder / "net" / "c.bin")
    seen.add(fingerprint("net"))
    assert len(seen) == 3
    assert fingerprint("net") == fingerprint("net")


def test_files_that_are_too_large_or_no_files_are_a_new_question_each_time(folder, monkeypatch):
    (folder / "weights.bin").write_bytes(b"four")
    files = "reusable_holdout.guard.fingerprint"
    monkeypatch.setattr(f"{files}.LARGEST", 4)
    assert fingerprint("weights.bin") == fingerprint("weights.bin")
    monkeypatch.setattr(f"{files}.LARGEST", 3)
    assert fingerprint("weights.bin") != fingerprint("weights.bin")
    monkeypatch.setattr(f"{files}.LARGEST", 1 << 20)
    monkeypatch.setattr(f"{files}.MOST", 0)
    assert fingerprint(str(folder)) != fingerprint(str(folder))
    assert fingerprint("/dev/null") != fingerprint("/dev/null")


def test_weights_that_code_names_or_that_lie_beside_it_are_part_of_the_model(folder):
    by_name = "import numpy as np\ndef made(X):\n    return X @ np.load('weights.npy')"
    (folder / "beside.py").write_text("def made():\n    return open(__file__ + '.txt').read()\n")
    names = {"__name__": "beside", "__file__": str(folder / "beside.py")}
    exec((folder / "beside.py").read_text(), names)
    seen = set()
    for weights in (1.0, 2.0):
        np.save(folder / "weights.npy", [weights])
        seen |= {
            *(fingerprint(loading(by_name)) for _ in range(2)),
            fingerprint(names["made"]),
            fingerprint(names["made"]),
        }
    assert len(seen) == 4


def test_arrays_on_disk_count_by_what_they_hold(folder):
    kept = np.memmap(folder / "kept.bin", dtype=np.float64, mode="w+", shape=(3,))
    here = fingerprint([kept])
    assert fingerprint([np.zeros(3)]) == here
    kept[1] = 1.0
    assert fingerprint([kept]) != here


def test_words_that_name_nothing_are_only_text(folder):
    for word in (".", "/", "", "lbfgs", "a\nb", "a\0b", "x" * 10_000, "~nobody/x", "$NOT_SET/x", "\ud800"):
        assert fingerprint(word) == fingerprint(word)
    here = fingerprint("lbfgs")
    (folder / "lbfgs").write_text("another question")
    assert fingerprint("lbfgs") != here


@for_each(
    "reads",
    [
        'open(os.environ["RULE"])',
        'open(os.environ.get("RULE"))',
        'open(os.getenv("RULE"))',
        'open(environ["RULE"])',
        '[open(os.environ[one]) for one in ["RULE"]]',
    ],
)
def test_a_model_whose_code_reads_the_environment_is_a_new_question_each_time(folder, monkeypatch, reads):
    (folder / "rule").write_text("1")
    monkeypatch.setenv("RULE", str(folder / "rule"))
    begin = "import os\nfrom os import environ\n"
    model = loading(f"{begin}def made(X):\n    return {reads}\n")
    assert fingerprint(model) != fingerprint(model)
    plain = loading(f"{begin}def made(X):\n    return X, {reads.startswith('open')}\n")
    assert fingerprint(plain) == fingerprint(plain)
