"""The endpoints of a server's pages: boards, rules, and forms for teams.

The pages work without scripts. A script keeps an open page up to date: when the board has changed, it loads the same
page again and replaces the parts that differ. So everything that a page shows comes from its template.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from reusable_holdout_leaderboard.pages.content import board_content, part_of
from reusable_holdout_leaderboard.pages.organiser import OrganisersPages
from reusable_holdout_leaderboard.pages.prose import prose_of, summary_of
from reusable_holdout_leaderboard.pages.rendering import Rendering, Visit, place_of
from reusable_holdout_leaderboard.pages.sessions import Sessions
from reusable_holdout_leaderboard.pages.words import (
    PREDICTED,
    also_texts,
    changes_of,
    limits_of,
    metric_text,
    own_limits_of,
    sentence,
)
from reusable_holdout_leaderboard.store.records import Submission, Team
from reusable_holdout_leaderboard.web.boards import Boards
from reusable_holdout_leaderboard.web.intake import GONE, intake_of, scored, whole_of
from reusable_holdout_leaderboard.web.problems import Problem
from reusable_holdout_leaderboard.web.tables import download, submissions_csv

__all__ = ["add_pages"]

_Endpoint = Callable[[Request], Awaitable[Response]]
_MEDIA = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_A_YEAR = "public, max-age=31536000, immutable"  # the address changes with the content
_SHOWN_COLUMNS = 6
_MOST_CODE = 200
_MOST_SUBMISSIONS = 200
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
    """Add the pages to an application. They show only public content and answers that the guard has released.

    Parameters
    ----------
    app : FastAPI
    boards : Boards
    """
    pages = _Pages(boards)
    organisers = OrganisersPages(boards, pages.sessions, pages.rendering, pages.visit)
    here = "/c/{slug}"
    routes: tuple[tuple[str, _Endpoint, str], ...] = (
        *organisers.routes,
        ("/", pages.home, "GET"),
        ("/competitions", pages.all, "GET"),
        (here, pages.board, "GET"),
        (f"{here}/rules", pages.rules, "GET"),
        (f"{here}/login", pages.login_form, "GET"),
        (f"{here}/login", pages.login, "POST"),
        (f"{here}/logout", pages.logout, "POST"),
        (f"{here}/join", pages.join_form, "GET"),
        (f"{here}/join", pages.join, "POST"),
        (f"{here}/submit", pages.submit, "POST"),
        (f"{here}/team", pages.team, "GET"),
        (f"{here}/team/picks", pages.pick, "POST"),
        (f"{here}/team/submissions.csv", pages.table, "GET"),
        ("/static/{name}", pages.static, "GET"),
    )
    for path, endpoint, method in routes:
        app.router.routes.append(
            Route(path, pages.guarded(endpoint), methods=[method], include_in_schema=False)
        )


class _Pages:
    """The endpoints of the pages, with the templates and sessions that they share."""

    def __init__(self, boards: Boards) -> None:
        self._boards = boards
        self.sessions = Sessions(boards)
        self.rendering = Rendering(boards, self.sessions)
        self._page = self.rendering.page

    def guarded(self, endpoint: _Endpoint) -> _Endpoint:
        """Return an endpoint that shows a refused request as a page."""

        async def answered(request: Request) -> Response:
            try:
                return await endpoint(request)
            except Problem as problem:
                refused = problem
            if refused.code == GONE:
                return Response(status_code=refused.status)  # the client has disconnected
            return await self._refusal(request, refused)

        return answered

    # ---- pages for everyone

    async def home(self, request: Request) -> Response:
        """Show the board of the server's own competition or of the only one, or else the list of all competitions."""
        slug = await self._boards.run(self._boards.default)
        if slug is None:
            return await self.all(request)
        return RedirectResponse(place_of(request, slug, "board"), 303)

    async def all(self, request: Request) -> Response:
        """Show the list of all competitions."""

        def listed() -> list[dict[str, Any]]:
            found = {slug: self._boards.competition(slug) for slug in self._boards.slugs()}
            return [
                {
                    "href": place_of(request, slug, "board"),
                    "title": one.rules.title,
                    "metric": metric_text(one).label,
                    "teams": len(one.teams()),
                    "status": one.status(),
                }
                for slug, one in found.items()
            ]

        return await self._page(request, "all.html", None, competitions=await self._boards.run(listed))

    async def board(self, request: Request) -> Response:
        """Show a competition's board, with its state and the form for submissions."""
        visit = await self.visit(request)

        def found() -> dict[str, Any]:
            shown = board_content(self._boards, visit.competition, visit.status)
            asked = {name: request.query_params.get(name, "") for name in ("q", "page")}
            part = part_of(shown["rows"], shown["scale"], search=asked["q"], page=asked["page"])
            summary = summary_of(visit.competition.rules.description)
            return {"part": part, "summary": summary, **_form(visit, shown), **shown}

        return await self._page(request, "board.html", visit, page="board", **await self._boards.run(found))

    async def rules(self, request: Request) -> Response:
        """Show a competition's rules, and explain how the guard works."""
        visit = await self.visit(request)

        def found() -> dict[str, Any]:
            competition = visit.competition
            rules, expected = competition.rules, competition.expected
            return {
                "expected": expected,
                "plan": competition.plan,
                "also": also_texts(rules),
                "compared": competition.compares_neighbours,
                "description": prose_of(rules.description),
                "files": competition.public_files(),
                "predicted": PREDICTED[expected.response],
                "limits": limits_of(rules, visit.status),
                "changes": changes_of(competition.changes()),
                "megabytes": f"{expected.max_bytes / (1 << 20):.0f} MiB",
            }

        return await self._page(request, "rules.html", visit, page="rules", **await self._boards.run(found))

    async def static(self, request: Request) -> Response:
        """Send a style sheet, a script or an icon."""
        name = request.path_params["name"]
        if name not in self.rendering.files:
            raise Problem(404, "not_found", "There is nothing at this address.")
        media = _MEDIA.get(name[name.rfind(".") :], "application/octet-stream")
        return Response(self.rendering.files[name], media_type=media, headers={"Cache-Control": _A_YEAR})

    # ---- sessions

    async def login_form(self, request: Request) -> Response:
        """Show the form that asks for a team's token."""
        return await self._page(request, "login.html", await self.visit(request), page="login")

    async def login(self, request: Request) -> Response:
        """Begin a session with a team's token."""
        visit = await self._checked(request)
        upload = await intake_of(request).form(request, intake_of(request).stranger())
        token = upload.fields.get("token", "").strip()
        if await self._boards.run(visit.competition.authenticate, token) is None:
            return await self._page(
                request,
                "login.html",
                visit,
                status_code=401,
                page="login",
                problem_title="No team has this token",
                problems=["Check that you copied all of it."],
            )
        response = RedirectResponse(place_of(request, visit.competition.slug, "board"), 303)
        await self.sessions.sign_in(request, response, visit.competition, visit.competition.slug, token)
        return response

    async def logout(self, request: Request) -> Response:
        """End a team's session."""
        competition = (await self._checked(request)).competition
        response = RedirectResponse(place_of(request, competition.slug, "board"), 303)
        await self.sessions.sign_out(request, response, competition, competition.slug)
        return response

    async def join_form(self, request: Request) -> Response:
        """Show the form for signing up. The address of the page may contain an invitation code."""
        code = request.query_params.get("code", "")[:_MOST_CODE]
        return await self._page(request, "join.html", await self.visit(request), code=code, token="")

    async def join(self, request: Request) -> Response:
        """Make the team that signs up, log it in, and show its token, which is shown only once."""
        visit, intake = await self._checked(request), intake_of(request)
        fields = (await intake.form(request, intake.newcomer(request, "sign-up"))).fields
        name, code = fields.get("name", ""), fields.get("code", "")
        token = await self._boards.run(visit.competition.sign_up, name, code)
        response = await self._page(request, "join.html", visit, code="", token=token, status_code=201)
        await self.sessions.sign_in(request, response, visit.competition, visit.competition.slug, token)
        return response

    # ---- teams

    async def submit(self, request: Request) -> Response:
        """Score an uploaded file of predictions."""
        visit, team = await self._entered(request)
        submission = await scored(request, visit.competition, team)
        if _wants_part(request):
            return await self._page(request, "result.html", visit, submission=submission)
        shown = f"?done={submission.id}{'&again=1' * submission.replayed}#result"
        return RedirectResponse(place_of(request, visit.competition.slug, "team") + shown, 303)

    async def team(self, request: Request) -> Response:
        """Show a team's own submissions."""
        visit = await self.visit(request)
        if visit.team is None:
            return await self.login_form(request)
        found = await self._boards.run(self._own, request, visit, visit.team)
        return await self._page(request, "team.html", visit, page="team", **found)

    async def pick(self, request: Request) -> Response:
        """Enter the submissions whose boxes are checked for the final standings."""
        visit, team = await self._entered(request)
        fields = (await intake_of(request).form(request, intake_of(request).team(team))).fields
        stated = [name.removeprefix("pick-") for name in fields if name.startswith("pick-")]
        picked = [number for number in map(whole_of, stated) if number is not None]
        await self._boards.run(visit.competition.pick, team.id, picked)
        return RedirectResponse(place_of(request, visit.competition.slug, "team"), 303)

    async def table(self, request: Request) -> Response:
        """Send a team's own submissions as CSV."""
        visit = await self.visit(request)
        if visit.team is None:
            raise Problem(401, "unauthorized", "Log in first.")
        content = await self._boards.run(submissions_csv, visit.competition, visit.team.id)
        return download(content, f"{visit.competition.slug}-submissions")

    # ---- visitors

    async def visit(self, request: Request) -> Visit:
        """Return the competition that a request is about, and the team that is logged in."""

        def found() -> Visit:
            competition = self._boards.competition(request.path_params["slug"])
            return Visit(competition, competition.status(), self.sessions.team(request, competition))

        return await self._boards.run(found)

    async def _checked(self, request: Request) -> Visit:
        """Check that this server sent the form to this browser, and return the visit. The form is not read yet."""
        visit = await self.visit(request)
        self.sessions.check_form(request, visit.competition.slug, visit.competition.form_secret)
        return visit

    async def _entered(self, request: Request) -> tuple[Visit, Team]:
        """Check the form, and that a team is logged in. Return the visit and the team. The form is not read yet."""
        visit = await self._checked(request)
        if visit.team is None:
            raise Problem(401, "unauthorized", "Log in first; nothing was asked.")
        return visit, visit.team

    # ---- inside

    def _own(self, request: Request, visit: Visit, team: Team) -> dict[str, Any]:
        done, before = (request.query_params.get(name, "") for name in ("done", "before"))
        first = whole_of(before)
        own = visit.competition.submissions(
            team.id, before=first, limit=_MOST_SUBMISSIONS + 1, newest_first=True
        )
        shown = own[:_MOST_SUBMISSIONS]
        submission = next((one for one in shown if str(one.id) == done), None)
        if submission is not None and request.query_params.get("again"):
            submission = submission._replace(replayed=True)
        board = board_content(self._boards, visit.competition, visit.status)
        return {
            "submissions": shown,
            "older": shown[-1].id if len(own) > len(shown) else None,
            "newest": first is None,
            "may_pick": visit.status.has_fresh_labels and not visit.status.final,
            **_form(visit, board, submission),
        }

    async def _refusal(self, request: Request, problem: Problem) -> Response:
        """Return a page that shows a problem, or only that part of the page if a script asked for it."""
        problems = problem.details.get("problems")
        said = problems if isinstance(problems, list) else [problem.message]
        try:
            visit = None if problem.code == "no_competition" else await self.visit(request)
        except (Problem, KeyError):  # then the page shows no competition
            visit = None
        response = await self._page(
            request,
            "result.html" if _wants_part(request) else "message.html",
            visit,
            status_code=problem.status,
            problem_title=_TITLES.get(problem.code, "That did not work"),
            problems=[sentence(one) for one in said],
            free=problem.code == "bad_submission",
        )
        response.headers.update(problem.headers)
        return response


def _form(visit: Visit, shown: Mapping[str, Any], submission: Submission | None = None) -> dict[str, Any]:
    """Return the values that the template of the submission form needs."""
    competition, status, team = visit
    columns = competition.expected.header()
    own = (row.one for row in shown["rows"] if team is not None and row.one.team_id == team.id)
    return {
        "expected": competition.expected,
        "plan": competition.plan,
        "shown_columns": columns[:_SHOWN_COLUMNS],
        "more_columns": len(columns) > _SHOWN_COLUMNS,
        "closed_reason": sentence(status.closed_reason),
        "own_limits": [] if team is None else own_limits_of(competition.rules, next(own, None)),
        "submission": submission,
    }


def _wants_part(request: Request) -> bool:
    return request.headers.get("x-part") == "result"
