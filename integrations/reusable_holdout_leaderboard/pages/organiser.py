"""The organisers' page, with a form for every action. It needs the administrator's token."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from reusable_holdout_leaderboard.actions import ACTIONS, Action, File
from reusable_holdout_leaderboard.pages.rendering import Rendering, Visit, place_of
from reusable_holdout_leaderboard.pages.sessions import ORGANISER, Sessions
from reusable_holdout_leaderboard.pages.words import RULES
from reusable_holdout_leaderboard.rules import Rules
from reusable_holdout_leaderboard.store.records import Invitation, Token
from reusable_holdout_leaderboard.web.admin import given_by_form
from reusable_holdout_leaderboard.web.boards import Boards
from reusable_holdout_leaderboard.web.intake import Upload, intake_of, whole_of
from reusable_holdout_leaderboard.web.problems import Problem
from reusable_holdout_leaderboard.web.tables import download, submissions_csv

__all__ = ["OrganisersPages"]

_FORMS = {name: one for name, one in ACTIONS.items() if name not in {"status", "change"}}
_SHOWN_ONCE = (Token, Invitation)
_TEXTS = {"title", "description", "sign_up"}


class OrganisersPages:
    """The endpoints of the organisers' page.

    Parameters
    ----------
    boards : Boards
    sessions : Sessions
    rendering : Rendering
    visit : callable
        Function of a request, which returns the request's visit: the competition, its state and the team.
    """

    def __init__(
        self,
        boards: Boards,
        sessions: Sessions,
        rendering: Rendering,
        visit: Callable[[Request], Awaitable[Visit]],
    ) -> None:
        self._boards, self._sessions, self._rendering, self._visit = boards, sessions, rendering, visit

    @property
    def routes(self) -> tuple[tuple[str, Callable[[Request], Awaitable[Response]], str], ...]:
        """Address, endpoint and HTTP method of each route."""
        here = "/c/{slug}/organise"
        return (
            (here, self.page, "GET"),
            (f"{here}/login", self.login, "POST"),
            (f"{here}/logout", self.logout, "POST"),
            (f"{here}/change", self.change, "POST"),
            (f"{here}/submissions.csv", self.table, "GET"),
            (f"{here}/{{action}}", self.act, "POST"),
        )

    async def page(self, request: Request) -> Response:
        """Show the forms of all actions, or the form that asks for the administrator's token."""
        visit = await self._visit(request)
        if not await self._is_organiser(request, visit):
            return await self._answer(request, "organiser-login.html", visit)
        return await self._forms(request, visit)

    async def login(self, request: Request) -> Response:
        """Begin a session with the administrator's token."""
        visit = await self._checked(request)
        upload = await intake_of(request).form(request, intake_of(request).stranger())
        token = upload.fields.get("token", "").strip()
        if not self._boards.is_admin(token):
            return await self._answer(
                request,
                "organiser-login.html",
                visit,
                status_code=401,
                problem_title="Another token is needed",
                problems=[
                    "The administrator's token is in the file that 'board serve' names when it starts."
                ],
            )
        response = self._back(request, visit)
        await self._sessions.sign_in(request, response, visit.competition, ORGANISER, token)
        return response

    async def logout(self, request: Request) -> Response:
        """End an organiser's session."""
        visit = await self._checked(request)
        response = self._back(request, visit)
        await self._sessions.sign_out(request, response, visit.competition, ORGANISER)
        return response

    async def act(self, request: Request) -> Response:
        """Carry out one action of :data:`ACTIONS`. If it cannot be undone, its confirmation box must be checked."""
        action = _FORMS.get(request.path_params["action"])
        if action is None:
            raise Problem(404, "not_found", "There is nothing at this address.")
        visit, intake = await self._entered(request), intake_of(request)
        if any(one.kind is File for one in action.fields):
            async with intake.large(intake.organiser()) as sender:
                upload = await intake.form(request, sender, files=1)
                return await self._done(request, visit, action, upload)
        upload = await intake.form(request, intake.organiser())
        return await self._done(request, visit, action, upload)

    async def change(self, request: Request) -> Response:
        """Change the rules whose fields were edited in the form."""
        visit = await self._entered(request)
        fields = (await intake_of(request).form(request, intake_of(request).organiser())).fields
        rules = await self._boards.run(lambda: visit.competition.rules)
        if fields.get("shown") != _digest(rules):
            raise Problem(
                409,
                "closed",
                "The rules have changed since this page was loaded; nothing was changed; load it again.",
            )
        shown = _fields_of(rules)
        given = {name: _plain(fields[name]) for name in shown if name in fields}
        changes = {name: _value(name, text) for name, text in given.items() if text != _plain(shown[name])}
        await self._boards.run(visit.competition.change_rules, changes)
        return self._back(request, visit)

    async def table(self, request: Request) -> Response:
        """Send all submissions as CSV, with the scores that a blind competition hides."""
        visit = await self._visit(request)
        if not await self._is_organiser(request, visit):
            raise Problem(401, "unauthorized", "Log in as organiser first.")
        content = await self._boards.run(submissions_csv, visit.competition, None)
        return download(content, f"{visit.competition.slug}-all-submissions")

    # ---- inside

    async def _done(self, request: Request, visit: Visit, action: Action, upload: Upload) -> Response:
        if action.final and upload.fields.get("sure") != "yes":
            raise Problem(422, "bad_input", "This cannot be undone: check its box. Nothing was changed.")
        given = given_by_form(action, upload)
        answer = await self._boards.run(action.run, visit.competition, **given)
        if isinstance(answer, _SHOWN_ONCE):
            return await self._forms(request, visit, told=answer)
        return self._back(request, visit, f"#{action.name}")

    async def _forms(
        self, request: Request, visit: Visit, *, told: Token | Invitation | None = None
    ) -> Response:
        competition = visit.competition

        def found() -> dict[str, Any]:
            rules = competition.rules
            return {
                "shown": _digest(rules),
                "fields": _fields_of(rules),
                "names": RULES,
                "forms": [(one, _inputs(one)) for one in _FORMS.values()],
                "told": None if told is None else told._asdict(),
                "files": competition.public_files(),
                "disqualified": [one.name for one in competition.teams() if one.disqualified],
            }

        return await self._answer(request, "organise.html", visit, **await self._boards.run(found))

    async def _checked(self, request: Request) -> Visit:
        """Check that this server sent the form to this browser, and return the visit. The form is not read yet."""
        visit = await self._visit(request)
        self._sessions.check_form(request, ORGANISER, visit.competition.form_secret)
        return visit

    async def _entered(self, request: Request) -> Visit:
        """Check the form, and that an organiser is logged in. Return the visit. The form is not read yet."""
        visit = await self._checked(request)
        if not await self._is_organiser(request, visit):
            raise Problem(401, "unauthorized", "Log in as organiser first; nothing was changed.")
        return visit

    async def _is_organiser(self, request: Request, visit: Visit) -> bool:
        return await self._boards.run(self._sessions.is_organiser, request, visit.competition)

    async def _answer(self, request: Request, template: str, visit: Visit, **more: Any) -> Response:
        return await self._rendering.page(request, template, visit, scope=ORGANISER, page="organise", **more)

    def _back(self, request: Request, visit: Visit, part: str = "") -> Response:
        return RedirectResponse(place_of(request, visit.competition.slug, "organise") + part, 303)


def _inputs(action: Action) -> list[tuple[str, str, str, bool]]:
    """Return each field of an action's form: its name, its label, its HTML type, and True if it must be filled in."""
    kinds = {File: "file", bool: "checkbox", int: "number"}
    return [(one.name, one.about, kinds.get(one.kind, "text"), one.default is ...) for one in action.fields]


# ---- the form for changing rules


def _digest(rules: Rules) -> str:
    return hashlib.sha256(rules.to_json().encode()).hexdigest()


def _fields_of(rules: Rules) -> dict[str, str]:
    """Return the current values, as text, of the rules that can be changed. The form is filled with them."""
    return {name: _text(getattr(rules, name)) for name in RULES}


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M}"
    if isinstance(value, tuple):
        return ", ".join(value)
    return "" if value is None else str(value)


def _plain(text: str) -> str:
    """Return text with plain line ends and without space around it, because a browser's form changes both."""
    return text.replace("\r\n", "\n").strip()


def _value(name: str, text: str) -> Any:
    """Return the value of a rule from the text of its field. An unreadable date stays text; it is refused later."""
    if name in _TEXTS:
        return text
    if name == "also":
        return text.replace(",", " ").split()
    if name.endswith("_at") and text:
        try:
            return datetime.fromisoformat(text).replace(tzinfo=UTC)
        except ValueError:
            return text
    number = whole_of(text)
    return (text or None) if number is None else number
