"""Pages of organisers: what they may change while a competition runs, behind the administrator's token."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from starlette.responses import RedirectResponse, Response

from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.pages.changes import RULES
from reusable_holdout_leaderboard.pages.rendering import Rendering, Visit, place_of
from reusable_holdout_leaderboard.pages.times import moment_of_form, shown_in_form
from reusable_holdout_leaderboard.rules import Rules
from reusable_holdout_leaderboard.store.names import key_of
from reusable_holdout_leaderboard.web.exports_api import submissions_table, table_of
from reusable_holdout_leaderboard.web.requests import intake_of, whole_of
from reusable_holdout_leaderboard.web.security import Problem
from reusable_holdout_leaderboard.web.services import Boards

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["OrganisersPages"]

_SCOPE = ".organiser"  # of session and forms: no competition has this name


class OrganisersPages:
    """Endpoints of organisers.

    Parameters
    ----------
    boards : Boards
    rendering : Rendering
    visit : callable
        Says which competition a request is about.
    """

    def __init__(
        self,
        boards: Boards,
        rendering: Rendering,
        visit: Callable[[Request], Awaitable[Visit]],
    ) -> None:
        self._boards, self._rendering, self._visit = boards, rendering, visit

    @property
    def routes(self) -> tuple[tuple[str, Callable[[Request], Awaitable[Response]], str], ...]:
        """Addresses, endpoints and methods."""
        return (
            ("/c/{slug}/organise", self.page, "GET"),
            ("/c/{slug}/organise/login", self.login, "POST"),
            ("/c/{slug}/organise/logout", self.logout, "POST"),
            ("/c/{slug}/organise/files", self.attach, "POST"),
            ("/c/{slug}/organise/files/remove", self.detach, "POST"),
            ("/c/{slug}/organise/invitation", self.invite, "POST"),
            ("/c/{slug}/organise/teams/rename", self.rename, "POST"),
            ("/c/{slug}/organise/teams/merge", self.merge, "POST"),
            ("/c/{slug}/organise/teams/disqualify", self.disqualify, "POST"),
            ("/c/{slug}/organise/submissions.csv", self.table, "GET"),
            ("/c/{slug}/organise/rules", self.change_rules, "POST"),
        )

    async def page(self, request: Request) -> Response:
        """What can be changed; a form that asks for the token where it was not shown."""
        visit = await self._visit(request)
        if not await self._is_organiser(request, visit):
            return await self._answer(request, "organiser-login.html", visit)
        return await self._organising(request, visit)

    async def login(self, request: Request) -> Response:
        """Begin a session of an organiser that shows the administrator's token."""
        visit = await self._checked(request)
        upload = await intake_of(request).form(request, intake_of(request).stranger())
        token = upload.fields.get("token", "").strip()
        if not self._boards.is_admin(token):
            said = {
                "problem_title": "Another token is needed",
                "problems": ["The administrator's lies in the file that 'serve' names when it starts."],
            }
            return await self._answer(request, "organiser-login.html", visit, status_code=401, **said)
        response = self._back(request, visit)
        await self._boards.sign_in(request, response, visit.competition, _SCOPE, token)
        return response

    async def logout(self, request: Request) -> Response:
        """End a session."""
        visit = await self._checked(request)
        response = self._back(request, visit)
        await self._boards.sign_out(request, response, visit.competition, _SCOPE)
        return response

    async def change_rules(self, request: Request) -> Response:
        """Change the rules that the form has others of than it was filled with."""
        visit = await self._entered(request)
        competition, fields = visit.competition, await self._fields(request)
        rules = await self._boards.run(lambda: competition.rules)
        if fields.get("shown") != _digest(rules):
            raise Problem(409, "closed", "The rules have changed since this page was loaded; load it again.")
        shown = _fields_of(rules)
        given = {name: _plain(fields[name]) for name in shown if name in fields}
        changes = {name: _value(name, text) for name, text in given.items() if text != _plain(shown[name])}
        await self._boards.run(competition.change_rules, changes)
        return self._back(request, visit)

    async def invite(self, request: Request) -> Response:
        """Make an invitation code, and show it this once."""
        visit = await self._entered(request)
        code = await self._boards.run(visit.competition.invite)
        return await self._organising(request, visit, code=code)

    async def rename(self, request: Request) -> Response:
        """Give a team another name."""
        visit = await self._entered(request)
        competition, fields = visit.competition, await self._fields(request)
        team_id = await self._boards.run(_team_of, competition, fields.get("team", ""))
        await self._boards.run(competition.rename_team, team_id, fields.get("name", ""))
        return self._back(request, visit, "#teams")

    async def merge(self, request: Request) -> Response:
        """Let a team have what another has sent and paid for, if its box is checked: there is no way back."""
        visit = await self._entered(request)
        competition, fields = visit.competition, await self._fields(request)
        if fields.get("sure") != "yes":
            raise Problem(422, "bad_input", "A merger cannot be undone: check the box; nothing was changed.")
        team_id, other_id = [
            await self._boards.run(_team_of, competition, fields.get(name, "")) for name in ("team", "other")
        ]
        await self._boards.run(competition.merge_teams, team_id, other_id)
        return self._back(request, visit, "#teams")

    async def disqualify(self, request: Request) -> Response:
        """Take a team off board and final, or put it back."""
        visit = await self._entered(request)
        competition, fields = visit.competition, await self._fields(request)
        team_id = await self._boards.run(_team_of, competition, fields.get("team", ""))
        await self._boards.run(competition.disqualify, team_id, fields.get("on") != "no")
        return self._back(request, visit, "#teams")

    async def attach(self, request: Request) -> Response:
        """Give everyone a file."""
        visit, intake = await self._entered(request), intake_of(request)
        async with intake.large(intake.organiser()) as sender:
            upload = await intake.form(request, sender, files=1)
            await self._boards.run(visit.competition.attach, upload.filename, upload.file())
        return self._back(request, visit)

    async def detach(self, request: Request) -> Response:
        """Take a file away."""
        visit, fields = await self._entered(request), await self._fields(request)
        await self._boards.run(visit.competition.detach, fields.get("name", ""))
        return self._back(request, visit)

    async def table(self, request: Request) -> Response:
        """All submissions as CSV, also while the competition is blind."""
        visit = await self._visit(request)
        if not await self._is_organiser(request, visit):
            raise Problem(401, "unauthorized", "Log in as organiser first.")
        content = await self._boards.run(submissions_table, visit.competition, None)
        return table_of(content, f"{visit.competition.slug}-all-submissions")

    # ---- inside

    async def _organising(self, request: Request, visit: Visit, *, code: str = "") -> Response:
        competition = visit.competition

        def found() -> dict[str, Any]:
            rules = competition.rules
            return {
                "shown": _digest(rules),
                "fields": _fields_of(rules),
                "names": RULES,
                "code": code,
                "files": competition.public_files(),
                "disqualified": [one.name for one in competition.teams() if one.disqualified],
            }

        return await self._answer(request, "organise.html", visit, **await self._boards.run(found))

    async def _checked(self, request: Request) -> Visit:
        """Return who visits, if this browser was sent the form; of the form nothing is read yet."""
        visit = await self._visit(request)
        self._boards.sessions.check_form(request, _SCOPE, visit.competition.form_secret)
        return visit

    async def _entered(self, request: Request) -> Visit:
        """Return who visits, if it is an organiser who was sent the form; of the form nothing is read yet."""
        visit = await self._checked(request)
        if not await self._is_organiser(request, visit):
            raise Problem(401, "unauthorized", "Log in as organiser first; nothing was changed.")
        return visit

    async def _fields(self, request: Request) -> dict[str, str]:
        """Return the fields of an organiser's form."""
        return (await intake_of(request).form(request, intake_of(request).organiser())).fields

    async def _is_organiser(self, request: Request, visit: Visit) -> bool:
        return await self._boards.run(self._boards.is_organiser, request, visit.competition, _SCOPE)

    async def _answer(self, request: Request, template: str, visit: Visit, **more: Any) -> Response:
        return await self._boards.run(
            self._rendering.page, request, template, visit, scope=_SCOPE, page="organise", **more
        )

    def _back(self, request: Request, visit: Visit, part: str = "") -> Response:
        slug = visit.competition.slug
        return RedirectResponse(place_of(request, slug, "organise") + part, 303)


def _team_of(competition: Competition, name: str) -> int:
    """Number of the team of a name that looks like this."""
    sought = key_of(name)
    for team in competition.teams():
        if key_of(team.name) == sought:
            return team.id
    raise Problem(422, "bad_input", "There must be a team of this name; there is none; nothing was changed.")


def _digest(rules: Rules) -> str:
    return hashlib.sha256(rules.to_json().encode()).hexdigest()


def _fields_of(rules: Rules) -> dict[str, str]:
    """What the form's fields are filled with."""
    limits = ("submissions_per_day", "submissions_per_team", "charges_per_team", "most_teams", "final_picks")
    return {
        "title": rules.title,
        "description": rules.description,
        "opens_at": shown_in_form(rules.opens_at),
        "closes_at": shown_in_form(rules.closes_at),
        "sign_up": rules.sign_up,
        "also": ", ".join(rules.also),
        **{name: "" if getattr(rules, name) is None else str(getattr(rules, name)) for name in limits},
    }


def _plain(text: str) -> str:
    """Text without what a form does to its lines."""
    return text.replace("\r\n", "\n").strip()


def _value(name: str, text: str) -> Any:
    if name in {"title", "description", "sign_up"}:
        return text
    if name.endswith("_at"):
        return moment_of_form(text)
    if name == "also":
        return text.replace(",", " ").split()
    number = whole_of(text)
    return (text or None) if number is None else number
