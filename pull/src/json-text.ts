import { Broken, Refused } from './api.js';

/** Characters of the records that a database takes at once: it keeps all of them in memory. */
const sliceLength = 1_000_000;
/** Characters of a record at most, and of what is behind the records. */
const recordLengthMax = 64 * 1024 * 1024;
/** The depth of JSON in which the records of a page stand. */
const recordDepth = 3;

/**
 * A page while it comes: its records as they stand in the text, because JSON.parse would round numbers. Its first member is the array of
 * the records.
 */
export class PageText {
  readonly #chunks: AsyncIterable<string>;
  /** The text that is no whole record yet; behind the records: the rest of the page. */
  #text = '';
  /** Where to look for the next mark, and the beginning of the record that has begun, or -1. */
  #at = 0;
  #start = -1;
  #depth = 0;
  #isBehind = false;

  constructor(chunks: AsyncIterable<string>) {
    this.#chunks = chunks;
  }

  /** The records, some at a time. */
  async *slices(): AsyncGenerator<string[]> {
    let [slice, length]: [string[], number] = [[], 0];
    for await (const chunk of this.#chunks) {
      this.#text += chunk;
      for (let record = this.#record(); record !== null; record = this.#record()) {
        slice.push(record);
        length += record.length;
        if (length < sliceLength) continue;
        yield slice;
        [slice, length] = [[], 0];
      }
      if (this.#text.length > recordLengthMax)
        throw new Refused(200, `A record is larger than ${recordLengthMax} characters.`);
    }
    if (slice.length > 0) yield slice;
  }

  /** The members behind the records, once all are read. Throws Broken where the page is not whole. */
  rest(): unknown {
    try {
      if (this.#isBehind) return JSON.parse(`{${this.#text.slice(this.#text.indexOf(',') + 1)}`);
    } catch {}
    throw new Broken('its reply is not whole');
  }

  /** Takes the next whole record; null when more text is needed. */
  #record(): string | null {
    const marks = /["{}[\]]/g;
    marks.lastIndex = this.#at;
    while (!this.#isBehind) {
      const index = marks.exec(this.#text)?.index ?? this.#text.length;
      const mark = this.#text[index];
      const end = mark === '"' ? endOfString(this.#text, index) : index + 1;
      if (mark === undefined || end === null) {
        this.#cut(this.#start < 0 ? index : this.#start, index);
        return null;
      }
      marks.lastIndex = end;
      if (mark === '{' || mark === '[') {
        if (++this.#depth === recordDepth) this.#start = index;
      } else if (mark !== '"' && this.#depth-- === recordDepth) {
        const record = this.#text.slice(this.#start, end);
        this.#start = -1;
        this.#at = end;
        return record;
      } else if (mark === ']' && this.#depth === recordDepth - 2) {
        this.#isBehind = true;
        this.#cut(end, end);
      }
    }
    return null;
  }

  /** Drops the text before a place. */
  #cut(before: number, at: number): void {
    this.#text = this.#text.slice(before);
    this.#at = at - before;
    if (this.#start >= 0) this.#start -= before;
  }
}

function endOfString(text: string, start: number): number | null {
  for (let at = start + 1; ; at++) {
    at = text.indexOf('"', at);
    if (at < 0) return null;
    let backslashes = 0;
    while (text[at - 1 - backslashes] === '\\') backslashes++;
    if (backslashes % 2 === 0) return at + 1;
  }
}
