"""A refusal of a reader, in words."""

import pytest

from reusable_holdout.errors import InputError


@pytest.fixture(scope="session")
def refused():
    """Return the words with which a reader refuses: one short line."""

    def words(read, *arguments, **options):
        with pytest.raises(InputError) as caught:
            read(*arguments, **options)
        said = str(caught.value)
        assert len(said) < 1_000
        assert "\n" not in said
        return said

    return words
