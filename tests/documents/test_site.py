"""The documentation as a site: it is built without a warning, opens from a file, and has every public name."""

import importlib
import inspect
import re

import pytest
from decision_tree import drawn
from documents.links import anchors
from documents.pages import DOCS, ROOT
from documents.site import ROOMS, build
from public_names import public_names
from site_links import for_the_site, outside_code
from site_pages import sources
from terminal import Said
from terminal import drawn as drawn_session

from reusable_holdout import __version__

_LONGEST = 2_000  # words that are read in ten minutes
_site = pytest.mark.long(*ROOMS)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build(tmp_path_factory.mktemp("docs"))


@_site
def test_every_public_name_has_a_place_among_the_pages_of_its_package(site):
    for package, names in public_names().items():
        page = (site / "api" / f"{package}.html").read_text()
        missing = [name for name in names if f'id="{package}.{name}"' not in page]
        assert missing == [], package


@_site
def test_every_method_of_a_public_class_has_a_place_too(site):
    missing = []
    for package in ("reusable_holdout", "reusable_holdout_sklearn"):
        page = (site / "api" / f"{package}.html").read_text()
        for name in public_names()[package]:
            members = _own_members(getattr(importlib.import_module(package), name))
            missing += [one for one in members if f'id="{package}.{name}.{one}"' not in page]
    assert missing == []
    guard = importlib.import_module("reusable_holdout").ReusableHoldout
    assert {"evaluate", "reveal", "choose", "compare", "final", "on", "history"} <= set(_own_members(guard))


def _own_members(thing):
    """Public methods and properties of a class that this project wrote."""
    if not isinstance(thing, type):
        return []
    found = {name: inspect.getattr_static(thing, name) for name in dir(thing) if not name.startswith("_")}
    written = {name: getattr(one, "fget", getattr(one, "__func__", one)) for name, one in found.items()}
    return [
        name
        for name, one in written.items()
        if str(getattr(one, "__module__", "")).startswith("reusable_holdout")
    ]


@_site
def test_no_page_needs_anything_from_elsewhere_or_from_a_server(site):
    pages = [page for page in site.rglob("*.html") if page.name != "404.html"]  # which is a server's
    assert len(pages) > 60
    for page in pages:
        text = page.read_text()
        needed = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="([^"]+)"', text)
        assert [one for one in needed if re.match(r"(https?:)?//", one)] == [], page.name
        links = re.findall(r'<a [^>]*href="([^"]+)"', text)
        local = [one.partition("#")[0] for one in links if not re.match(r"[a-z]+:|#", one)]
        assert [one for one in local if not (page.parent / one).is_file()] == [], page.name
    assert (
        site / "search" / "search_index.js"
    ).stat().st_size > 100_000  # a script, so that a file may load it


@_site
def test_every_page_is_in_the_navigation_and_what_was_measured_is_among_them(site):
    home = (site / "index.html").read_text()
    for page in site.rglob("*.html"):
        name = page.relative_to(site).as_posix()
        assert f'href="{name}"' in home or name in {"404.html", "index.html"}, name
    assert "Freedman" in (site / "measured" / "do-the-intervals-hold.html").read_text()


def test_every_public_package_is_named_where_the_names_are_listed():
    listed = (DOCS / "stability.md").read_text()
    assert [package for package in public_names() if f"`{package}`" not in listed] == []
    assert "Plan" in public_names()["reusable_holdout"]
    assert "GuardedSearchCV" in public_names()["reusable_holdout_sklearn"]


def test_no_page_takes_longer_than_ten_minutes():
    pages = {page.name: page.read_text() for page in DOCS.glob("*.md")} | {
        source.page: source.text for source in sources() if source.page.startswith("measured/")
    }
    assert len(pages) > 30
    words = {name: len(text.replace("|", " ").split()) for name, text in pages.items()}  # a bar is no word
    assert {name: count for name, count in words.items() if count > _LONGEST} == {}


def test_what_was_measured_is_split_at_its_headings_and_nothing_is_lost():
    whole = (ROOT / "examples" / "README.md").read_text()
    parts = [source for source in sources() if source.home == "examples/README.md"]
    assert parts[0].page == "measured/index.md"
    assert all(source.text.startswith("# ") for source in parts)
    assert set().union(*(anchors(source.text) for source in parts)) == anchors(whole)
    assert sum(len(source.text.split()) for source in parts) == len(whole.split())


def test_a_link_to_another_file_is_one_to_its_page_or_only_its_name():
    places = {"docs/a.md": "a.md", "examples/README.md": "measured/index.md"}
    places["examples/README.md#it-holds"] = "measured/holds.md"

    def on(page, text, home="docs/a.md"):
        return for_the_site(text, home=home, page=page, places=places)

    assert on("a.md", "[x](../examples/README.md#it-holds)") == "[x](measured/holds.md#it-holds)"
    assert on("a.md", "[`x`](../examples/README.md)") == "[`x`](measured/index.md)"
    assert on("measured/holds.md", "![x](../docs/a.md)", "examples/README.md") == "![x](../a.md)"
    assert on("measured/holds.md", "[x](#it-holds)", "examples/README.md") == "[x](#it-holds)"
    assert on("measured/index.md", "[x](#it-holds)", "examples/README.md") == "[x](holds.md#it-holds)"
    assert on("a.md", "[x](../examples/box)") == "x"
    assert on("a.md", "[x](https://example.org/y)") == "[x](https://example.org/y)"
    assert outside_code("a\n```\na\n```\na", str.upper) == "A\n```\na\n```\nA"


def test_a_docstring_is_read_without_the_marks_of_another_tool():
    pytest.importorskip("griffe")
    from site_docstrings import readable

    text = "As :class:`~reusable_holdout.Plan` [1]_.\n\n    .. [1] Dwork et al. (2015)."
    assert readable(text) == "As `reusable_holdout.Plan` [1].\n\n    1. Dwork et al. (2015)."


def test_the_glossary_has_each_word_once_in_order_and_those_of_the_readme():
    words = re.findall(r"^\| \*\*(.*?)\*\* \|", (DOCS / "glossary.md").read_text(), flags=re.MULTILINE)
    assert words == sorted(set(words))
    five = re.findall(r"^\| \*\*(.*?)\*\* \|", (ROOT / "README.md").read_text(), flags=re.MULTILINE)
    assert set(five) == {"prior", "agreed", "charge", "tolerance", "halt"} <= set(words)


def test_the_picture_of_the_house_has_all_its_rooms():
    tree = (ROOT / "CONTRIBUTING.md").read_text().partition("```text")[2].partition("```")[0]
    shown = set(re.findall(r"[\w.]+(?=/?\b)", tree))
    rooms = {path.name for path in (ROOT / "reusable_holdout").iterdir() if not path.name.startswith("_")}
    rooms |= {path.name.removeprefix("reusable_holdout") for path in (ROOT / "integrations").iterdir()}
    assert {room for room in rooms if room not in shown} == {"py.typed", "version.py"}


def test_who_cites_it_names_this_version():
    cited = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", cited, flags=re.MULTILINE)[1] == __version__


def test_the_picture_of_the_ways_to_ask_is_what_its_script_draws():
    assert (DOCS / "images" / "choose.svg").read_text() == drawn()


def test_a_picture_of_a_session_has_every_line_as_it_was_and_users_in_their_colours():
    picture = drawn_session([Said("a", "ls > x"), Said("", "  <no>"), Said("b", "ls")], title="two")
    found = re.findall(r"<text[^>]*>(.*)</text>", picture)
    texts = [re.sub(r"<[^>]*>", "", one) for one in found]
    assert texts == ["a$ ls &gt; x", "  &lt;no&gt;", "b$ ls"]
    colours = [re.findall(r'fill="(#\w+)"', one) for one in found]
    assert [len(one) for one in colours] == [1, 0, 1]
    assert colours[0] != colours[2]
