"""Pages of teams: how they sign up, what they have sent, and what they pick for the final."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from starlette.responses import RedirectResponse, Response

from reusable_holdout_leaderboard.pages.content import Contents
from reusable_holdout_leaderboard.pages.rendering import Rendering, Visit, place_of
from reusable_holdout_leaderboard.store.records import Submission, Team
from reusable_holdout_leaderboard.web.exports_api import submissions_table, table_of
from reusable_holdout_leaderboard.web.requests import intake_of, whole_of
from reusable_holdout_leaderboard.web.security import Problem
from reusable_holdout_leaderboard.web.services import Boards

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["Shared", "TeamsPages"]

_MOST_CODE = 200
_MOST_SUBMISSIONS = 200


class Shared(Protocol):
    """What the pages of a server have in common."""

    rendering: Rendering
    contents: Contents

    async def visit(self, request: Request) -> Visit:
        """Competition that a request is about, and who looks at it."""
        ...

    async def checked(self, request: Request) -> Visit:
        """Return who visits, if this browser was sent the form; of the form nothing is read yet."""
        ...

    async def entered(self, request: Request) -> tuple[Visit, Team]:
        """Return who visits, if it is a team that was sent the form; of the form nothing is read yet."""
        ...

    async def login_form(self, request: Request) -> Response:
        """Form that asks for a token."""
        ...

    def submitting(
        self, visit: Visit, shown: Mapping[str, Any], submission: Submission | None = None
    ) -> dict[str, Any]:
        """What the form of a submission needs."""
        ...


class TeamsPages:
    """Endpoints of teams.

    Parameters
    ----------
    boards : Boards
    shared : Shared
    """

    def __init__(self, boards: Boards, shared: Shared) -> None:
        self._boards, self._shared = boards, shared

    @property
    def routes(self) -> tuple[tuple[str, Callable[[Request], Awaitable[Response]], str], ...]:
        """Addresses, endpoints and methods."""
        return (
            ("/c/{slug}/join", self.join_form, "GET"),
            ("/c/{slug}/join", self.join, "POST"),
            ("/c/{slug}/team", self.team, "GET"),
            ("/c/{slug}/team/picks", self.pick, "POST"),
            ("/c/{slug}/team/submissions.csv", self.table, "GET"),
        )

    async def table(self, request: Request) -> Response:
        """A team's own submissions as CSV."""
        visit = await self._shared.visit(request)
        if visit.team is None:
            raise Problem(401, "unauthorized", "Log in first.")
        content = await self._boards.run(submissions_table, visit.competition, visit.team.id)
        return table_of(content, f"{visit.competition.slug}-submissions")

    async def team(self, request: Request) -> Response:
        """A team's own submissions."""
        visit = await self._shared.visit(request)
        if visit.team is None:
            return await self._shared.login_form(request)
        return await self._boards.run(self._team, request, visit)

    async def join_form(self, request: Request) -> Response:
        """Form by which a team signs up; its code may stand in the address."""
        visit, code = await self._shared.visit(request), request.query_params.get("code", "")
        return await self._boards.run(
            self._shared.rendering.page, request, "join.html", visit, code=code[:_MOST_CODE], token=""
        )

    async def join(self, request: Request) -> Response:
        """Make a team that signs up, log it in, and show its token this once."""
        visit = await self._shared.checked(request)
        slug, intake = visit.competition.slug, intake_of(request)
        fields = (await intake.form(request, intake.newcomer(request, "sign-up"))).fields
        name, code = fields.get("name", ""), fields.get("code", "")
        token = await self._boards.run(visit.competition.sign_up, name, code)
        response = await self._boards.run(
            self._shared.rendering.page, request, "join.html", visit, code="", token=token, status_code=201
        )
        await self._boards.sign_in(request, response, visit.competition, slug, token)
        return response

    async def pick(self, request: Request) -> Response:
        """Enter the submissions whose boxes are checked for the final."""
        visit, team = await self._shared.entered(request)
        competition, intake = visit.competition, intake_of(request)
        fields = (await intake.form(request, intake.team(team))).fields
        stated = [name.removeprefix("pick-") for name in fields if name.startswith("pick-")]
        picked = [number for number in map(whole_of, stated) if number is not None]
        await self._boards.run(competition.pick, team.id, picked)
        return RedirectResponse(place_of(request, competition.slug, "team"), 303)

    def _team(self, request: Request, visit: Visit) -> Response:
        competition, status, team = visit
        assert team is not None  # noqa: S101 - asked before
        shown = self._shared.contents.of_board(competition, status)
        done = request.query_params.get("done", "")
        before = whole_of(request.query_params.get("before", ""))
        own = competition.submissions(team.id, before=before, limit=_MOST_SUBMISSIONS + 1, newest_first=True)
        older = own[_MOST_SUBMISSIONS - 1].id if len(own) > _MOST_SUBMISSIONS else None
        own = own[:_MOST_SUBMISSIONS]
        submission = next((one for one in own if str(one.id) == done), None)
        if submission is not None and request.query_params.get("again"):
            submission = submission._replace(replayed=True)
        return self._shared.rendering.page(
            request,
            "team.html",
            visit,
            page="team",
            submissions=own,
            older=older,
            newest=before is None,
            may_pick=status.has_fresh_labels and not status.final,
            **self._shared.submitting(visit, shown, submission),
        )
