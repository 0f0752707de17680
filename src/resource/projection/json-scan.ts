import { backslash, closingList, closingObject, comma, openingList, openingObject, quote } from './json-characters.js';

// Positions in JSON text, no parsed values: everything but replaced values is copied, so 12.50 and 12345678901234567890 keep every digit.
// No function recurses over JSON: jsonb may nest deeper than the stack is tall.

/** The message quotes no part of the text. */
export class MalformedJson extends Error {
  override readonly name = 'MalformedJson';
  constructor() {
    super('malformed JSON');
  }
}

export function skipSpace(json: string, at: number): number {
  let next = at;
  for (let code = json.charCodeAt(next); isSpace(code); code = json.charCodeAt(next)) next++;
  return next;
}

/** Returns the position just after the string at `start`. Throws MalformedJson. */
function findStringEnd(json: string, start: number): number {
  if (json.charCodeAt(start) !== quote) throw new MalformedJson();
  let close = json.indexOf('"', start + 1);
  while (close >= 0) {
    let back = close;
    while (json.charCodeAt(back - 1) === backslash) back--;
    if ((close - back) % 2 === 0) return close + 1;
    close = json.indexOf('"', close + 1);
  }
  throw new MalformedJson();
}

/** Returns the position just after the value at `start`. Throws MalformedJson. */
export function findValueEnd(json: string, start: number): number {
  const opening = json[start];
  if (opening === '"') return findStringEnd(json, start);
  if (opening === '{' || opening === '[') return findContainerEnd(json, start);
  let end = start;
  while (end < json.length && !endsScalar(json.charCodeAt(end))) end++;
  if (!scalar.test(json.slice(start, end))) throw new MalformedJson();
  return end;
}

/** Reads between its quotes and resolves escapes. Throws MalformedJson. */
export function parseString(json: string, start: number, end: number): string {
  const raw = json.slice(start + 1, end - 1);
  if (!raw.includes('\\')) return raw;
  try {
    return String(JSON.parse(json.slice(start, end)));
  } catch {
    throw new MalformedJson();
  }
}

/** Calls `onValue` with name or index and position; it returns the value's end. Returns the container's end. Throws MalformedJson. */
export function scanContainer(json: string, start: number, onValue: (name: string, at: number) => number): number {
  const isObject = json[start] === '{';
  let at = skipSpace(json, start + 1);
  for (let count = 0; json[at] !== (isObject ? '}' : ']'); count++) {
    if (count > 0) at = skipBehind(json, at, ',');
    const nameEnd = isObject ? findStringEnd(json, at) : at;
    const name = isObject ? parseString(json, at, nameEnd) : String(count);
    if (isObject) at = skipBehind(json, skipSpace(json, nameEnd), ':');
    at = skipSpace(json, onValue(name, at));
  }
  return at + 1;
}

/** Lists children by name or index, as JSON text. Throws MalformedJson. */
export function listChildren(json: string): [name: string, value: string][] {
  const children: [string, string][] = [];
  if (!/^[{[]/.test(json)) return children;
  const end = scanContainer(json, 0, (name, at) => {
    const valueEnds = findValueEnd(json, at);
    children.push([name, json.slice(at, valueEnds)]);
    return valueEnds;
  });
  if (skipSpace(json, end) !== json.length) throw new MalformedJson();
  return children;
}

function skipBehind(json: string, at: number, character: ',' | ':'): number {
  if (json[at] !== character) throw new MalformedJson();
  return skipSpace(json, at + 1);
}

const scalar = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;

/** Says whether a number, true, false or null ends before the character or byte; undefined is the end of the bytes. */
export function endsScalar(code: number | undefined): boolean {
  return code === undefined || code === comma || code === closingList || code === closingObject || isSpace(code);
}

function findContainerEnd(json: string, start: number): number {
  let depth = 0;
  for (let at = start; at < json.length; at++) {
    const char = json.charCodeAt(at);
    if (char === quote) at = findStringEnd(json, at) - 1;
    else if (char === openingObject || char === openingList) depth++;
    else if ((char === closingObject || char === closingList) && --depth === 0) return at + 1;
  }
  throw new MalformedJson();
}

export function isSpace(code: number | undefined): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

/** Finds repeated members, of which JSON.parse would silently take the last. */
export function findRepeats(json: string, at = ''): string[] {
  const children = listChildren(json.trim());
  return children.flatMap(([name, value], i) => {
    const isRepeated = children.findIndex(([first]) => first === name) < i;
    return [...(isRepeated ? [`${at}/${name}`] : []), ...findRepeats(value, `${at}/${name}`)];
  });
}
