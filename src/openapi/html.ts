import { createHash } from 'node:crypto';

/** Text that is markup already and that the functions below do not escape. */
export class Html {
  constructor(readonly text: string) {}
}

type Part = Html | string | number | undefined | readonly Part[];

/** Template tag: escapes each part unless it is Html, joins arrays, and leaves out undefined. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(strings.map((text, i) => text + markup(parts[i])).join(''));
}

/** Markup in which parts replace `{{name}}`, escaped as by `html`. */
export function fillHtml(markupText: string, parts: Readonly<Record<string, Part>>): Html {
  return new Html(markupText.replace(/\{\{(\w+)\}\}/g, (_, name: string) => markup(parts[name])));
}

/** Text with `code` spans and blank lines between paragraphs, as descriptions in OpenAPI have them. */
export function prose(text: string): Html[] {
  return text.split('\n\n').map((paragraph) => html`<p>${spans(paragraph)}</p>`);
}

/** A line of such text. */
export function spans(text: string): Html[] {
  return text.split('`').map((span, i) => (i % 2 === 1 ? code(span) : html`${span}`));
}

/** A name or a value; an address can be broken between its parts, so that no word of it is. */
export function code(text: string): Html {
  return html`<code>${text.split(/(?<=[/?&])(?=\w)/).map((part, i) => html`${i > 0 ? wordBreak : ''}${part}`)}</code>`;
}

const wordBreak = new Html('<wbr>');

/** Text of a program or a message, which scrolls sideways by itself and can be reached by keyboard for that. */
export function block(text: Part): Html {
  return html`<pre tabindex="0"><code>${text}</code></pre>`;
}

/** A list of terms, each with the words beside it and the text below it: readable on a narrow screen, as a table is not. */
export function terms(rows: readonly (readonly [term: Part, beside: Part, text: Part])[]): Html {
  return html`<dl>${rows.map(([term, beside, text]) => html`<dt>${term} <small>${beside}</small></dt><dd>${text}</dd>\n`)}</dl>`;
}

/**
 * A Content-Security-Policy that allows the page's own style and script elements, by their hashes (CSP Level 3 §2.3.1), and
 * its icon, and connections to its origin where it makes any. Everything else is refused, frames too.
 */
export function pagePolicy(page: string, connects = false): string {
  const hashes = (tag: string): string => {
    const texts = [...page.matchAll(new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`, 'g'))].map(
      ([, text]) => text as string,
    );
    return texts.map((text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`).join(' ') || "'none'";
  };
  const connect = connects ? "; connect-src 'self'" : '';
  return `default-src 'none'; style-src ${hashes('style')}; script-src ${hashes('script')}; img-src data:; base-uri 'none'; form-action 'none'${connect}`;
}

function markup(part: Part): string {
  if (part === undefined) return '';
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(markup).join('');
  return String(part).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
