"""How a page is made of a template: words, numbers, addresses, and forms that fit one browser."""

from __future__ import annotations

import functools
import hashlib
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import jinja2
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.pages.content import MetricText, metric_text_of
from reusable_holdout_leaderboard.pages.times import moment
from reusable_holdout_leaderboard.store.records import Status, Team
from reusable_holdout_leaderboard.web.services import Boards

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["Rendering", "Visit", "addresses_of", "place_of", "sentence"]

_PACKAGE = "reusable_holdout_leaderboard.pages"


class Visit(NamedTuple):
    """Who looks at which competition, in which state."""

    competition: Competition
    status: Status
    team: Team | None


class Rendering:
    """Templates and static files of the package.

    Parameters
    ----------
    boards : Boards

    Attributes
    ----------
    files : dict of str to bytes
        Styles and scripts, by name.
    """

    def __init__(self, boards: Boards) -> None:
        self._boards = boards
        self._templates = _templates()
        folder = resources.files(_PACKAGE) / "static"
        self.files = {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}
        content = b"".join(self.files[name] for name in sorted(self.files))
        self._version = hashlib.sha256(content).hexdigest()[:12]

    def page(
        self,
        request: Request,
        template: str,
        visit: Visit | None,
        *,
        status_code: int = 200,
        scope: str | None = None,
        **more: Any,
    ) -> Response:
        """Render a page; its forms fit the browser it is sent to. Call it in a thread.

        Parameters
        ----------
        request : Request
        template : str
        visit : Visit or None
        status_code : int
        scope : str, optional
            Whose session its forms fit; the team's of the competition by default.
        more : dict
            What the template needs besides.
        """
        shared: dict[str, Any] = {"rules": None, "status": None, "team": None, "metric": None, "key": ""}
        cookies, slug = Response(), ""
        if visit is not None:
            slug = visit.competition.slug
            shared = {
                "rules": visit.competition.rules,
                "status": visit.status,
                "team": visit.team,
                "metric": metric_text_of(visit.competition),
                "key": self._boards.sessions.form_key(
                    request, cookies, scope or slug, visit.competition.form_secret
                ),
                "when": _when(visit),
            }
        shared |= {
            "at": self.at(request, slug),
            "version": self._version,
            "hours": f"{self._boards.settings.session_seconds / 3600:g}",
            "several": len(self._boards.slugs()) > 1,
            "page": "",
            "problems": [],
            "submission": None,
        }
        text = self._templates.get_template(template).render(shared | more)
        response = HTMLResponse(text, status_code)
        response.raw_headers.extend(one for one in cookies.raw_headers if one[0] == b"set-cookie")
        return response

    def default(self) -> str | None:
        """Competition that is meant where none is named. Call it in a thread."""
        slugs = self._boards.slugs()
        return self._boards.settings.slug or (slugs[0] if len(slugs) == 1 else None)

    def at(self, request: Request, slug: str) -> dict[str, str]:
        """Where things are, seen from the browser."""
        return addresses_of(request, slug, default=self.default())


def addresses_of(request: Request, slug: str, *, default: str | None) -> dict[str, str]:
    """Where things are, seen from the browser."""
    root = request.scope.get("root_path", "").rstrip("/")
    here = f"{root}/c/{quote(slug)}"
    within = ("rules", "team", "login", "logout", "submit", "organise", "join", "sample.csv")
    return {
        "home": here if slug else f"{root}/",
        "board": here,
        "api": f"{root}/api/v1" if slug == default else f"{root}/api/v1/c/{quote(slug)}",
        "docs": f"{root}/api/v1/openapi.json",
        "all": f"{root}/competitions",
        "static": f"{root}/static",
        "origin": f"{request.url.scheme}://{request.url.netloc}",
        "server": f"{request.url.scheme}://{request.url.netloc}{root}",
        **{name.removesuffix(".csv"): f"{here}/{name}" for name in within},
    }


def place_of(request: Request, slug: str, name: str) -> str:
    """Where one of these is."""
    return addresses_of(request, slug, default=None)[name]


def _when(visit: Visit) -> str:
    rules = visit.competition.rules
    if visit.status.halted or visit.status.frozen or rules.closes_at is None:
        return ""
    if not visit.status.open:
        return sentence(visit.status.closed_reason)
    return Markup("until {}").format(moment(rules.closes_at))


def sentence(text: object) -> str:
    """Text that begins and ends as a sentence does."""
    said = str(text)
    return said[:1].upper() + said[1:] + ("" if said.endswith((".", "!", "?")) else ".")


# ---- templates


@functools.cache  # compiled once for all boards of a process
def _templates() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.PackageLoader(_PACKAGE, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(score=_score, rounded=_rounded, percent=_percent, moment=moment)
    return found


@jinja2.pass_context
def _score(context: jinja2.runtime.Context, value: float) -> str:
    return f"{value:.{context['metric'].decimals}f}"


def _rounded(value: float, metric: MetricText) -> str:
    """Value of another metric than the one that ranks."""
    return f"{value:.{metric.decimals}f}"


def _percent(share: float) -> str:
    return f"{100 * share:.6g}%"
