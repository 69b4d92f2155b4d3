"""Pages of a server: boards people look at, forms they submit with, and the rules in plain words.

They work without scripts. A script makes them live: it loads the same page again when there is news, and exchanges the
parts that changed, so that there is one template for everything that is shown.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from reusable_holdout_leaderboard.pages.changes import changes_of
from reusable_holdout_leaderboard.pages.content import (
    Contents,
    also_text_of,
    column_text_of,
    halt_of,
    limits_of,
    metric_text_of,
    own_limits_of,
    part_of,
)
from reusable_holdout_leaderboard.pages.organiser import OrganisersPages
from reusable_holdout_leaderboard.pages.prose import prose_of, summary_of
from reusable_holdout_leaderboard.pages.rendering import Rendering, Visit, place_of, sentence
from reusable_holdout_leaderboard.pages.teams import TeamsPages
from reusable_holdout_leaderboard.store.records import Submission, Team
from reusable_holdout_leaderboard.web.once import answer_once, sample_of
from reusable_holdout_leaderboard.web.requests import GONE, intake_of, whole_of
from reusable_holdout_leaderboard.web.security import Problem
from reusable_holdout_leaderboard.web.services import Boards

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request

__all__ = ["add_pages"]

_MEDIA = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_A_YEAR = "public, max-age=31536000, immutable"  # their addresses change when they do
_SHOWN_COLUMNS = 6
_TITLES = {
    "bad_submission": "This submission does not fit",
    "closed": "Closed",
    "form": "Load the page again",
    "halted": "Halted",
    "invitation": "Not the newest invitation",
    "limit": "No submission left",
    "no_competition": "No such competition",
    "rate": "Too many requests",
    "too_large": "This file is too large",
}


def add_pages(app: FastAPI, boards: Boards) -> None:
    """Add the pages to an application.

    They show what the guard released and what is public, and nothing else.

    Parameters
    ----------
    app : FastAPI
    boards : Boards
    """
    pages = _Pages(boards)
    organisers = OrganisersPages(boards, pages.rendering, pages.visit)
    routes = (
        *organisers.routes,
        *TeamsPages(boards, pages).routes,
        ("/", pages.home, "GET"),
        ("/competitions", pages.all, "GET"),
        ("/c/{slug}", pages.board, "GET"),
        ("/c/{slug}/rules", pages.rules, "GET"),
        ("/c/{slug}/login", pages.login_form, "GET"),
        ("/c/{slug}/login", pages.login, "POST"),
        ("/c/{slug}/logout", pages.logout, "POST"),
        ("/c/{slug}/submit", pages.submit, "POST"),
        ("/c/{slug}/sample.csv", pages.sample, "GET"),
        ("/static/{name}", pages.static, "GET"),
    )
    for path, endpoint, method in routes:
        app.router.routes.append(
            Route(path, pages.guarded(endpoint), methods=[method], include_in_schema=False)
        )


class _Pages:
    """Endpoints, with what they share: templates, static files, contents."""

    def __init__(self, boards: Boards) -> None:
        self._boards = boards
        self.contents = Contents(boards)
        self.rendering = Rendering(boards)

    def guarded(
        self, endpoint: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Endpoint whose refusals are pages too."""

        async def answered(request: Request) -> Response:
            try:
                return await endpoint(request)
            except Problem as problem:
                refused = problem
            if refused.code == GONE:
                return Response(status_code=refused.status)  # a page would be drawn for nobody
            return await self._refusal(request, refused)

        return answered

    # ---- pages

    async def home(self, request: Request) -> Response:
        """The only competition, or the server's own; otherwise all of them."""
        slug = await self._boards.run(self.rendering.default)
        if slug is None:
            return await self.all(request)
        return RedirectResponse(place_of(request, slug, "board"), 303)

    async def all(self, request: Request) -> Response:
        """All competitions."""

        def listed() -> list[dict[str, Any]]:
            found = []
            for slug in self._boards.slugs():
                competition = self._boards.competition(slug)
                found.append(
                    {
                        "href": place_of(request, slug, "board"),
                        "title": competition.rules.title,
                        "metric": metric_text_of(competition).label,
                        "teams": len(competition.teams()),
                        "status": competition.status(),
                    }
                )
            return found

        return await self._boards.run(
            self.rendering.page, request, "all.html", None, competitions=await self._boards.run(listed)
        )

    async def board(self, request: Request) -> Response:
        """Board with everything around it."""
        visit = await self.visit(request)
        return await self._boards.run(self._board, request, visit)

    async def rules(self, request: Request) -> Response:
        """Rules, and how the guard works."""
        return await self._boards.run(self._rules, request, await self.visit(request))

    async def login_form(self, request: Request) -> Response:
        """Form that asks for a token."""
        return await self._boards.run(
            self.rendering.page, request, "login.html", await self.visit(request), page="login"
        )

    # ---- what forms do

    async def login(self, request: Request) -> Response:
        """Begin a session of a team that shows its token."""
        visit = await self.checked(request)
        slug = visit.competition.slug
        upload = await intake_of(request).form(request, intake_of(request).stranger())
        token = upload.fields.get("token", "").strip()
        if await self._boards.run(visit.competition.authenticate, token) is None:
            said: dict[str, Any] = {
                "problem_title": "No team has this token",
                "problems": ["Look whether all of it was copied."],
            }
            return await self._boards.run(
                self.rendering.page, request, "login.html", visit, status_code=401, page="login", **said
            )
        response = RedirectResponse(place_of(request, slug, "board"), 303)
        await self._boards.sign_in(request, response, visit.competition, slug, token)
        return response

    async def logout(self, request: Request) -> Response:
        """End a session."""
        competition = (await self.checked(request)).competition
        slug = competition.slug
        response = RedirectResponse(place_of(request, slug, "board"), 303)
        await self._boards.sign_out(request, response, competition, slug)
        return response

    async def submit(self, request: Request) -> Response:
        """Have a file scored."""
        visit, team = await self.entered(request)
        competition = visit.competition
        async with intake_of(request).large(intake_of(request).team(team)) as sender:
            upload = await intake_of(request).form(request, sender, files=1)
            submission = await self._boards.submit(
                competition,
                team,
                upload.file(),
                filename=upload.filename,
                claimed=_claim(upload.fields.get("claimed", "")),
                anew=upload.fields.get("anew") == "yes",
            )
        if _wants_part(request):
            return await self._boards.run(
                self.rendering.page, request, "result.html", visit, submission=submission
            )
        shown = f"?done={submission.id}{'&again=1' * submission.replayed}#result"
        return RedirectResponse(place_of(request, competition.slug, "team") + shown, 303)

    # ---- files

    async def sample(self, request: Request) -> Response:
        """A file that fits."""
        competition = (await self.visit(request)).competition
        after = whole_of(request.query_params.get("after", "")) or 0
        content, _ = await self._boards.run(sample_of, competition, after)
        named = {"Content-Disposition": f'attachment; filename="{competition.slug}-sample.csv"'}
        return answer_once(request, content, media="text/csv; charset=utf-8", headers=named)

    async def static(self, request: Request) -> Response:
        """Styles and scripts."""
        name = request.path_params["name"]
        if name not in self.rendering.files:
            raise Problem(404, "not_found", "There is nothing at this address.")
        media = _MEDIA.get(name[name.rfind(".") :], "application/octet-stream")
        return Response(self.rendering.files[name], media_type=media, headers={"Cache-Control": _A_YEAR})

    # ---- what other pages share

    async def visit(self, request: Request) -> Visit:
        """Competition that a request is about, and who looks at it."""

        def found() -> Visit:
            competition = self._boards.competition(request.path_params["slug"])
            return Visit(competition, competition.status(), self._boards.team(request, competition))

        return await self._boards.run(found)

    async def checked(self, request: Request) -> Visit:
        """Return who visits, if this browser was sent the form; of the form nothing is read yet."""
        visit = await self.visit(request)
        competition = visit.competition
        self._boards.sessions.check_form(request, competition.slug, competition.form_secret)
        return visit

    async def entered(self, request: Request) -> tuple[Visit, Team]:
        """Return who visits, if it is a team that was sent the form; of the form nothing is read yet."""
        visit = await self.checked(request)
        if visit.team is None:
            raise Problem(401, "unauthorized", "Log in first; nothing was asked.")
        return visit, visit.team

    # ---- inside

    def _board(self, request: Request, visit: Visit, **more: Any) -> Response:
        shown = self.contents.of_board(visit.competition, visit.status)
        return self.rendering.page(
            request,
            "board.html",
            visit,
            page="board",
            summary=summary_of(visit.competition.rules.description),
            halt=halt_of(visit.status),
            part=part_of(
                shown["rows"],
                shown["scale"],
                search=request.query_params.get("q", ""),
                page=request.query_params.get("page", ""),
            ),
            **self.submitting(visit, shown),
            **shown,
            **more,
        )

    def _rules(self, request: Request, visit: Visit) -> Response:
        competition = visit.competition
        expected = competition.expected
        return self.rendering.page(
            request,
            "rules.html",
            visit,
            page="rules",
            expected=expected,
            plan=competition.plan,
            also=also_text_of(competition.rules),
            compared=competition.compares_neighbours,
            start=competition.start,
            description=prose_of(competition.rules.description),
            files=competition.public_files(),
            column_says=column_text_of(expected),
            limits=limits_of(competition.rules, visit.status),
            changes=changes_of(competition.changes()),
            megabytes=f"{expected.max_bytes / (1 << 20):.0f} MiB",
        )

    def submitting(
        self, visit: Visit, shown: Mapping[str, Any], submission: Submission | None = None
    ) -> dict[str, Any]:
        """What the form of a submission needs."""
        competition, status, team = visit
        expected, reason = competition.expected, status.closed_reason
        columns = expected.header()
        return {
            "expected": expected,
            "plan": competition.plan,
            "shown_columns": columns[:_SHOWN_COLUMNS],
            "more_columns": len(columns) > _SHOWN_COLUMNS,
            "closed_reason": f"{reason[:1].upper()}{reason[1:]}.",
            "own_limits": [] if team is None else own_limits_of(competition, team, shown["rows"]),
            "submission": submission,
        }

    async def _refusal(self, request: Request, problem: Problem) -> Response:
        """Problem as a page, or as the part of one that a script asked for."""
        problems = problem.details.get("problems")
        said: dict[str, Any] = {
            "problem_title": _TITLES.get(problem.code, "That did not work"),
            "problems": [
                sentence(one) for one in (problems if isinstance(problems, list) else [problem.message])
            ],
            "free": problem.code == "bad_submission",
        }
        try:
            visit = None if problem.code == "no_competition" else await self.visit(request)
        except (Problem, KeyError):  # then there is no competition to be shown around it
            visit = None
        template = "result.html" if _wants_part(request) else "message.html"
        response = await self._boards.run(
            self.rendering.page, request, template, visit, status_code=problem.status, **said
        )
        response.headers.update(problem.headers)
        return response


def _wants_part(request: Request) -> bool:
    return request.headers.get("x-part") == "result"


def _claim(text: str) -> float | None:
    """Claimed score of a form; a comma may be its decimal point."""
    stated = text.strip().replace(",", ".")
    if not stated:
        return None
    try:
        return float(stated)
    except ValueError:
        return math.nan  # which is no score, and is refused as such
