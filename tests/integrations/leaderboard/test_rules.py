"""Rules: checked, completed from the labels, stored as JSON."""

from datetime import UTC, datetime

import numpy as np
import pytest
from reusable_holdout_leaderboard import Competition, Rules

from reusable_holdout.errors import InputError, PlanError

PLAIN = {"slug": "demo", "title": "Demo"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"slug": "Demo"}, "small letters"),
        ({"slug": "../etc"}, "small letters"),
        ({"slug": "-a"}, "small letters"),
        ({"slug": "a" * 49}, "small letters"),
        ({"title": " "}, "title must be text"),
        ({"title": "a\x00"}, "title must be text"),
        ({"description": "x" * 100_001}, "at most 100,000"),
        ({"metric": "acuracy"}, "did you mean 'accuracy'"),
        ({"metric": "mae"}, "lower=..., upper=..."),
        ({"metric": "mae", "metric_parameters": {"low": 0}}, "must be parameters of mae"),
        ({"metric": "accuracy", "metric_parameters": {"lower": 0}}, "takes no metric_parameters"),
        ({"metric": "score"}, "must compare predictions with labels; score takes"),
        ({"metric": "pass^3"}, "must compare predictions with labels; pass\\^3 takes"),
        ({"queries": 0}, "queries must be a whole number"),
        ({"queries": True}, "queries must be a whole number"),
        ({"submissions_per_day": 0}, "submissions_per_day must be"),
        ({"charges": 1.5}, "charges must be"),
        ({"estimate": float("nan")}, "estimate must be a finite number"),
        ({"confidence": None}, "confidence must be a finite number"),
        ({"blind": 1}, "blind must be true or false"),
        ({"vacuous": "yes"}, "vacuous must be true or false"),
        ({"prediction_columns": ("id",)}, "a name of its own"),
        ({"prediction_columns": (" x",)}, "without space around"),
        ({"classes": (1,)}, "two or more"),
        ({"classes": (1, "a")}, "all whole numbers or all text"),
        ({"classes": (False, True)}, "all whole numbers or all text"),
        ({"opens_at": datetime(2026, 3, 1)}, "with a time zone"),
        (
            {"opens_at": datetime(2026, 3, 2, tzinfo=UTC), "closes_at": datetime(2026, 3, 1, tzinfo=UTC)},
            "opens_at must be before",
        ),
    ],
)
def test_impossible_rules_are_refused_by_name(changes, words):
    with pytest.raises(InputError, match=words.replace("(", "\\(")):
        Rules(**{**PLAIN, **changes}).check()


def test_rules_come_back_from_json_as_they_were():
    rules = Rules(
        **PLAIN,
        metric="mae",
        metric_parameters={"lower": 0.0, "upper": 2.0},
        prediction_columns=("value",),
        submissions_per_day=3,
        blind=True,
        opens_at=datetime(2026, 3, 1, 12, tzinfo=UTC),
    ).check()
    assert Rules.from_json(rules.to_json()) == rules
    assert Rules.from_dict(rules.as_dict()) == rules


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *(("", "a JSON object"), ("[]", "a JSON object"), ("null", "a JSON object"), ("{", "a JSON object")),
        ('{"slug": "a"}', "missing: title"),
        ('{"slug": "a", "title": "b", "x": 1}', "unknown: x"),
        (
            '{"slug": "a", "title": "b", "policy": "ladder"}',
            "not name policy: these belong to earlier versions",
        ),
    ],
)
def test_json_without_rules_is_refused(text, words):
    with pytest.raises(InputError, match=f"rules must.*{words}"):
        Rules.from_json(text)


# ---- filled in from the labels


def made(tmp_path, labels, **rules):
    path = tmp_path / "labels.csv"
    rows = "".join(f"{row},{label}\n" for row, label in enumerate(labels))
    path.write_text(f"id,label\n{rows}")
    wish = {"queries": 20, "submissions_per_team": 20, "vacuous": True}
    return Competition.create(tmp_path / "data", Rules(**PLAIN, **{**wish, **rules}), path)


@pytest.mark.parametrize(
    ("names", "metric", "classes", "columns"),
    [
        (["0", "1"], "accuracy", (0, 1), ("prediction",)),
        (["1.0", "3.0"], "accuracy", (1, 3), ("prediction",)),
        (["True", "False"], "accuracy", (0, 1), ("prediction",)),
        (["spam", "ham"], "accuracy", ("ham", "spam"), ("prediction",)),
        (["c", "a", "b"], "log_loss", ("a", "b", "c"), ("a", "b", "c")),
        (["0", "1"], "brier", (0, 1), ("0", "1")),
        (["0", "1"], "roc_auc", (0, 1), ("prediction",)),
    ],
)
def test_classes_and_columns_come_from_the_labels(tmp_path, names, metric, classes, columns):
    labels = np.random.default_rng(0).choice(names, 900)
    with made(tmp_path, labels, metric=metric) as competition:
        assert (competition.rules.classes, competition.rules.prediction_columns) == (classes, columns)
    with Competition.open(tmp_path / "data") as again:
        assert again.rules == competition.rules
        team = again.authenticate(again.add_team("Blue"))
        submission = again.submit(team.id, again.expected.sample(), filename="sample.csv", claimed=0.5)
        assert submission.state == "scored"


def test_a_single_column_may_hold_the_probability_of_the_second_of_two_classes(tmp_path):
    labels = np.random.default_rng(0).integers(0, 2, 900)
    with made(tmp_path, labels, metric="brier", prediction_columns=("p",)) as competition:
        team = competition.authenticate(competition.add_team("Blue"))
        rows = "".join(f"{row},{0.1 + 0.8 * label}\n" for row, label in enumerate(labels))
        submission = competition.submit(team.id, f"id,p\n{rows}".encode(), filename="x.csv", claimed=0.01)
        assert (submission.value, submission.charged) == (pytest.approx(0.01, abs=0.01), False)


def test_real_values_have_no_classes(tmp_path):
    labels = np.random.default_rng(0).random(900)
    with made(tmp_path, labels, metric="mae", metric_parameters={"lower": 0.0, "upper": 1.0}) as competition:
        assert competition.rules.classes is None
        team = competition.authenticate(competition.add_team("Blue"))
        submission = competition.submit_predictions(team.id, labels + 0.1, claimed=0.1)
        assert (submission.value, submission.charged) == (pytest.approx(0.1, abs=0.01), False)


def test_classes_are_whole_numbers_or_text(tmp_path):
    with pytest.raises(InputError, match="whole numbers or text; they are other numbers"):
        made(tmp_path, np.random.default_rng(0).random(900))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,label\na,secret1\nb,secret2\na,secret1\n", "more than once come a"),
        ("id,label,more\na,secret1,0\nb,secret2,0\n", "one column"),
        ("label\nsecret1\nsecret2\n", "column of ids 'id'"),
        ("id,label\na,secret1\nb,\n", "must not be missing"),
        ("id,label\na,secret1\n", "classes must be two or more"),
    ],
)
def test_a_label_file_that_does_not_fit_is_refused_without_quoting_it(tmp_path, text, words):
    path = tmp_path / "labels.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=words) as refused:
        Competition.create(tmp_path / "data", Rules(**PLAIN), path)
    assert "secret" not in str(refused.value)
    assert Competition.slugs(tmp_path / "data") == []


def test_fresh_labels_must_be_other_rows_with_ids(make_competition, labels_file, tmp_path):
    with pytest.raises(InputError, match="some are in both"):
        make_competition(fresh=labels_file)
    bare = tmp_path / "bare.csv"
    bare.write_text("label\n" + "0\n1\n" * 50)
    with pytest.raises(InputError, match="column of ids"):
        make_competition(fresh=bare)


def test_a_vacuous_competition_is_refused_unless_its_rules_allow_it(tmp_path):
    labels = ["0", "1"] * 100
    with pytest.raises(PlanError, match="a quarter of the metric's range"):
        made(tmp_path, labels, vacuous=False)
    assert Competition.slugs(tmp_path / "data") == []
    with made(tmp_path, labels, vacuous=True) as competition:
        assert competition.rules.vacuous
