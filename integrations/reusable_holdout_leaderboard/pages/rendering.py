"""Rendering of pages from templates, with formatted numbers, addresses, and forms that only one browser can send."""

from __future__ import annotations

import functools
import hashlib
from importlib import resources
from typing import Any, NamedTuple
from urllib.parse import quote

import jinja2
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.pages.sessions import Sessions
from reusable_holdout_leaderboard.pages.words import MetricText, metric_text, moment, sentence
from reusable_holdout_leaderboard.store.records import Status, Team
from reusable_holdout_leaderboard.web.boards import Boards

__all__ = ["Rendering", "Visit", "place_of"]

_PACKAGE = "reusable_holdout_leaderboard.pages"
_PLACES = ("rules", "team", "login", "logout", "submit", "organise", "join")


class Visit(NamedTuple):
    """A request for a competition's page: the competition, its state, and the team that is logged in, if any."""

    competition: Competition
    status: Status
    team: Team | None


class Rendering:
    """A renderer of the package's templates. It also holds the package's static files.

    Parameters
    ----------
    boards : Boards
    sessions : Sessions

    Attributes
    ----------
    files : dict of str to bytes
        Style sheets, scripts and icons, by name.
    """

    def __init__(self, boards: Boards, sessions: Sessions) -> None:
        self._boards, self._sessions = boards, sessions
        self._templates = _templates()
        folder = resources.files(_PACKAGE) / "static"
        self.files = {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}
        content = b"".join(self.files[name] for name in sorted(self.files))
        self._version = hashlib.sha256(content).hexdigest()[:12]

    async def page(
        self,
        request: Request,
        template: str,
        visit: Visit | None,
        *,
        status_code: int = 200,
        scope: str | None = None,
        **more: Any,
    ) -> Response:
        """Render a page. Only the browser that the page is sent to can send its forms.

        Parameters
        ----------
        request : Request
        template : str
        visit : Visit or None
        status_code : int
        scope : str, optional
            Session that the page's forms belong to: the name of a competition, or the organisers'. By default, that of
            the visited competition.
        **more
            Further values for the template.
        """
        return await self._boards.run(self._page, request, template, visit, status_code, scope, more)

    def _page(
        self,
        request: Request,
        template: str,
        visit: Visit | None,
        status_code: int,
        scope: str | None,
        more: dict[str, Any],
    ) -> Response:
        cookies, slug = Response(), ""
        shared: dict[str, Any] = {"rules": None, "status": None, "team": None, "metric": None, "key": ""}
        if visit is not None:
            slug = visit.competition.slug
            secret = visit.competition.form_secret
            shared = {
                "rules": visit.competition.rules,
                "status": visit.status,
                "team": visit.team,
                "metric": metric_text(visit.competition),
                "key": self._sessions.form_key(request, cookies, scope or slug, secret),
                "when": _when(visit),
            }
        shared |= {
            "at": _addresses(request, slug, default=self._boards.default()),
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


def place_of(request: Request, slug: str, name: str) -> str:
    """Return the address of one of a competition's pages, as a browser must request it."""
    return _addresses(request, slug, default=None)[name]


def _addresses(request: Request, slug: str, *, default: str | None) -> dict[str, str]:
    root = request.scope.get("root_path", "").rstrip("/")
    here = f"{root}/c/{quote(slug)}"
    return {
        "home": here if slug else f"{root}/",
        "board": here,
        "api": f"{root}/api/v1" if slug == default else f"{root}/api/v1/c/{quote(slug)}",
        "docs": f"{root}/api/v1/openapi.json",
        "all": f"{root}/competitions",
        "static": f"{root}/static",
        "origin": f"{request.url.scheme}://{request.url.netloc}",
        "server": f"{request.url.scheme}://{request.url.netloc}{root}",
        **{name: f"{here}/{name}" for name in _PLACES},
    }


def _when(visit: Visit) -> str:
    """Return the closing date, or why it is not open, as text; empty if halted, frozen or without a closing date."""
    rules = visit.competition.rules
    if visit.status.halted or visit.status.frozen or rules.closes_at is None:
        return ""
    if not visit.status.open:
        return sentence(visit.status.closed_reason)
    return Markup("until {}").format(moment(rules.closes_at))


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
    found.filters.update(score=_score, percent=_percent, moment=moment, words=_words)
    return found


@jinja2.pass_context
def _score(context: jinja2.runtime.Context, value: float, metric: MetricText | None = None) -> str:
    """Return a score as text with the decimals of its metric, which is the ranking metric by default."""
    return f"{value:.{(metric or context['metric']).decimals}f}"


def _percent(share: float) -> str:
    return f"{100 * share:.6g}%"


def _words(name: str) -> str:
    """Return the name of an action as a label, such as "Add team" for "add-team"."""
    return name.replace("-", " ").capitalize()
