/** Style of the documentation page: two colour schemes, no fonts or images from elsewhere. */
export const style = `
:root { color-scheme: light dark; --text: #1b1f24; --soft: #57606a; --back: #fff; --panel: #f3f5f7; --line: #d0d7de; --accent: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e9ed; --soft: #a3adb8; --back: #14181d; --panel: #1d232a; --line: #39424d; --accent: #79b8ff; }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; color: var(--text); background: var(--back); font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
.skip { position: absolute; left: -100rem; }
.skip:focus { left: 1rem; top: 1rem; padding: .5rem 1rem; background: var(--panel); }
nav, main { padding: 1rem; }
nav { background: var(--panel); border-bottom: 1px solid var(--line); }
nav ul { list-style: none; margin: 0; padding: 0 0 .5rem; }
nav ul ul { padding-left: 1rem; font-size: .9rem; }
nav li { padding: .15rem 0; }
main { max-width: 64rem; }
a { color: var(--accent); }
a:focus-visible, summary:focus-visible, .table:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
h1 { margin: 0 0 .5rem; line-height: 1.2; }
h2 { margin: 3rem 0 1rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
h3 { margin: 2.5rem 0 .5rem; }
h4 { margin: 1.25rem 0 .4rem; }
p { max-width: 45rem; margin: .5rem 0; }
small, .summary { color: var(--soft); font-weight: normal; }
.method { padding: .1rem .45rem; border-radius: .25rem; background: var(--accent); color: var(--back); font-size: .85em; }
code { font: .9em/1.45 ui-monospace, Consolas, monospace; }
pre { margin: .75rem 0; padding: .75rem 1rem; overflow-x: auto; background: var(--panel); border: 1px solid var(--line); border-radius: .35rem; overflow-wrap: normal; }
.table { overflow-x: auto; }
table { width: 100%; min-width: 34rem; border-collapse: collapse; font-size: .92rem; }
th, td { padding: .4rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { color: var(--soft); white-space: nowrap; }
td:first-child { min-width: 8rem; }
summary { cursor: pointer; padding: .25rem 0; color: var(--accent); }
@media (min-width: 70rem) {
  body { display: grid; grid-template-columns: 19rem minmax(0, 1fr); }
  nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; border-right: 1px solid var(--line); border-bottom: 0; }
  main { padding: 2rem 3rem; }
}
@media print { nav { display: none; } }
`;
