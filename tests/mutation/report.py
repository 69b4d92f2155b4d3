"""What a run found, as a table and as lists, and whether it is good enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mutation.operators import Mutant
from mutation.survivors import Identity, Known, entry
from mutation.trial import Result

__all__ = ["MOST_SURVIVORS", "Tried", "change_of", "report"]

MOST_SURVIVORS = 0.03
_OUTCOMES = ("killed", "timed out", "survived")


@dataclass(frozen=True, slots=True)
class Tried:
    """A mutant of the sample, with its room and what became of it."""

    room: str
    mutant: Mutant
    source: str
    result: Result


def report(
    tried: list[Tried], known: Mapping[Identity, Known], candidates: set[Identity]
) -> tuple[str, list[str]]:
    """Text for people, and the reasons why the run is not good enough; none if it is.

    `candidates` are the identities of all mutants, of the sample or not.
    """
    survivors = [one for one in tried if one.result.outcome == "survived"]
    text = "\n".join([*_table(tried), "", *_list(survivors, known)])
    return text, list(_problems(tried, survivors, known, candidates))


def _table(tried: list[Tried]) -> Iterator[str]:
    yield "| room | mutants | killed | timed out | survived | survived, % |"
    yield "|---|---:|---:|---:|---:|---:|"
    rooms = list(dict.fromkeys(one.room for one in tried))
    for name, of in [*((room, {room}) for room in rooms), ("all", set(rooms))]:
        found = [one.result.outcome for one in tried if one.room in of]
        counts = [found.count(outcome) for outcome in _OUTCOMES]
        share = 100 * counts[-1] / max(1, len(found))
        yield f"| {name} | {len(found)} | {' | '.join(map(str, counts))} | {share:.1f} |"


def _list(survivors: list[Tried], known: Mapping[Identity, Known]) -> Iterator[str]:
    yield "Survivors:" if survivors else "No survivors."
    for one in survivors:
        named = known.get(one.mutant.identity)
        function = one.mutant.function or "the module"
        yield f"- {one.mutant.file}, {function}, {one.mutant.operator}: {change_of(one.mutant, one.source)}"
        yield f"  {named.reason if named else f'NOT NAMED ({one.result.ran} tests ran)'}"
    unnamed = [one.mutant for one in survivors if one.mutant.identity not in known]
    if unnamed:
        yield from ("", "Those not named, for survivors.toml:", "")
        yield "\n\n".join(map(entry, unnamed))


def _problems(
    tried: list[Tried], survivors: list[Tried], known: Mapping[Identity, Known], candidates: set[Identity]
) -> Iterator[str]:
    if len(survivors) > MOST_SURVIVORS * len(tried):
        yield f"at most {MOST_SURVIVORS:.0%} may survive; {len(survivors)} of {len(tried)} do"
    unnamed = sum(one.mutant.identity not in known for one in survivors)
    if unnamed:
        yield f"every survivor must be named with its reason; {unnamed} are not"
    killed = {one.mutant.identity for one in tried} - {one.mutant.identity for one in survivors}
    for identity in known:
        if identity in killed:
            yield f"a survivor that is named must survive; {identity} does not any more: take it out"
        elif identity not in candidates:
            yield f"a survivor that is named must be a mutant; {identity} is none any more: take it out"


def change_of(mutant: Mutant, source: str) -> str:
    """The change, on one line."""
    before = source.encode()[mutant.start : mutant.end].decode()
    return f"`{' '.join(before.split())}` -> `{' '.join(mutant.replacement.split())}`"
