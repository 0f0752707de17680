import { isUtf8 } from 'node:buffer';
import { decimal } from '../definition/field-types.js';
import type { FieldError, FieldErrorCode } from '../errors.js';

/** How deep a body may nest. */
export const bodyDepthMax = 20;

/** A JSON value; objects inherit nothing. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** The value, or every fault of the text. */
export type StrictJson = { readonly value: Json } | { readonly faults: readonly FieldError[] };

const token =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are not allowed in a string (RFC 8259 §7)
  /[ \t\n\r]*(?:([{}[\],:])|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)|(true|false|null))/y;
/** The prototype of objects: V8 keeps an object without one as a hash table, which is slower to read. */
const noMembers: object = Object.freeze(Object.create(null));
const literals: Readonly<Record<string, Json>> = { true: true, false: false, null: null };

/**
 * JSON (RFC 8259) as I-JSON (RFC 7493) narrows it: UTF-8, no duplicate names, no lone surrogates, no number that JavaScript
 * cannot hold without loss. Beyond that no NUL, which PostgreSQL's text cannot hold, no `__proto__`, no nesting deeper than
 * `depthMax`. Each fault has the pointer of its value. A syntax error or too deep nesting ends the parsing; all other faults are
 * collected, up to the size of the largest body.
 */
export function parseStrictJson(bytes: Buffer, depthMax: number): StrictJson {
  if (!isUtf8(bytes)) {
    return { faults: [{ pointer: '', code: 'invalid_utf8', detail: 'The body is not valid UTF-8.' }] };
  }
  const parser = new Parser(bytes.toString(), depthMax);
  const value = parser.document();
  return parser.faults.length > 0 ? { faults: parser.faults } : { value };
}

/** Ends the parsing; the reason is in the faults. */
class EndParsing extends Error {}
class JsonSyntaxError extends Error {}

/** Bounds the error response: characters of all faults together, and the characters counted per fault beside its pointer. */
const faultCharactersMax = 65_536;
const charactersPerFault = 100;
/** Characters of the body that a fault quotes at most. */
const quoteMax = 40;

class Parser {
  readonly faults: FieldError[] = [];
  readonly #text: string;
  readonly #depthMax: number;
  #at = 0;
  #charactersLeft = faultCharactersMax;

  constructor(text: string, depthMax: number) {
    this.#text = text;
    this.#depthMax = depthMax;
  }

  document(): Json {
    try {
      const value = this.#value(this.#next(), '', 0);
      if (!/^[ \t\n\r]*$/.test(this.#text.slice(this.#at))) throw new JsonSyntaxError();
      return value;
    } catch (error) {
      if (error instanceof EndParsing) return null;
      if (!(error instanceof JsonSyntaxError)) throw error;
      const detail = this.#text === '' ? 'The body is empty.' : `The body is not JSON: see character ${this.#at + 1}.`;
      this.faults.push({ pointer: '', code: 'syntax', detail });
      return null;
    }
  }

  #fault(pointer: string, code: FieldErrorCode, detail: string): void {
    this.#charactersLeft -= pointer.length + charactersPerFault;
    if (this.faults.length > 0 && this.#charactersLeft < 0) throw new EndParsing();
    this.faults.push({ pointer, code, detail });
  }

  #next(): string {
    token.lastIndex = this.#at;
    const match = token.exec(this.#text);
    if (match === null) throw new JsonSyntaxError();
    this.#at = token.lastIndex;
    return (match[1] ?? match[2] ?? match[3] ?? match[4]) as string;
  }

  #value(first: string, pointer: string, depth: number): Json {
    if (first === '{' || first === '[') {
      if (depth >= this.#depthMax) {
        // Parsing on would use as much stack as the body is deep.
        this.#fault(pointer, 'too_deep', `The body is nested deeper than ${this.#depthMax}.`);
        throw new EndParsing();
      }
      return first === '{' ? this.#object(pointer, depth + 1) : this.#array(pointer, depth + 1);
    }
    if (first.startsWith('"')) return this.#string(first, pointer);
    if (first in literals) return literals[first] as Json;
    if (/^[-\d]/.test(first)) return this.#number(first, pointer);
    throw new JsonSyntaxError();
  }

  #object(pointer: string, depth: number): Json {
    const value: { [name: string]: Json } = Object.create(noMembers);
    let next = this.#next();
    if (next === '}') return value;
    for (;;) {
      if (!next.startsWith('"')) throw new JsonSyntaxError();
      const name = this.#string(next, pointer);
      const inner = `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
      if (this.#next() !== ':') throw new JsonSyntaxError();
      if (name === '__proto__') this.#fault(inner, 'forbidden_name', 'This name is not allowed.');
      if (name in value) this.#fault(inner, 'duplicate_name', 'This name is given more than once.');
      value[name] = this.#value(this.#next(), inner, depth);
      next = this.#next();
      if (next === '}') return value;
      if (next !== ',') throw new JsonSyntaxError();
      next = this.#next();
    }
  }

  #array(pointer: string, depth: number): Json {
    const values: Json[] = [];
    let next = this.#next();
    if (next === ']') return values;
    for (;;) {
      values.push(this.#value(next, `${pointer}/${values.length}`, depth));
      next = this.#next();
      if (next === ']') return values;
      if (next !== ',') throw new JsonSyntaxError();
      next = this.#next();
    }
  }

  #string(literal: string, pointer: string): string {
    const text = JSON.parse(literal) as string;
    if (text.includes('\0')) this.#fault(pointer, 'nul', 'The character NUL is not allowed.');
    if (!text.isWellFormed()) this.#fault(pointer, 'lone_surrogate', 'Half of a surrogate pair is not a character.');
    return text;
  }

  #number(literal: string, pointer: string): number {
    const number = Number(literal);
    if (decimal(literal) !== decimal(String(number))) {
      this.#fault(pointer, 'lossy_number', `${literal.slice(0, quoteMax)} cannot be held without loss.`);
    }
    return number;
  }
}
