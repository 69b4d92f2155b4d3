"""What the house may not become again: the limits that hold today, and the measures themselves on small trees."""

import pytest
from house.__main__ import main
from house.shape import circles, functions, underscored
from house.sizes import FILES_OF_WAYS, code_lines, loads_late, sizes
from house.tree import Module, modules
from house.ways import WAYS

_LINES, _BODY = 400, 45  # of a file, and of a function's body
_WAY_FUNCTIONS, _BOARDS_FILES = 300, 10  # on the longest way; of the leaderboard on its own


@pytest.fixture(scope="module")
def known():
    return modules()


def test_no_file_holds_two_ideas(known):
    assert {module.file: module.lines for module in known.values() if module.lines > _LINES} == {}


def test_no_function_holds_two_ideas(known):
    assert [one for one in functions(known) if one.body > _BODY] == []


def test_no_modules_import_one_another_in_a_circle(known):
    assert circles(known) == []


def test_no_module_of_the_guard_imports_from_its_own_packages_face(known):
    inside = {name for name, module in known.items() if name.startswith("reusable_holdout.guard.")}
    assert {name for name in inside if known[name].uses_own_face(known)} == set()


def test_nobody_outside_the_guards_room_uses_what_is_underscored_in_it(known):
    assert underscored(known, "reusable_holdout.guard") == []


@pytest.mark.long("tests/house", "integrations/reusable_holdout_leaderboard/web")
@pytest.mark.parametrize("what", WAYS)
def test_a_way_passes_files_of_ours(what, tmp_path):
    way = WAYS[what](tmp_path)
    assert 10 < way.files <= FILES_OF_WAYS[what][0]
    assert way.files < way.functions < _WAY_FUNCTIONS
    assert way.boards <= (_BOARDS_FILES if "board" in what else 0)


def test_the_house_is_no_larger_than_it_may_be(known):
    found = list(sizes(known))
    assert [size for size in found if not 0 <= size.measured <= size.limit] == []
    assert all(size.goal <= size.limit for size in found)


# ---- the measures


def test_lines_of_code_are_counted_without_words_and_blanks():
    assert code_lines('"""Words.\n\nMore."""\n\n# a comment\nx = """one\ntwo"""\n') == 2
    assert code_lines('def f():\n    """Words."""\n    return (1,\n            2)\n') == 3


def test_a_module_that_loads_ours_late_is_counted(tree):
    small = tree(a="def f():\n    from reusable_holdout import guard\n", b="import reusable_holdout\n")
    assert [loads_late(small[name]) for name in ("small.a", "small.b")] == [True, False]


@pytest.fixture
def tree(tmp_path):
    """Modules of a small package, from their texts; they need not run."""

    def of(**texts):
        found = {}
        for name, text in {"__init__": "", **texts}.items():
            path = tmp_path / f"{name}.py"
            path.write_text(text)
            module = Module("small" if name == "__init__" else f"small.{name}", path)
            found[module.name] = module
        return found

    return of


def test_a_circle_is_found_whichever_way_it_imports(tree):
    typing = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from small.c import C\n"
    lazy = "def c():\n    from small import a\n    return a\n"
    small = tree(a="from small.b import B\n", b=typing, c=lazy, d="from small.a import A\n")
    assert circles(small) == [["small.a", "small.b", "small.c"]]
    assert circles(tree(a="from small.b import B\n", b="", c="from small.a import A\n")) == []


def test_a_name_is_followed_through_the_face_of_another_package(tmp_path):
    texts = {
        "one": "from two import TWO\n",
        "two": "from two.part import TWO\n",
        "two.part": "import one\nfrom one import ONE\n",
    }
    known = {}
    for name, text in texts.items():
        path = tmp_path / f"{name}.py" if name != "two" else tmp_path / "two" / "__init__.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        known[name] = Module(name, path)
    assert circles(known) == [["one", "two.part"]]


def test_an_attribute_of_an_imported_package_is_an_import_of_its_home(tmp_path):
    texts = {
        "one": "",
        "one.a": "from two import room\nX = room.Y\n",
        "two": "",
        "two.room": "from two.room.y import Y\n",
    }
    texts["two.room.y"] = "from one.a import X\n"
    known = {}
    for number, (name, text) in enumerate(texts.items()):
        package = name in {"one", "two", "two.room"}
        path = tmp_path / str(number) / ("__init__.py" if package else "module.py")
        path.parent.mkdir()
        path.write_text(text)
        known[name] = Module(name, path)
    assert circles(known) == [["one.a", "two.room.y"]]


def test_a_functions_body_is_counted_without_its_signature_and_its_words(tree):
    text = 'def f(\n    a,\n    b,\n):\n    """Words.\n\n    More.\n    """\n    c = a\n\n    return c\n'
    assert [one.body for one in functions(tree(a=text))] == [3]
    assert [one.body for one in functions(tree(a='def f():\n    """Words."""\n'))] == [0]


def test_what_is_underscored_in_a_room_is_found_outside_it(tree):
    room = "class Guard:\n    def __init__(self):\n        self._rows = 1\n\ndef _made(): ...\n"
    outside = "from small.room import _made\n\ndef look(guard):\n    return guard._rows, guard._replace()\n"
    own = "class Mine:\n    def __init__(self, other):\n        self._rows = other._rows\n"
    small = tree(room=room, outside=outside, own=own)
    known = {"small.room": small["small.room"]}
    known |= {
        f"{one}.module": Module(f"{one}.module", small[f"small.{one}"].path) for one in ("outside", "own")
    }
    found = underscored(known, "small.room")
    assert [one.rsplit(":", 2)[1:] for one in found] == [["1", " _made"], ["4", " _rows"]]


@pytest.mark.long("tests/house")
def test_the_command_prints_its_table(capsys, monkeypatch):
    monkeypatch.setattr("house.__main__.WAYS", {})
    main([])
    printed = capsys.readouterr().out
    assert "| circles of imports | 0 |" in printed
