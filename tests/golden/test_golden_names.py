"""Names that released versions had: each is still there."""

from golden.names import FOLDER, names_now

from reusable_holdout.version import __version__


def test_every_name_of_every_version_is_there():
    now = set(names_now())
    written = {file.stem: file.read_text().splitlines() for file in FOLDER.glob("*.txt")}
    assert __version__ in written or "dev" in __version__
    for version, names in written.items():
        assert len(names) > 500
        gone = [name for name in names if name not in now]
        assert gone == [], (
            f"{version} had these names (docs/stability.md); of a version that is not released yet, write them down "
            "anew: PYTHONPATH=tests python -m golden.names"
        )


def test_names_are_of_packages_commands_and_columns():
    now = names_now()
    assert "name reusable_holdout.ReusableHoldout" in now
    assert "name reusable_holdout_sklearn.GuardedSearchCV" in now
    assert "command report --out" in now
    assert "command board add-team" in now
    assert "column charges_left" in now
