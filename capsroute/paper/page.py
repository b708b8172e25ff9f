"""The frame of the report's page: readable on a phone, in print, by day and by night; nothing from outside."""

from string import Template

PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><title>$title</title>
<style>
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #ffffff; --soft: #5c5c5c; --line: #d8d8d8; --band: #f4f6f8;
  --good: #00694d; --bad: #a63d00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #16181b; --soft: #a5a5a5; --line: #3a3d42;
  --band: #1f2327; --good: #5fd3ac; --bad: #ff9d66; } }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.2; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .5rem; }
code { overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; min-width: 60%; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .4rem .7rem; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { background: var(--band); }
th { white-space: nowrap; }
tbody th { position: sticky; left: 0; background: var(--paper); }
td b { white-space: nowrap; } td span { display: block; color: var(--soft); font-size: .8rem; white-space: nowrap; }
td span.note { white-space: normal; min-width: 9rem; max-width: 11rem; }
table.text td { overflow-wrap: anywhere; } table.text td:first-child { min-width: 20rem; }
@media (max-width: 40rem) { table.text thead { display: none; } table.text tr { display: block; padding: .4rem 0;
  border-bottom: 1px solid var(--line); } table.text td { display: block; border: 0; padding: .1rem 0;
  min-width: 0 !important; } }
.note { color: var(--soft); font-size: .85rem; }
.holds { color: var(--good); } .does-not-hold { color: var(--bad); }
figure { margin: 0; background: #ffffff; border: 1px solid var(--line); border-radius: 4px; padding: .5rem;
  overflow-x: auto; }
img { display: block; width: 100%; height: auto; max-width: 52rem; margin: auto; }
li { overflow-wrap: anywhere; }
@media print { body { max-width: none; font-size: 11pt; } h2, figure, tr { break-inside: avoid; }
  img { min-width: 0 !important; } :root { --ink: #000; --paper: #fff; --soft: #444; } }
</style></head><body><h1>$title</h1>
$body
</body></html>
""")
