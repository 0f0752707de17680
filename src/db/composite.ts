import type { TextRow } from './row.js';

/**
 * The values of a row from PostgreSQL's text form of it, such as (1,"a ""b""",,t), as a query gives them (PostgreSQL 8.16.6):
 * quotes and backslashes are doubled between quotes, and NULL is empty.
 */
export function valuesOfComposite(text: string): TextRow {
  const values: (string | null)[] = [];
  for (let at = 1; at < text.length; at++) {
    const isQuoted = text[at] === '"';
    const end = isQuoted ? closingQuote(text, at) : plainEnd(text, at);
    if (end < at) throw new SyntaxError('this is no row');
    if (isQuoted)
      values.push(
        text
          .slice(at + 1, end)
          .replaceAll('""', '"')
          .replaceAll('\\\\', '\\'),
      );
    else values.push(end === at ? null : text.slice(at, end));
    at = isQuoted ? end + 1 : end;
  }
  return values;
}

function plainEnd(text: string, at: number): number {
  const comma = text.indexOf(',', at);
  return comma < 0 ? text.length - 1 : comma;
}

/** The first quote behind the opening one that is not doubled. */
function closingQuote(text: string, opening: number): number {
  let end = text.indexOf('"', opening + 1);
  while (text[end + 1] === '"') end = text.indexOf('"', end + 2);
  return end;
}
