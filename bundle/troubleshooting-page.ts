import { readProject } from '../src/base/paths.js';

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** Code and links; a link to another page of the docs, which are not served, becomes its name. */
function inline(text: string): string {
  return escaped(text)
    .replace(/`([^`]+)`/g, '<code>$1</code>')
    .replace(/\[([^\]]+)\]\(([^)]+)\)/g, (_, words, target) =>
      target.startsWith('#') ? `<a href="${target}">${words}</a>` : `${words} (${target})`,
    );
}

const heading = /^(#+) (.*?)(?: <a id="([\w-]+)"><\/a>)?$/;

function block(text: string): string {
  const [, marks, title, id] = heading.exec(text) ?? [];
  if (marks !== undefined)
    return `<h${marks.length}${id === undefined ? '' : ` id="${id}"`}>${inline(title as string)}</h${marks.length}>`;
  const [, code] = /^```\w*\n(.*)\n```$/s.exec(text) ?? [];
  return code === undefined ? `<p>${inline(text)}</p>` : `<pre>${escaped(code)}</pre>`;
}

/**
 * The text of config/status/troubleshooting.html, which the ops listener serves: docs/operate/troubleshooting.md as HTML, made of
 * headings with ids, paragraphs and code.
 */
export function troubleshootingHtml(): string {
  const blocks = readProject('docs/operate/troubleshooting.md')
    .trim()
    .split(/\n{2,}/);
  const style = readProject('config/status/page.css');
  return `<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>Troubleshooting – Workspace data gateway</title>\n<style>${style}</style>\n</head>\n<body class="pages">\n<main>\n${blocks.map(block).join('\n')}\n</main>\n</body>\n</html>\n`;
}
