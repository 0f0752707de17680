/** Text that is markup already. Only `html` makes it, so that nothing else reaches the page unescaped. */
export class Html {
  constructor(readonly text: string) {}
}

type Part = Html | string | number | undefined | readonly Part[];

/** Template tag: what is interpolated is escaped unless it is Html; arrays are joined, undefined is nothing. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(strings.map((text, i) => text + markup(parts[i])).join(''));
}

/** Text with `code` spans and blank lines between paragraphs, as descriptions in OpenAPI have them. */
export function prose(text: string): Html[] {
  return text.split('\n\n').map((paragraph) => html`<p>${spans(paragraph)}</p>`);
}

/** One line of such text. */
export function spans(text: string): Html[] {
  return text.split('`').map((span, i) => (i % 2 === 1 ? html`<code>${span}</code>` : html`${span}`));
}

/** A table that scrolls sideways on its own where the screen is narrow. */
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
