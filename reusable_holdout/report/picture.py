"""The picture of answers as inline SVG, in the page's light and dark colours, without a plotting library."""

from __future__ import annotations

from typing import Any

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.markup import escape
from reusable_holdout.scales import Scale, scale_of

__all__ = ["picture_of"]

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 760, 250, 62, 14, 12, 34
_MOST_BARS = 300  # more intervals are a band, points have no text, and what falls on one pixel is drawn once


def picture_of(answers: pd.DataFrame, *, name: str, lower: float, upper: float) -> str:
    """Draw priors against answers, with intervals and charges.

    Parameters
    ----------
    answers : pandas.DataFrame
        Rows of a history, of one metric and at least one.
    name : str
        Name of the drawn metric, for the picture's text.
    lower, upper : float
        Range of the values.
    """
    ends = [value for value in (*answers["low"], *answers["high"]) if lower < value < upper]
    scale = scale_of([*answers["prior"], *answers["value"], *ends], lower=lower, upper=upper)
    few = len(answers) <= _MOST_BARS
    queries = answers["query"]
    canvas = _Canvas(scale, int(queries.min()), int(queries.max()), decimals=2 if few else 0)
    charged = int(answers["charged"].sum())
    text = f"{name}: priors, answers and certified intervals of {len(answers):,} answers, {charged:,} charged"
    return "\n".join(
        [
            f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(text)}">',
            *canvas.axes(),
            *(canvas.bars(answers) if few else canvas.band(answers)),
            *dict.fromkeys(canvas.points(answers, few=few)),
            "</svg>",
        ]
    )


class _Canvas:
    """Places on the drawing."""

    def __init__(self, scale: Scale, first: int, last: int, *, decimals: int) -> None:
        self._scale, self._first, self._last, self._decimals = scale, first, last, decimals

    def x(self, query: int) -> float:
        """Return the place of a query; a single one stands in the middle."""
        share = 0.5 if self._first == self._last else (query - self._first) / (self._last - self._first)
        return round(_LEFT + 8 + share * (_WIDTH - _LEFT - _RIGHT - 16), self._decimals)

    def y(self, value: float) -> float:
        """Return the place of a value, within the drawing."""
        return self._y(self._scale.at(value))

    def _y(self, percent: float) -> float:
        return round(_HEIGHT - _BOTTOM - percent / 100 * (_HEIGHT - _TOP - _BOTTOM), self._decimals)

    def axes(self) -> list[str]:
        """Return the SVG elements of grid and labels."""
        lines = []
        for tick in self._scale.ticks:
            y = self._y(tick.at)
            lines += [
                f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>',
                f'<text class="tick" x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{tick.label}</text>',
            ]
        first, last = self._first, self._last
        labels = [(self.x(first), "middle", f"{first:,}")]
        if first != last:
            middle = (_LEFT + _WIDTH - _RIGHT) / 2
            labels = [(self.x(first), "start", f"{first:,}"), (self.x(last), "end", f"{last:,}")]
            labels.append((middle, "middle", "query"))
        foot = _HEIGHT - _BOTTOM + 20
        return lines + [
            f'<text class="tick" x="{x}" y="{foot}" text-anchor="{anchor}">{words}</text>'
            for x, anchor, words in labels
        ]

    def bars(self, answers: pd.DataFrame) -> list[str]:
        """Return an SVG line of the interval of each answer."""
        rows: Any = answers.itertuples()
        return [
            f'<line class="interval" x1="{self.x(row.query)}" x2="{self.x(row.query)}" '
            f'y1="{self.y(row.low)}" y2="{self.y(row.high)}"/>'
            for row in rows
        ]

    def band(self, answers: pd.DataFrame) -> list[str]:
        """Return all intervals as one SVG band: the widest at each place."""
        rows: Any = answers.itertuples()
        ends: dict[float, tuple[float, float]] = {}
        for row in rows:
            x, upper, lower = self.x(row.query), self.y(row.high), self.y(row.low)
            known = ends.get(x, (upper, lower))
            ends[x] = min(upper, known[0]), max(lower, known[1])
        above = [f"{x},{upper}" for x, (upper, _) in ends.items()]
        below = [f"{x},{lower}" for x, (_, lower) in ends.items()]
        return [f'<polygon class="band" points="{" ".join(above + below[::-1])}"/>']

    def points(self, answers: pd.DataFrame, *, few: bool) -> list[str]:
        """Return SVG marks for prior and answer, and a ring around each charged answer."""
        lines = []
        rows: Any = answers.itertuples()
        for row in rows:
            x, y = self.x(row.query), self.y(row.value)
            words = f"query {row.query}: {row.value:.4g} in [{row.low:.4g}, {row.high:.4g}], prior {row.prior:.4g}"
            title = f"<title>{escape(f'{row.name} ' * bool(row.name) + words)}</title>" if few else ""
            if row.prior != row.value:
                lines.append(f'<circle class="prior" cx="{x}" cy="{self.y(row.prior)}" r="3"/>')
            if row.charged:
                lines.append(f'<circle class="charge" cx="{x}" cy="{y}" r="7"/>')
            lines.append(f'<circle class="answer" cx="{x}" cy="{y}" r="3.4">{title}</circle>')
        return lines
