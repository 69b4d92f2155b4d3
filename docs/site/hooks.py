"""What MkDocs calls while it builds the site: pages that are made of something else, and links between files."""

from __future__ import annotations

from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from public_names import api_page, public_names
from site_links import for_the_site, outside_code
from site_pages import ROOT, Source, anchor, sources
from site_recorded import with_recorded

_MEASURED, _API, _HOUSE, _MORE = "Measured", "API", "The house", "More"
_PICTURES = ("examples/leaderboard/leaderboard.png",)
_homes: dict[str, str] = {}
_places: dict[str, str] = {}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and name all pages in the navigation."""
    made = sources()
    _note_places(files, made)
    for source in made:
        text = with_recorded(source.text) if source.page.startswith("measured/") else source.text
        files.append(File.generated(config, source.page, content=text))
    for picture in _PICTURES:
        files.append(File.generated(config, _places[picture], abs_src_path=str(ROOT / picture)))
    for package, names in public_names().items():
        files.append(File.generated(config, f"api/{package}.md", content=api_page(package, names)))
    config["nav"] = _navigation(config["nav"], made, files)
    return files


def on_page_markdown(markdown: str, page: Page, **kwargs: Any) -> str:
    """Turn links between files of the repository into links between pages."""
    here = page.file.src_uri
    home = _homes.get(here, f"docs/{here}")
    return outside_code(markdown, lambda text: for_the_site(text, home=home, page=here, places=_places))


def _note_places(files: Files, made: list[Source]) -> None:
    """Which file is shown where; of what was measured also which heading."""
    _places.update({f"docs/{file.src_uri}": file.src_uri for file in files})
    _places.update({picture: f"measured/{picture.rpartition('/')[2]}" for picture in _PICTURES})
    _places["README.md"] = _places["docs/README.md"] = "index.md"
    for source in made:
        _homes[source.page] = source.home
        _places.setdefault(source.home, source.page)
        for line in outside_code(source.text, lambda text: text).splitlines():
            if line.startswith("#"):
                _places.setdefault(f"{source.home}#{anchor(line.lstrip('# '))}", source.page)


def _navigation(nav: list[Any], made: list[Source], files: Files) -> list[Any]:
    """The navigation of mkdocs.yml, with the pages that are made at their places, and those it forgot at the end."""
    measured = [{source.title: source.page} for source in made if source.page.startswith("measured/")]
    house = [{source.title: source.page} for source in made if not source.page.startswith("measured/")]
    own = {_MEASURED: measured, _API: [{name: f"api/{name}.md"} for name in public_names()], _HOUSE: house}
    there = {file.src_uri for file in files}
    full = []
    for section in nav:
        ((title, inside),) = section.items()
        if isinstance(inside, list):
            inside = [one for one in inside if set(one.values()) <= there] + own.get(title, [])
        full.append({title: inside})
    named = {page for section in full for page in _pages(section)}
    forgotten = sorted(page for page in there - named if page.endswith(".md"))
    return [*full, {_MORE: forgotten}] if forgotten else full


def _pages(section: dict[str, Any]) -> list[str]:
    (inside,) = section.values()
    return [page for one in inside for page in one.values()] if isinstance(inside, list) else [inside]
