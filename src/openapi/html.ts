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
  return text.split('`').map((span, i) => (i % 2 === 1 ? html`<code>${span}</code>` : html`${span}`));
}

/** A table that scrolls sideways by itself on a narrow screen. */
export function table(label: string, head: readonly string[], rows: readonly (readonly Part[])[]): Html {
  return html`<div class="table" role="region" aria-label="${label}" tabindex="0"><table>
<thead><tr>${head.map((cell) => html`<th scope="col">${cell}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>\n`)}</tbody>
</table></div>`;
}

function markup(part: Part): string {
  if (part === undefined) return '';
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(markup).join('');
  return String(part).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
