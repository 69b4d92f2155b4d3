"""The style sheet of the report: light or dark as the reader's system is set, also for narrow screens and paper."""

STYLE = """
:root { color-scheme: light dark; --page: #fbfaf8; --card: #fff; --text: #1d2329; --soft: #5a6570; --line: #e3e0da;
  --charge: #c0392b; --good: #23733f; }
@media (prefers-color-scheme: dark) { :root { --page: #14181c; --card: #1c2228; --text: #e8e6e2; --soft: #a0abb5;
  --line: #313941; --charge: #ff8273; --good: #6fcf8e; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 4rem; background: var(--page); color: var(--text);
  font: 16px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .75rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .4rem; overflow-wrap: anywhere; }
p { max-width: 46rem; }
.soft, caption, th { color: var(--soft); }
.verdict { border-left: .3rem solid var(--good); padding: .6rem 1rem; background: var(--card); margin: 1.25rem 0; }
.wrong { border-color: var(--charge); }
code { font: .85em/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(12rem, 1fr)); gap: .75rem; margin: 1rem 0; }
dl div { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .7rem .9rem; }
dt { color: var(--soft); font-size: .85rem; }
dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
dd small { color: var(--soft); font-size: .8rem; display: block; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: .5rem; background: var(--card); }
table { border-collapse: collapse; width: 100%; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .7rem; text-align: left; border-top: 1px solid var(--line); vertical-align: top; }
thead th { border-top: 0; white-space: nowrap; }
.number { text-align: right; white-space: nowrap; }
.name { overflow-wrap: anywhere; min-width: 7rem; }
.charged td:first-child { box-shadow: inset .2rem 0 var(--charge); }
pre { overflow-x: auto; font: .8rem/1.5 ui-monospace, monospace; }
summary { cursor: pointer; color: var(--soft); margin-top: .75rem; }
@media print { .scroll { overflow: visible; } }
"""
