"""Pictures of a board for the docs: ``python tests/integrations/leaderboard/pages/take_pictures.py FOLDER``.

Nine teams on 40,000 invented labels, always the same. Rows that are hard are hard for all, so teams differ on few rows,
and the files of neighbours show which is better.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from reusable_holdout_leaderboard import Competition, Rules
from reusable_holdout_leaderboard.settings import Settings

from reusable_holdout.ledger import create_key_file
from reusable_holdout.noise import key_from_seed

sys.path.extend(str(Path(__file__).parents[4] / place) for place in ("tests", "docs/site"))
from board_servers import served
from pictures import browser, made_small

ROWS, SUBMISSIONS, START = 40_000, 60, 1_772_366_400.0
NAMES = "Quiet Forest,Tidewater,Harbour Lights,La Boîte Grise,Nearest Neighbours,Ensemble 9,Blue,Okapi,Gradient Descent"
SKILLS = dict(
    zip(NAMES.split(","), (0.873, 0.83, 0.838, 0.815, 0.784, 0.746, 0.734, 0.711, 0.702), strict=True)
)
ABOUT = """Predict from a census form whether a person earns more than 50,000 a year.
40,000 people are held out; their answers stay on the server."""
RULES = Rules(
    slug="census", title="Who earns more than 50,000?", description=ABOUT, queries=2_000, estimate=0.85
)
SIZES = {
    "board": (1280, 1100, "light"),
    "board-dark": (1280, 1100, "dark"),
    "board-phone": (390, 860, "light"),
}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        make(Path(home))
        settings = Settings(folder=Path(home) / "data", key_file=Path(home) / "fixed.key")
        with served(settings) as server, browser() as opened:
            for name, (width, height, scheme) in SIZES.items():
                page = opened.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                page.goto(f"{server.url}/c/census")
                page.locator(".chart .team").first.wait_for()
                page.screenshot(path=folder / f"{name}.png")
                made_small(folder / f"{name}.png")


def make(home: Path) -> None:
    """Make nine teams that get better; two claims are far too high."""
    rng, now = np.random.default_rng(1), [START]
    labels = rng.integers(0, 2, ROWS)
    (home / "labels.csv").write_text("id,label\n" + "".join(f"r{row},{y}\n" for row, y in enumerate(labels)))
    key, table = home / "fixed.key", home / "labels.csv"
    create_key_file(key, key=key_from_seed(1))
    with Competition.create(home / "data", RULES, table, key_file=key, clock=lambda: now[0]) as competition:
        teams = {name: competition.authenticate(competition.add_team(name)).id for name in SKILLS}
        missing, hard, names = dict.fromkeys(SKILLS, 0.12), rng.random(ROWS), list(SKILLS)
        for number in range(SUBMISSIONS):
            now[0] += rng.exponential(4 * 3600)
            name = names[number] if number < len(names) else names[rng.integers(len(names))]
            missing[name] *= rng.uniform(0.3, 1)
            right = (hard < SKILLS[name] - missing[name] + 0.01) ^ (rng.random(ROWS) < 0.01)
            claimed = right.mean() + rng.normal(0, 0.003) + (0.08 if number in {30, 52} else 0.0)
            predicted = np.where(right, labels, 1 - labels)
            competition.submit_predictions(teams[name], predicted, claimed=claimed, name=f"run {number}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
