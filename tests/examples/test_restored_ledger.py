"""A restored ledger: believed without a witness, refused with one."""

from examples.scripts import run


def test_copies_are_believed_without_a_witness_and_refused_with_one(tmp_path):
    printed = run("restored_ledger.py", "--runs", "2", "--restores", "5", folder=tmp_path)
    assert "missed 2 of 2 runs, sound by verify 2" in printed
    assert "refused 5 of 5 restores" in printed
