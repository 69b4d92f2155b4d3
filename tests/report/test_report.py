"""The report: one file, from what was released alone, and every text in it is text."""

import shutil
from html.parser import HTMLParser

import numpy as np
import pytest
from cases import for_each
from golden.asking import goldens
from guard.forging import sql
from made_guards import made_guard, right_in

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.cli import main
from reusable_holdout.guard import released
from reusable_holdout.report import report_page

GOLDENS = goldens()
NASTY = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>&amp;"
VOID = {"meta", "br"}


class Page(HTMLParser):
    """Tags, attributes and texts of a page; closed tags must be the ones that are open."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.open, self.attributes = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture
def labels():
    return np.random.default_rng(0).integers(0, 2, 4_000)


@pytest.fixture
def make_ledger(tmp_path, labels):
    def make(*names, folder=tmp_path, **changes):
        settings = {"tolerance": 0.1, "queries": 500, "estimate": 0.9, "seed": 0, **changes}
        guard = made_guard(None, labels, ledger=folder / "guard.db", **settings)
        for number, name in enumerate(names):
            guard.evaluate(right_in(labels, 0.875, number), prior=0.87 if number else 0.6, name=name)
        guard.close()
        return folder / "guard.db"

    return make


@for_each("golden", GOLDENS, ids=[golden.name for golden in GOLDENS])
def test_every_golden_ledger_has_a_report_without_holdout_and_key(golden, tmp_path):
    folder = tmp_path / golden.name
    folder.mkdir(parents=True)
    ledger = shutil.copy(golden.folder / "guard.db", folder)
    text, verified = report_page(ledger)
    page = Page(text)
    assert verified.sound
    assert verified.head in page.texts
    words = " ".join(page.texts)
    for epoch in range(1, text.count("<h2>Answers") + 1):
        history = released(ledger, epoch=epoch).history
        assert set(history["metric"]) <= set(page.texts)
        assert f"{len(history):,} answers" in words
    assert [path.name for path in folder.iterdir()] == ["guard.db"]


def test_a_report_needs_nothing_from_elsewhere_and_runs_nothing(make_ledger):
    page = Page(report_page(make_ledger("first", "second"))[0])
    assert not {"script", "link", "img", "iframe", "object", "base", "form"} & set(page.tags)
    names = {name for name, _ in page.attributes}
    assert not {name for name in names if name.startswith("on")} | names & {"src", "href", "style"}
    assert "url(" not in "".join(page.texts)
    assert "@import" not in "".join(page.texts)


def test_names_are_text(make_ledger):
    text, _ = report_page(make_ledger(NASTY, "plain"))
    page = Page(text)
    assert NASTY in page.texts
    assert not {"script", "img"} & set(page.tags)
    assert "<script" not in text
    assert "onerror" not in {name for name, _ in page.attributes}


def test_a_view_of_any_name_is_text(tmp_path, labels):
    guard = made_guard(None, labels, tolerance=0.1, queries=50, estimate=0.9, ledger=tmp_path / "guard.db")
    view = guard.on(sample_weight=np.arange(len(labels)) % 2, name=NASTY, allow={"vacuous"})
    view.evaluate(labels, prior=1.0)
    view.close()
    page = Page(report_page(tmp_path / "guard.db")[0])
    assert page.texts.count(NASTY) >= 1
    assert "img" not in page.tags


def test_of_very_many_answers_the_charged_ones_and_the_last_are_listed(make_ledger, monkeypatch):
    monkeypatch.setattr("reusable_holdout.report.answers._MOST_ROWS", 10)
    text, _ = report_page(make_ledger(*(f"model {number}" for number in range(40))))
    listed = [one for one in Page(text).texts if one.startswith("model ")]
    assert [one for one in listed if "query" not in one] == [
        "model 0",
        *(f"model {n}" for n in range(35, 40)),
    ]
    assert "34 older ones are left out" in text


def test_what_is_left_is_what_the_guard_says(make_ledger, labels, tmp_path):
    ledger = make_ledger("first", "second")
    with ReusableHoldout.open(ledger, None, labels, seed=0) as guard:
        left = f"{guard.charges_left:,} of {guard.plan.charges:,}"
        nats = f"{guard.history()['nats'].sum():.2f} nats"
        assert {left, "498 of 500", nats, "open"} <= set(Page(report_page(ledger)[0]).texts)
        guard.final(labels)
    assert "closed" in Page(report_page(ledger)[0]).texts


def test_a_guard_that_was_asked_nothing_has_a_report(make_ledger):
    assert "Nothing was asked yet." in Page(report_page(make_ledger())[0]).texts


def test_a_changed_ledger_is_reported_without_its_answers(make_ledger, tmp_path, capsys):
    ledger = make_ledger("first", NASTY)
    sql(ledger, ("UPDATE answers SET value = 0.123456 WHERE query = 1",))
    assert main(["report", str(ledger), "--output", str(tmp_path / "out.html")]) == 1
    capsys.readouterr()
    text = (tmp_path / "out.html").read_text()
    assert "The ledger is not sound." in Page(text).texts
    assert verify(ledger).problems[0] in Page(text).texts
    assert "<svg" not in text
    assert "first" not in Page(text).texts


def test_the_command_writes_one_file(make_ledger, tmp_path, monkeypatch, capsys):
    ledger = make_ledger("first")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert main(["report", str(ledger)]) == 0
    assert capsys.readouterr().out == "wrote guard.html\n"
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["guard.html"]
    assert main(["report", str(ledger), "--output", "no/such/folder.html"]) == 1
    assert "must be writable" in capsys.readouterr().err
    assert main(["report", "no.db"]) == 1
    assert "no ledger" in capsys.readouterr().err


def test_the_same_ledger_has_the_same_report_and_its_folders_are_not_named(make_ledger, tmp_path):
    ledger = make_ledger("first")
    text, _ = report_page(ledger)
    assert text == report_page(ledger)[0]
    assert str(tmp_path) not in text
