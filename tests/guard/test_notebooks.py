"""What notebooks show of a guard, an answer, a choice and a plan."""

import re
from html import escape

import pytest

from reusable_holdout import Plan

NASTY = "<script>alert('x')</script>"


def cells(shown):
    """Facts of a table by their names."""
    assert shown.startswith("<table><caption>")
    assert shown.count("<table>") == shown.count("</table>") == 1
    return dict(re.findall(r"<th[^>]*>(.*?)</th><td[^>]*>(.*?)</td>", shown))


def test_a_guard_shows_what_is_left(make_guard, labels):
    guard = make_guard()
    guard.evaluate(labels, prior=0.5)
    shown = cells(guard._repr_html_())
    assert shown["metric"] == "accuracy"
    assert shown["holdout"] == "2,000 rows"
    assert shown["charges left"] == f"{guard.charges_left} of {guard.plan.charges}"
    assert shown["queries asked"] == "1 of 40"
    assert shown["state"] == "answers"
    guard.final(labels)
    assert cells(guard._repr_html_())["state"] == "halted: final"


def test_a_closed_guard_can_be_shown(make_guard, tmp_path):
    guard = make_guard(tmp_path / "guard.db")
    guard.close()
    assert cells(guard._repr_html_()) == {"metric": "accuracy", "holdout": "2,000 rows", "state": "closed"}


def test_an_answer_is_formatted_as_text_or_by_a_format_of_numbers_as_its_value(make_guard, labels):
    answer = make_guard(noise=0.0).evaluate(labels, prior=0.5)
    assert f"{answer}" == str(answer)
    assert f"{answer:.3f}" == f"{answer.value:.3f}"
    assert f"{answer:>12.1%}" == f"{answer.value:>12.1%}"
    with pytest.raises(ValueError, match="format"):
        f"{answer:date}"


def test_an_answer_and_a_choice_show_what_they_tell(make_guard, labels):
    guard = make_guard(choices=[2], noise=0.0)
    answer = guard.evaluate(labels, prior=0.5, name="first")
    shown = answer._repr_html_()
    assert "<caption>first</caption>" in shown
    assert cells(shown)["interval"] == f"[{answer.low:.4f}, {answer.high:.4f}]"
    assert "charged" in cells(shown)["outcome"]
    choice = guard.choose([labels, 1 - labels], [0.9, 0.2])
    shown = cells(choice._repr_html_())
    assert shown["winner"] == "candidate 0"
    assert shown["others"] == f"none is better than {choice.others:.4f}"


def test_names_are_text(make_guard, labels):
    guard = make_guard()
    answer = guard.evaluate(labels, prior=0.5)._replace(name=NASTY)
    assert NASTY not in answer._repr_html_()
    assert escape(NASTY) in answer._repr_html_()


def test_a_plan_shows_its_promise():
    plan = Plan(rows=10_000, queries=1_000, tolerance=0.05, estimate=0.9)
    shown = cells(plan._repr_html_())
    assert shown["the guard halts after"] == "6 charges, whatever was told at each"
    assert "(epsilon, delta)" in shown
    assert all(f"{name}  " in str(plan) for name in shown)
