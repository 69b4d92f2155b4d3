"""Descriptions in Markdown: what is shown, and what never is."""

import re

import pytest
from reusable_holdout_leaderboard.pages.prose import prose_of, summary_of


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


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "&#106;avascript:alert(1)",
        "java&#x0A;script:alert(1)",
        "%6Aavascript:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "//elsewhere.example/x",
        "blob:x",
        "\\\\elsewhere.example",
    ],
)
def test_a_link_goes_nowhere_but_where_links_may_go(url):
    for text in (f"[x]({url})", f"<{url}>", f"[x]\n\n[x]: {url}", f"[x](<{url}>)"):
        for target in re.findall(r'href="([^"]*)"', prose_of(text)):
            assert re.match(r"(https?:|mailto:|[^:]*$)", target), (text, target)
            assert not target.startswith(("//", "\\", "%5C"))


@pytest.mark.parametrize(
    "url", ["https://example.org/a?b=c", "http://example.org", "mailto:a@b.org", "#guard"]
)
def test_links_that_may_be_are_links(url):
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
