"""A test of many cases runs them all, and names those that fail."""

import pytest
from cases import for_each, refuses


def test_every_case_runs_with_the_fixtures_and_the_failing_ones_are_named():
    seen = []

    @for_each("first", [1, 2])
    @for_each(("second", "third"), [(10, 20), (30, 40)])
    def addition(fixture, first, second, third):
        seen.append((fixture, first, second, third))
        assert second != 30 or first != 2
        if first == 1:
            pytest.fail("by hand")

    with pytest.raises(BaseExceptionGroup, match="2 of 2 cases") as caught:
        addition(fixture="f")
    assert seen == [("f", 1, 10, 20), ("f", 1, 30, 40), ("f", 2, 10, 20), ("f", 2, 30, 40)]
    of_one, of_two = caught.value.exceptions
    assert (of_one.__notes__, of_two.__notes__) == (["case: first=1"], ["case: first=2"])
    assert [error.__notes__ for error in of_one.exceptions] == [
        ["case: second=10, third=20"],
        ["case: second=30, third=40"],
    ]
    (assertion,) = of_two.exceptions
    assert isinstance(assertion, AssertionError)
    assert assertion.__notes__ == ["case: second=30, third=40"]


@pytest.mark.parametrize("ids", [["the third"], lambda number: f"the {'third' if number == 3 else number}"])
def test_cases_may_be_called_otherwise(ids):
    @for_each("number", [pytest.param(3)], ids=ids)
    def fails(number):
        raise ValueError(number)

    with pytest.raises(ExceptionGroup) as caught:
        fails()
    assert caught.value.exceptions[0].__notes__[0].endswith("the third")


def test_a_test_without_cases_or_of_another_argument_is_none():
    with pytest.raises(AssertionError, match="no cases"):
        for_each("number", [])
    with pytest.raises(AssertionError, match="does not take"):

        @for_each("nubmer", [1])
        def misspelt(number):
            pass


@for_each("number", [1, 2])
def test_pytest_gives_the_fixtures_alone(tmp_path, number):
    (tmp_path / str(number)).touch()
    assert len(list(tmp_path.iterdir())) == number


def test_a_refusal_is_of_this_error_in_these_words_and_is_given_back():
    assert refuses(ValueError, "invalid literal", int, "x").args
    assert refuses(KeyError, "", {}.pop, "a").args == ("a",)
    for error, words in ((ValueError, "another"), (KeyError, "")):
        with pytest.raises((AssertionError, ValueError)):
            refuses(error, words, int, "x")
    with pytest.raises(pytest.fail.Exception):
        refuses(ValueError, "", int, "1")
