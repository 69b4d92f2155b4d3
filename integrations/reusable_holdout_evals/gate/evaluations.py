"""Files of scores that a gate is made of or asked about, and how they are to be read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import ScoreTable
from reusable_holdout_evals.readers import read_inspect, read_lm_eval, read_scores

__all__ = ["Evaluations", "Tool"]

Tool = Literal["inspect", "lm_eval", "scores"]

_OF_A_DICT = re.compile(r"(.+)\[(.+)\]", re.DOTALL)


class Evaluations(NamedTuple):
    """How files of scores are read.

    Attributes
    ----------
    tool : {"inspect", "lm_eval", "scores"}
        What wrote them.
    score : str or None
        Scorer, metric or column; of a scorer that gives dicts with the key, as in "style[clarity]".
    filter : str or None
        Of lm-evaluation-harness.
    id : str or None
        What names the rows, if it is not the tool's own.
    groups : str or None
        What says what a row belongs to.
    missing : float or None
        What counts where there is no score.
    """

    tool: Tool
    score: str | None = None
    filter: str | None = None
    id: str | None = None
    groups: str | None = None
    missing: float | None = None

    def table(self, files: Sequence[Path], score: str | None = None) -> ScoreTable:
        """Scores in the files of one evaluation.

        Parameters
        ----------
        files : sequence of Path
            Several are repeats.
        score : str, optional
            Another one of the same files.

        Raises
        ------
        InputError
            If they do not hold it, or an option is another tool's.
        """
        self._check_options()
        wanted = self.score if score is None else score
        if self.tool == "inspect":
            scorer, key = _parts(wanted)
            return read_inspect(files, scorer=scorer, key=key, groups=self.groups, missing=self.missing)
        if self.tool == "lm_eval":
            return read_lm_eval(
                files,
                metric=wanted,
                filter=self.filter,
                id=self.id or "doc_id",
                groups=self.groups,
                missing=self.missing,
            )
        if len(files) > 1:
            raise InputError(
                f"--scores must name one file, with a row or a column for each repeat; got {len(files)}; join them"
            )
        return read_scores(
            files[0], id=self.id or "id", score=wanted, groups=self.groups, missing=self.missing
        )

    def _check_options(self) -> None:
        if self.filter is not None and self.tool != "lm_eval":
            raise InputError("a filter is one of lm-evaluation-harness; leave --filter out")
        if self.id is not None and self.tool == "inspect":
            raise InputError("samples of Inspect have ids of their own; leave --id out")


def _parts(score: str | None) -> tuple[str | None, str | None]:
    """Scorer and key of "style[clarity]"."""
    found = None if score is None else _OF_A_DICT.fullmatch(score)
    return (score, None) if found is None else (found[1], found[2])
