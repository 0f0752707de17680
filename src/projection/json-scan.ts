/**
 * A scanner over JSON text as PostgreSQL prints jsonb. Works on positions in the text and never on parsed values:
 * text that is not replaced is copied as it stands, so numbers such as 12.50 or 12345678901234567890 keep every digit.
 *
 * No function recurses: jsonb may nest deeper than the stack is tall.
 */

/** The text is not JSON. The message has no part of the text. */
export class MalformedJson extends Error {
  override readonly name = 'MalformedJson';
  constructor() {
    super('malformed JSON');
  }
}

const quote = 0x22;
const backslash = 0x5c;

/** Position of the first character at or after `at` that is not white space. */
export function skipSpace(json: string, at: number): number {
  let next = at;
  for (let code = json.charCodeAt(next); isSpace(code); code = json.charCodeAt(next)) next++;
  return next;
}

/** Position just after the string whose opening quote is at `start`. Throws MalformedJson when it does not end. */
export function stringEnd(json: string, start: number): number {
  let close = json.indexOf('"', start + 1);
  while (close >= 0) {
    let back = close;
    while (json.charCodeAt(back - 1) === backslash) back--;
    if ((close - back) % 2 === 0) return close + 1;
    close = json.indexOf('"', close + 1);
  }
  throw new MalformedJson();
}

/** Position just after the value that starts at `start`. Throws MalformedJson when none starts there or it does not end. */
export function valueEnd(json: string, start: number): number {
  const opening = json[start];
  if (opening === '"') return stringEnd(json, start);
  if (opening === '{' || opening === '[') return containerEnd(json, start);
  let end = start;
  while (end < json.length && !endsScalar(json.charCodeAt(end))) end++;
  if (!scalar.test(json.slice(start, end))) throw new MalformedJson();
  return end;
}

/** The string between the quotes of json[start, end), its escapes resolved. Throws MalformedJson on an invalid escape. */
export function stringAt(json: string, start: number, end: number): string {
  const raw = json.slice(start + 1, end - 1);
  if (!raw.includes('\\')) return raw;
  try {
    return String(JSON.parse(json.slice(start, end)));
  } catch {
    throw new MalformedJson();
  }
}

/** The elements of the array that `json` is, each as its JSON text. Throws MalformedJson when it is no array. */
export function elementsOf(json: string): string[] {
  const elements: string[] = [];
  itemsOf(json, '[', (_, __, start, end) => elements.push(json.slice(start, end)));
  return elements;
}

/** The members of the object that `json` is: name and JSON text of the value. Throws MalformedJson when it is none. */
export function membersOf(json: string): [name: string, value: string][] {
  const members: [string, string][] = [];
  itemsOf(json, '{', (name, nameEnd, start, end) =>
    members.push([stringAt(json, name, nameEnd), json.slice(start, end)]),
  );
  return members;
}

/** The JSON text of a member of the object that `json` is; of a repeated name the last. Throws MalformedJson when it is no object. */
export function memberOf(json: string, name: string): string | undefined {
  let found: string | undefined;
  itemsOf(json, '{', (nameStart, nameEnd, start, end) => {
    if (stringAt(json, nameStart, nameEnd) === name) found = json.slice(start, end);
  });
  return found;
}

/** Visits the items of the object or array that `json` is: start and end of a member's name (of an element: nothing of use) and of the value. */
function itemsOf(
  json: string,
  opening: '{' | '[',
  found: (name: number, nameEnd: number, start: number, end: number) => void,
): void {
  const isObject = opening === '{';
  const closing = isObject ? '}' : ']';
  let at = skipSpace(json, 0);
  if (json[at] !== opening) throw new MalformedJson();
  at = skipSpace(json, at + 1);
  for (let isFirst = true; json[at] !== closing; isFirst = false) {
    if (!isFirst && json[at] !== ',') throw new MalformedJson();
    const name = isFirst ? at : skipSpace(json, at + 1);
    const nameEnd = isObject ? memberNameEnd(json, name) : name;
    const value = isObject ? behindColon(json, nameEnd) : name;
    const end = valueEnd(json, value);
    found(name, nameEnd, value, end);
    at = skipSpace(json, end);
  }
  if (skipSpace(json, at + 1) !== json.length) throw new MalformedJson();
}

function memberNameEnd(json: string, at: number): number {
  if (json[at] !== '"') throw new MalformedJson();
  return stringEnd(json, at);
}

function behindColon(json: string, nameEnd: number): number {
  const colon = skipSpace(json, nameEnd);
  if (json[colon] !== ':') throw new MalformedJson();
  return skipSpace(json, colon + 1);
}

const scalar = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;

/** Whether a character cannot be part of a number, true, false or null: white space, comma or closing bracket. */
function endsScalar(code: number): boolean {
  return isSpace(code) || code === 0x2c || code === 0x5d || code === 0x7d;
}

function containerEnd(json: string, start: number): number {
  let depth = 0;
  for (let at = start; at < json.length; at++) {
    const char = json.charCodeAt(at);
    if (char === quote) at = stringEnd(json, at) - 1;
    else if (char === 0x7b || char === 0x5b) depth++;
    else if ((char === 0x7d || char === 0x5d) && --depth === 0) return at + 1;
  }
  throw new MalformedJson();
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}
