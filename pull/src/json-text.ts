import { BrokenAnswer, RefusedRequest } from './api.js';

/** Characters of records that a database takes at once, all in memory. */
const sliceLength = 1_000_000;
/** Bound of a record's characters, and of the text after the records. */
const recordLengthMax = 64 * 1024 * 1024;
/** Depth of a page's records in the JSON. */
const recordDepth = 3;

/**
 * Cuts a page, whose first member is the array of the records, into records as they come. Keeps their text, because JSON.parse would round
 * numbers. Looks at each character once, however large a record is.
 */
export class PageText {
  /** Pieces of the record that has begun; after the records, of the end of the page. */
  #pieces: string[] = [];
  #length = 0;
  #depth = 0;
  #isInText = false;
  #isEscaped = false;
  #isAfterRecords = false;

  constructor(
    private readonly chunks: AsyncIterable<string>,
    private readonly recordsMax = Number.POSITIVE_INFINITY,
  ) {}

  /** Yields some records at a time. */
  async *readSlices(): AsyncGenerator<string[]> {
    let [slice, length]: [string[], number] = [[], 0];
    let count = 0;
    for await (const chunk of this.chunks) {
      for (const record of this.#cutRecords(chunk)) {
        if (++count > this.recordsMax)
          throw new RefusedRequest(
            200,
            `The server at --base sends more than the ${this.recordsMax} records that a page may have.`,
          );
        slice.push(record);
        length += record.length;
        if (length < sliceLength) continue;
        yield slice;
        [slice, length] = [[], 0];
      }
      if (this.#length > recordLengthMax)
        throw new RefusedRequest(200, `A record is larger than ${recordLengthMax} characters.`);
    }
    if (slice.length > 0) yield slice;
  }

  /** Returns the members after the records, once all are read. Throws Broken if the page is not whole. */
  parseMembersAfterRecords(): unknown {
    try {
      if (this.#isAfterRecords) return JSON.parse(`{${this.#pieces.join('').replace(/^\s*,/, '')}`);
    } catch {}
    throw new BrokenAnswer('its reply is not whole');
  }

  *#cutRecords(chunk: string): Generator<string> {
    const isInRecord = (): boolean => this.#depth >= recordDepth || this.#isAfterRecords;
    let start = 0;
    for (let at = 0; !this.#isAfterRecords; ) {
      at = this.#isInText ? this.#findTextEnd(chunk, at) : findNextMark(chunk, at);
      if (at === chunk.length) break;
      const mark = chunk[at++];
      if (mark === '"') this.#isInText = !this.#isInText;
      else if (mark === '{' || mark === '[') {
        if (++this.#depth === recordDepth) start = at - 1;
      } else if (this.#depth-- === recordDepth) yield this.#completeRecord(chunk.slice(start, at));
      else if (mark === ']' && this.#depth === recordDepth - 2) [this.#isAfterRecords, start] = [true, at];
    }
    if (isInRecord()) this.#keep(chunk.slice(start));
  }

  #keep(piece: string): void {
    this.#pieces.push(piece);
    this.#length += piece.length;
  }

  #completeRecord(last: string): string {
    if (this.#pieces.length === 0) return last;
    this.#pieces.push(last);
    const record = this.#pieces.join('');
    [this.#pieces, this.#length] = [[], 0];
    return record;
  }

  /** Finds the quote that ends the text, or the end of the chunk. */
  #findTextEnd(chunk: string, from: number): number {
    let at = this.#isEscaped ? from + 1 : from;
    for (; at < chunk.length; at++) {
      const code = chunk.charCodeAt(at);
      if (code === 0x22) break;
      if (code === 0x5c) at++;
    }
    this.#isEscaped = at > chunk.length;
    return Math.min(at, chunk.length);
  }
}

function findNextMark(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22 || code === 0x7b || code === 0x7d || code === 0x5b || code === 0x5d) return at;
  }
  return text.length;
}

/** Returns the position after the text whose quote is at `start`. */
export function findStringEnd(text: string, start: number): number {
  for (let at = start + 1; ; at++) {
    at = text.indexOf('"', at);
    if (at < 0) throw new BrokenAnswer('its reply is no JSON');
    let escapes = 0;
    while (text.charCodeAt(at - 1 - escapes) === 0x5c) escapes++;
    if (escapes % 2 === 0) return at + 1;
  }
}

/** Returns the position after the value at `start`. */
export function findValueEnd(text: string, start: number): number {
  const first = text[start];
  if (first === '"') return findStringEnd(text, start);
  let at = start;
  if (first !== '{' && first !== '[') {
    while (at < text.length && !endsScalar(text.charCodeAt(at))) at++;
    if (at === start) throw new BrokenAnswer('its reply is no JSON');
    return at;
  }
  for (let depth = 0; ; ) {
    at = findNextMark(text, at);
    const mark = text[at];
    if (mark === undefined) throw new BrokenAnswer('its reply is no JSON');
    if (mark === '"') at = findStringEnd(text, at);
    else {
      depth += mark === '{' || mark === '[' ? 1 : -1;
      at++;
      if (depth === 0) return at;
    }
  }
}

/** Tells whether a number, true, false or null ends before this character. */
const endsScalar = (code: number): boolean => code === 0x2c || code === 0x7d || code === 0x5d || isSpace(code);
const isSpace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

/** Skips white space. */
export function skipSpace(text: string, from: number): number {
  let at = from;
  while (isSpace(text.charCodeAt(at))) at++;
  return at;
}
