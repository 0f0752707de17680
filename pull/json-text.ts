/**
 * Parts of a JSON text as they stand in it: JSON.parse would round numbers that JavaScript cannot represent. The text must be
 * valid JSON; the caller has parsed it.
 */

/** The elements of an array. */
export function* elements(text: string): Generator<string> {
  for (let at = skip(text, 0) + 1; ; at++) {
    at = skip(text, at);
    if (text[at] === ']') return;
    const end = endOfValue(text, at);
    yield text.slice(at, end);
    at = skip(text, end);
    if (text[at] === ']') return;
  }
}

/** The members of an object. */
export function* members(text: string): Generator<readonly [name: string, value: string]> {
  for (let at = skip(text, 0) + 1; ; at++) {
    at = skip(text, at);
    if (text[at] === '}') return;
    const endOfName = endOfString(text, at);
    const name = JSON.parse(text.slice(at, endOfName)) as string;
    const from = skip(text, skip(text, endOfName) + 1);
    const end = endOfValue(text, from);
    yield [name, text.slice(from, end)];
    at = skip(text, end);
    if (text[at] === '}') return;
  }
}

/** The member of an object; undefined when it is absent. */
export function member(text: string, name: string): string | undefined {
  for (const [each, value] of members(text)) if (each === name) return value;
  return undefined;
}

const unstorable = /\\u(0000|[dD][89a-fA-F])/;
/** A pair of surrogates, or any other escape: a reverse solidus that is escaped itself begins none. */
const escapes = /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|.)/g;

/** The text with U+FFFD for U+0000 and for each half of a pair of surrogates, which PostgreSQL's jsonb cannot hold (PostgreSQL, 8.14). */
export function storable(text: string): string {
  if (!unstorable.test(text)) return text;
  return text.replace(escapes, (each) => (each.length === 6 && unstorable.test(each) ? '\\ufffd' : each));
}

/** The place of the next character that is no white space. */
function skip(text: string, from: number): number {
  let at = from;
  while (' \n\r\t'.includes(text[at] as string)) at++;
  return at;
}

function endOfValue(text: string, start: number): number {
  if (text[start] === '"') return endOfString(text, start);
  if (text[start] !== '{' && text[start] !== '[') return endOfWord(text, start);
  const marks = /["{}[\]]/g;
  marks.lastIndex = start;
  for (let depth = 0; ; ) {
    const at = (marks.exec(text) as RegExpExecArray).index;
    if (text[at] === '"') marks.lastIndex = endOfString(text, at);
    else if (text[at] === '{' || text[at] === '[') depth++;
    else if (--depth === 0) return at + 1;
  }
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; at++) {
    at = text.indexOf('"', at);
    let backslashes = 0;
    while (text[at - 1 - backslashes] === '\\') backslashes++;
    if (backslashes % 2 === 0) return at + 1;
  }
}

/** The end of a number, true, false or null. */
function endOfWord(text: string, start: number): number {
  const end = /[\s,\]}]/g;
  end.lastIndex = start;
  return end.exec(text)?.index ?? text.length;
}
