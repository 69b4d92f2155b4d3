"""A grading server for agents, like MLE-bench's: it validates submissions and grants medals, within a budget.

MLE-bench's server validates a submission, and tells a run's score at its end. Agents that can ask for scores overfit
them. So this server asks a box for medals: each is a gate question ("is it at least .71?"). A no is free, a yes is
charged, and no number is told. Each run has a number of looks; all runs share the rows, and so one budget.

    reusable-holdout box init /srv/box --labels labels.csv --id id --gates --queries 3000 --charges 10
    reusable-holdout box serve /srv/box
    python examples/grading_server.py unix:///srv/box/socket --run agent-7 --looks 20 --medals bronze=.71 silver=.75
    curl -F file=@submission.csv http://127.0.0.1:5000/validate    # {"result": "Submission is valid."}
    curl -F file=@submission.csv http://127.0.0.1:5000/medal       # {"medal": "bronze", "looks_left": 19}
"""

from __future__ import annotations

import argparse
import io
from typing import Annotated, Any

import numpy as np
import pandas as pd
import uvicorn
from fastapi import FastAPI, UploadFile
from numpy.typing import NDArray
from reusable_holdout_box import RemoteHoldout

from reusable_holdout.errors import Halted, HoldoutError, InputError

MOST_BYTES = 200 * 2**20


class Grader:
    """The questions of one run to a box.

    Parameters
    ----------
    box : RemoteHoldout
        A box for nothing but gates.
    run : str
    looks : int
        Submissions of the run whose medals are told.
    medals : dict of str to float
        Score for each medal, the lowest first.
    """

    def __init__(self, box: RemoteHoldout, run: str, looks: int, medals: dict[str, float]) -> None:
        if box.plan.asks != "gates":
            raise InputError(f"the box must be for gates alone; got {box.plan.asks}; make it with --gates")
        self.box, self.run, self.looks, self.medals = box, run, looks, medals

    def predictions(self, file: bytes) -> NDArray[Any]:
        """Return predictions in the order of the box's rows.

        Raises
        ------
        InputError
            If the file does not fit; nothing was asked.
        """
        try:
            table = pd.read_csv(io.BytesIO(file), index_col=0)
        except ValueError as error:
            raise InputError(
                f"the submission must be CSV with ids first; it cannot be read ({error})"
            ) from None
        ids = self.box.ids
        if ids is None:
            raise InputError("the box must know ids; make it with --id")
        table.index = table.index.astype(str)
        wanted = pd.Index(ids).astype(str)
        if table.shape[1] != 1 or not table.index.is_unique or set(table.index) != set(wanted):
            raise InputError(f"the submission must have one prediction for each of {len(wanted):,} ids")
        found: NDArray[Any] = table.loc[wanted].iloc[:, 0].to_numpy()
        classes = self.box.classes
        if classes is not None and self.box.metric.response == "labels" and not np.isin(found, classes).all():
            raise InputError(f"predictions must be among {', '.join(map(str, classes.tolist()[:10]))}")
        return found

    @property
    def looks_left(self) -> int:
        """Looks that the run has left; the box's history counts them, also after a restart of this server."""
        names = self.box.history()["name"]
        return self.looks - int(names.str.startswith(f"{self.run}: look ").sum())

    def medal(self, predictions: NDArray[Any]) -> str:
        """Return the highest medal that the box grants, as far as its budget goes; "none" if it grants none.

        Raises
        ------
        Halted
            If the budget of all runs is spent.
        InputError
            If the run has no look left.
        """
        if self.looks_left <= 0:
            raise InputError(f"{self.run} has had its {self.looks} looks")
        best = "none"
        for number, (medal, least) in enumerate(self.medals.items()):
            name = f"{self.run}: look {medal}" if number == 0 else f"{self.run}: {medal}"
            try:
                granted = self.box.gate(predictions, least, name=name).outcome == "better"
            except Halted:
                if number == 0:
                    raise
                granted = False  # what was granted before stays granted
            if not granted:
                break
            best = medal
        return best


def application(grader: Grader) -> FastAPI:
    """Return the server: /health and /validate like MLE-bench's, and /medal."""
    app = FastAPI()

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "running"}

    @app.post("/validate")
    def validate(file: Annotated[UploadFile, "CSV"]) -> dict[str, str]:
        try:
            grader.predictions(file.file.read(MOST_BYTES))
        except InputError as error:
            return {"result": f"Submission invalid! {error}"}
        return {"result": "Submission is valid."}

    @app.post("/medal")
    def medal(file: Annotated[UploadFile, "CSV"]) -> dict[str, object]:
        try:
            found = grader.medal(grader.predictions(file.file.read(MOST_BYTES)))
        except Halted as halt:
            return {"error": f"The budget is spent: nothing was told. {halt}"}
        except HoldoutError as error:
            return {"error": str(error), "looks_left": grader.looks_left}
        return {"medal": found, "looks_left": grader.looks_left}

    return app


def main(arguments: list[str] | None = None) -> None:
    """Serve one run, on the loopback address."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("box", help="unix:///path/of/socket")
    parser.add_argument("--run", required=True, help="name of the run, used once")
    parser.add_argument("--looks", type=int, default=20)
    parser.add_argument("--medals", nargs="+", required=True, metavar="NAME=SCORE", help="the lowest first")
    parser.add_argument("--port", type=int, default=5000)
    options = parser.parse_args(arguments)
    medals = {name: float(score) for name, _, score in (one.partition("=") for one in options.medals)}
    with RemoteHoldout(options.box) as box:
        app = application(Grader(box, options.run, options.looks, medals))
        uvicorn.run(app, host="127.0.0.1", port=options.port)


if __name__ == "__main__":
    main()
