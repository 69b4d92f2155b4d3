"""Content of pages: descriptions in Markdown, scales, and boards of many teams."""

import re

import numpy as np
import pytest
from reusable_holdout_leaderboard.pages.prose import prose_of, summary_of
from reusable_holdout_leaderboard.pages.scales import scale_of

from reusable_holdout.scales import decimals_of


def test_a_description_has_the_marks_of_markdown():
    shown = prose_of("# Task\n\nRows of *a* table:\n\n- one\n- `two`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    for part in ("<h3>Task</h3>", "<em>a</em>", "<li>one</li>", "<code>two</code>", "<td>2</td>"):
        assert part in shown
    assert prose_of("one\ntwo") == "<p>one<br />\ntwo</p>"
    assert prose_of("") == ""


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        '<a href="javascript:alert(1)">x</a>',
        "<!-- x --><style>*{}</style>",
        "`<script>`",
        "```\n<script>\n```",
        "| <script> |\n|---|\n| <b onclick=x> |",
        '# "><script>',
        "&lt;script&gt; &#60;script&#62;",
    ],
)
def test_html_is_text(text):
    shown = prose_of(text)
    assert not re.search(r"<(?!/?(p|code|pre|h3|table|thead|tbody|tr|th|td|br|em|strong)\b)", shown), shown


_NOWHERE = """
javascript:alert(1) JaVaScRiPt:alert(1) &#106;avascript:alert(1) java&#x0A;script:alert(1) %6Aavascript:alert(1)
data:text/html,x vbscript:x file:///etc/passwd //elsewhere.example/x blob:x \\\\elsewhere.example
"""


@pytest.mark.parametrize("url", _NOWHERE.split())
def test_a_link_leads_only_to_allowed_places(url):
    for text in (f"[x]({url})", f"<{url}>", f"[x]\n\n[x]: {url}", f"[x](<{url}>)"):
        for target in re.findall(r'href="([^"]*)"', prose_of(text)):
            assert re.match(r"(https?:|mailto:|[^:]*$)", target), (text, target)
            assert not target.startswith(("//", "\\", "%5C"))


@pytest.mark.parametrize(
    "url", ["https://example.org/a?b=c", "http://example.org", "mailto:a@b.org", "#guard"]
)
def test_allowed_links_are_links(url):
    assert f'<a href="{url}" rel="nofollow noopener noreferrer">x</a>' in prose_of(f"[x]({url})")


def test_images_of_other_hosts_are_not_loaded():
    assert "<img" not in prose_of("![x](https://example.org/x.png)")


def test_a_summary_is_the_first_paragraph_without_marks():
    assert summary_of("# Title\n\nA *short* [text](https://x.org)\nof `two` lines.\n\nMore.") == (
        "A short text of two lines."
    )
    assert summary_of("") == ""
    assert summary_of("word " * 100).endswith(" …")
    assert len(summary_of("word " * 100)) < 290


# ---- drawings


def test_a_scale_holds_all_values_in_their_order_with_few_round_ticks():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        upper = float(10.0 ** rng.integers(-1, 6))
        values = np.sort(rng.uniform(0, upper, rng.integers(1, 9))).tolist()
        scale = scale_of(values, lower=0.0, upper=upper)
        places = [scale.at(value) for value in values]
        assert places == sorted(places), seed
        assert 0 <= places[0] <= places[-1] <= 100, seed
        assert 1 <= len(scale.ticks) <= 6, seed
        for tick in scale.ticks:
            assert scale.at(float(tick.label)) == pytest.approx(tick.at, abs=1e-6), seed
        assert len({tick.label for tick in scale.ticks}) == len(scale.ticks), seed
    bar = scale_of([0.2, 0.4], lower=0.0, upper=1.0).bar(0.0, 1.0, 0.3)  # a bar ends at the edge
    assert (bar.low, bar.width, bar.at) == (0.0, 100.0, pytest.approx(50.0))
    assert [decimals_of(span) for span in (0.5, 1.0, 13.8, 1e7)] == [4, 4, 3, 0]
