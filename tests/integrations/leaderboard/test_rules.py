"""Rules of a competition: checked, completed from the labels, stored as JSON; and settings of a server."""

from datetime import UTC, datetime

import numpy as np
import pytest
from cases import refuses
from reusable_holdout_leaderboard import Competition, Rules
from reusable_holdout_leaderboard.settings import Settings, checked_database, read_token

from reusable_holdout.errors import InputError, PlanError

PLAIN = {"slug": "demo", "title": "Demo"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        *(({"slug": one}, "small letters") for one in ("Demo", "../etc", "-a", "a" * 49)),
        *(({"title": one}, "title must be text") for one in (" ", "a\x00")),
        ({"description": "x" * 100_001}, "at most 100,000"),
        ({"metric": "acuracy"}, "did you mean 'accuracy'"),
        ({"metric": "mae"}, "lower=..., upper=..."),
        ({"metric": "mae", "metric_parameters": {"low": 0}}, "must be parameters of mae"),
        ({"metric": "accuracy", "metric_parameters": {"lower": 0}}, "takes no metric_parameters"),
        ({"also": ("roc_auc",)}, "must need labels.*needs scores"),
        *(({"also": one}, "each once") for one in (("accuracy",), ("f1", "f1"))),
        ({"also": ("f2",)}, "must be one of"),
        *(({"also": one}, "names of metrics") for one in (["f1"], "f1")),
        ({"also": ("score",)}, "compare predictions with labels"),
        ({"metric": "score"}, "must compare predictions with labels; score takes"),
        ({"metric": "pass^3"}, "must compare predictions with labels; pass\\^3 takes"),
        *(({"queries": one}, "queries must be a whole number") for one in (0, True)),
        ({"submissions_per_day": 0}, "submissions_per_day must be"),
        ({"charges": 1.5}, "charges must be"),
        ({"estimate": float("nan")}, "estimate must be a finite number"),
        ({"confidence": None}, "confidence must be a finite number"),
        ({"blind": 1}, "blind must be true or false"),
        ({"vacuous": "yes"}, "vacuous must be true or false"),
        ({"prediction_columns": ("id",)}, "a name of its own"),
        ({"prediction_columns": (" x",)}, "without space before or after"),
        ({"classes": (1,)}, "two or more"),
        *(({"classes": one}, "all whole numbers or all text") for one in ((1, "a"), (False, True))),
        ({"opens_at": datetime(2026, 3, 1)}, "with a time zone"),
        (
            {"opens_at": datetime(2026, 3, 2, tzinfo=UTC), "closes_at": datetime(2026, 3, 1, tzinfo=UTC)},
            "opens_at must be before",
        ),
    ],
)
def test_impossible_rules_are_refused_by_name(changes, words):
    refuses(InputError, words.replace("(", "\\("), Rules(**{**PLAIN, **changes}).check)


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
    refuses(InputError, f"rules must.*{words}", Rules.from_json, text)


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
        ("id,label\na,secret1\nb,secret2\na,secret1\n", "come more than once: a"),
        ("id,label,more\na,secret1,0\nb,secret2,0\n", "one column"),
        ("label\nsecret1\nsecret2\n", "column of ids 'id'"),
        ("id,label\na,secret1\nb,\n", "must not be missing"),
        ("id,label\na,secret1\n", "classes must be two or more"),
    ],
)
def test_a_label_file_that_does_not_fit_is_refused_without_quoting_it(tmp_path, text, words):
    path = tmp_path / "labels.csv"
    path.write_text(text)
    refused = refuses(InputError, words, Competition.create, tmp_path / "data", Rules(**PLAIN), path)
    assert "secret" not in str(refused)
    assert Competition.slugs(tmp_path / "data") == []


def test_fresh_labels_must_be_other_rows_with_ids(make_competition, labels_file, tmp_path):
    refuses(InputError, "some are in both", make_competition, fresh=labels_file)
    bare = tmp_path / "bare.csv"
    bare.write_text("label\n" + "0\n1\n" * 50)
    refuses(InputError, "column of ids", make_competition, fresh=bare)


def test_a_vacuous_competition_is_refused_unless_its_rules_allow_it(tmp_path):
    labels = ["0", "1"] * 100
    refuses(PlanError, "a quarter of the metric's range", made, tmp_path, labels, vacuous=False)
    assert Competition.slugs(tmp_path / "data") == []
    with made(tmp_path, labels, vacuous=True) as competition:
        assert competition.rules.vacuous


# ---- settings of a server


def test_settings_are_passed_through_a_private_file(tmp_path):
    settings = Settings(folder=tmp_path, database="postgresql://me:word@x/y", admin_digest="ab", slug="demo")
    path = tmp_path / "own" / "settings.json"
    settings.save(path)

    assert path.stat().st_mode & 0o777 == 0o600
    assert Settings.load(path) == settings
    assert "word" not in repr(settings)
    path.chmod(0o640)
    refuses(InputError, "chmod 600", Settings.load, path)


@pytest.mark.parametrize("stated", ["*", "proxy.example", "10.0.0.0/99", ""])
def test_a_proxy_is_an_address_or_a_network(tmp_path, stated):
    with pytest.raises(InputError, match="a trusted proxy must be an IP address or a network"):
        Settings(folder=tmp_path, trusted_proxies=(stated,))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"folder": 1}', '{"folder": null, "slug": "x"}'])
def test_a_file_without_settings_is_refused(tmp_path, text):
    path = tmp_path / "settings.json"
    path.write_text(text)
    path.chmod(0o600)

    refuses(InputError, "must hold settings", Settings.load, path)


def test_a_command_line_holds_no_password():
    with_password = ("postgresql+psycopg://me:word@host/name", "postgresql://host/name?password=word")

    assert checked_database("postgresql+psycopg://me@host/name", secret=False)
    for url in with_password:
        refused = refuses(InputError, "no password", checked_database, url, secret=False)
        assert "word@" not in str(refused)
        assert checked_database(url, secret=True) == url
    for url in ("sqlite:///x.db", "nonsense", ""):
        refuses(InputError, "postgresql", checked_database, url, secret=True)


def test_a_token_is_read_from_a_private_file(tmp_path):
    path = tmp_path / "token"
    refuses(InputError, "there is none", read_token, path)
    path.write_text("rh_x\n")
    path.chmod(0o644)
    refuses(InputError, "chmod 600", read_token, path)
    path.chmod(0o600)
    assert read_token(path) == "rh_x"
    path.write_text("\n")
    refuses(InputError, "must hold a token", read_token, path)
