"""What organisers do: in the folder of a competition, or over HTTP with the administrator's token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from reusable_holdout.errors import InputError
from reusable_holdout_leaderboard.client.connection import Connection
from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.web.wire import as_rows
from reusable_holdout_leaderboard.web.witnesses import make_name

__all__ = ["InFolder", "OverHttp"]


class InFolder:
    """Administration of a competition whose folder is here, whether or not it is served.

    Parameters
    ----------
    competition : Competition
    """

    def __init__(self, competition: Competition) -> None:
        self._competition = competition

    def status(self) -> dict[str, Any]:
        """State, board and teams, also while the competition is blind."""
        competition = self._competition
        return {
            "status": competition.status(reveal=True)._asdict(),
            "board": as_rows(competition.board(reveal=True)),
            "teams": as_rows(competition.teams()),
        }

    def add_team(self, name: str) -> dict[str, Any]:
        """Add a team and get its token."""
        token = self._competition.add_team(name)
        team = self._competition.authenticate(token)
        return {"team": name if team is None else team.name, "token": token}

    def attach(self, path: Path) -> dict[str, Any]:
        """Give everyone a file."""
        return self._competition.attach(path.name, _read(path))._asdict()

    def detach(self, name: str) -> list[dict[str, Any]]:
        """Take a file away; those that are left."""
        self._competition.detach(name)
        return as_rows(self._competition.public_files())

    def witness(self, name: str) -> dict[str, Any]:
        """Make a name at the server, by which it is the witness of a ledger elsewhere."""
        make_name(self._competition.home, name)
        return {"name": name}

    def invite(self) -> dict[str, Any]:
        """Make an invitation code; the one before is void."""
        return {"code": self._competition.invite()}

    def renew_token(self, name: str) -> dict[str, Any]:
        """Give a team another token; the old one is void."""
        team_id = _number(as_rows(self._competition.teams()), name)
        return {"team": name, "token": self._competition.renew_token(team_id)}

    def rename(self, name: str, other: str) -> list[dict[str, Any]]:
        """Give a team another name; all teams."""
        self._competition.rename_team(_number(as_rows(self._competition.teams()), name), other)
        return as_rows(self._competition.teams())

    def disqualify(self, name: str, on: bool) -> list[dict[str, Any]]:
        """Take a team off board and final, or put it back; all teams."""
        self._competition.disqualify(_number(as_rows(self._competition.teams()), name), on)
        return as_rows(self._competition.teams())

    def merge(self, name: str, other: str) -> list[dict[str, Any]]:
        """Let a team have what another has sent and paid for; the teams that are left."""
        teams = as_rows(self._competition.teams())
        self._competition.merge_teams(_number(teams, name), _number(teams, other))
        return as_rows(self._competition.teams())

    def change(self, changes: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Change rules that the guard does not rest on."""
        return as_rows(self._competition.change_rules(changes))

    def freeze(self, on: bool) -> dict[str, Any]:
        """Take no new submissions, or take them again."""
        self._competition.freeze(on)
        return self._state()

    def unblind(self) -> dict[str, Any]:
        """Show all scores."""
        self._competition.unblind()
        return self._state()

    def rotate(self, labels: Path, *, early: bool, queries: int | None) -> dict[str, Any]:
        """Go on with another label set."""
        self._competition.rotate(labels, early=early, queries=queries)
        return self._state()

    def final(self) -> list[dict[str, Any]]:
        """Final standings."""
        return as_rows(self._competition.final_standings())

    def close(self) -> None:
        """Close the competition."""
        self._competition.close()

    def _state(self) -> dict[str, Any]:
        return self._competition.status(reveal=True)._asdict()


class OverHttp:
    """Administration of a competition that is served; the same as :class:`InFolder`.

    Parameters
    ----------
    connection : Connection
        With the administrator's token.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def status(self) -> dict[str, Any]:
        """State, board and teams, also while the competition is blind."""
        found: dict[str, Any] = self._connection.get("admin/status")
        return found

    def add_team(self, name: str) -> dict[str, Any]:
        """Add a team and get its token."""
        return self._post("teams", json={"name": name})

    def attach(self, path: Path) -> dict[str, Any]:
        """Give everyone a file."""
        return self._post("files", files={"file": (path.name, _read(path))})

    def detach(self, name: str) -> list[dict[str, Any]]:
        """Take a file away; those that are left."""
        found: list[dict[str, Any]] = self._connection.post(f"admin/files/{quote(name, safe='')}/remove")
        return found

    def witness(self, name: str) -> dict[str, Any]:
        """Make a name at the server, by which it is the witness of a ledger elsewhere."""
        return self._post(f"witness/{quote(name, safe='')}")

    def invite(self) -> dict[str, Any]:
        """Make an invitation code; the one before is void."""
        return self._post("invitation")

    def renew_token(self, name: str) -> dict[str, Any]:
        """Give a team another token; the old one is void."""
        return self._post(f"teams/{_number(self.status()['teams'], name)}/token")

    def rename(self, name: str, other: str) -> list[dict[str, Any]]:
        """Give a team another name; all teams."""
        return self._of_team(name, "name", {"name": other})

    def disqualify(self, name: str, on: bool) -> list[dict[str, Any]]:
        """Take a team off board and final, or put it back; all teams."""
        return self._of_team(name, "disqualify", {"on": on})

    def merge(self, name: str, other: str) -> list[dict[str, Any]]:
        """Let a team have what another has sent and paid for; the teams that are left."""
        other_id = _number(self.status()["teams"], other)
        return self._of_team(name, "merge", {"other": other_id})

    def change(self, changes: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Change rules that the guard does not rest on."""
        found: list[dict[str, Any]] = self._connection.post("admin/rules", json={"changes": dict(changes)})
        return found

    def freeze(self, on: bool) -> dict[str, Any]:
        """Take no new submissions, or take them again."""
        return self._post("freeze", json={"on": on})

    def unblind(self) -> dict[str, Any]:
        """Show all scores."""
        return self._post("unblind")

    def rotate(self, labels: Path, *, early: bool, queries: int | None) -> dict[str, Any]:
        """Go on with another label set."""
        stated = {} if queries is None else {"queries": str(queries)}
        data = {"early": str(early).lower(), **stated}
        return self._post("rotate", files={"file": (labels.name, _read(labels))}, data=data)

    def final(self) -> list[dict[str, Any]]:
        """Final standings."""
        found: list[dict[str, Any]] = self._connection.post("admin/final")
        return found

    def submit(self, file: Path, *, claimed: float | None, anew: bool = False) -> dict[str, Any]:
        """Send a team's file, with the team's token."""
        data = {"anew": "yes"} if anew else {}
        if claimed is not None:
            data["claimed"] = repr(claimed)
        files = {"file": (file.name, _read(file))}
        found: dict[str, Any] = self._connection.post("submissions", repeatable=True, files=files, data=data)
        return found

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _of_team(self, name: str, action: str, content: dict[str, Any]) -> list[dict[str, Any]]:
        number = _number(self.status()["teams"], name)
        found: list[dict[str, Any]] = self._connection.post(f"admin/teams/{number}/{action}", json=content)
        return found

    def _post(self, path: str, **content: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._connection.post(f"admin/{path}", **content)
        return found


def _number(teams: Sequence[dict[str, Any]], name: str) -> int:
    for team in teams:
        if team["name"] == name:
            return int(team["id"])
    raise InputError("there must be a team of this name; there is none; look at the status")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} must be a file that can be read; {error.strerror}") from None
