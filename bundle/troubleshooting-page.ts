import { projectText } from '../src/base/paths.js';

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** Code, emphasis and links; a link to another page of the docs, which are not served, becomes its name. */
function inline(text: string): string {
  return escaped(text)
    .replace(/`([^`]+)`/g, '<code>$1</code>')
    .replace(/\[([^\]]+)\]\(([^)]+)\)/g, (_, words, target) =>
      target.startsWith('#') ? `<a href="${target}">${words}</a>` : `${words} (${target})`,
    );
}

const anchor = /<a id="([\w-]+)"><\/a>/;

function tableRow(line: string): string {
  const id = anchor.exec(line)?.[1];
  const cells = line
    .replace(anchor, '')
    .split(/(?<!\\)\|/)
    .slice(1, -1);
  const tag = id === undefined ? 'th' : 'td';
  const row = cells.map((cell) => `<${tag}>${inline(cell.replaceAll('\\|', '|').trim())}</${tag}>`).join('');
  return `<tr${id === undefined ? '' : ` id="${id}"`}>${row}</tr>`;
}

/** The text of config/status/troubleshooting.html, which the ops listener serves: docs/operate/troubleshooting.md as HTML, headings, paragraphs, and tables whose rows have ids, so that a link leads to its row. */
export function troubleshootingHtml(): string {
  const blocks = projectText('docs/operate/troubleshooting.md')
    .trim()
    .split(/\n{2,}/);
  const html = blocks.map((block) => {
    const [, marks, title] = /^(#+) (.*)$/.exec(block) ?? [];
    if (marks !== undefined) return `<h${marks.length}>${inline(title as string)}</h${marks.length}>`;
    if (!block.startsWith('|')) return `<p>${inline(block)}</p>`;
    const rows = block.split('\n').filter((line) => !/^\|[-|]+\|$/.test(line));
    return `<div class="wide"><table>${rows.map(tableRow).join('\n')}</table></div>`;
  });
  const style = projectText('config/status/page.css');
  return `<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>Troubleshooting – Workspace data gateway</title>\n<style>${style}</style>\n</head>\n<body class="pages">\n<main>\n${html.join('\n')}\n</main>\n</body>\n</html>\n`;
}
