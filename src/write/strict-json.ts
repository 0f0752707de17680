import { isUtf8 } from 'node:buffer';
import { decimal } from '../definition/field-types.js';
import { pointer } from '../definition/resource.js';
import type { FieldError } from '../errors.js';
import { childrenOf } from '../projection/json-scan.js';

/** How deep a body may nest. */
export const bodyDepthMax = 20;

/** A JSON value; the outermost object inherits nothing. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** The value, or every fault of the text. */
export type StrictJson = { readonly value: Json } | { readonly faults: readonly FieldError[] };

type Fault = FieldError & { readonly pointer: string };

/** The prototype of bodies: V8 keeps an object without one as a hash table, which is slower to read. */
const noMembers: object = Object.freeze(Object.create(null));

/** Bounds the error response: characters of all faults together, and the characters counted per fault beside its pointer. */
const faultCharactersMax = 65_536;
const charactersPerFault = 100;
/** Characters of the body that a fault quotes at most. */
const quoteMax = 40;

/**
 * JSON (RFC 8259) as I-JSON (RFC 7493) narrows it: UTF-8, no duplicate names, no lone surrogates, no number that JavaScript
 * cannot hold without loss. Beyond that no NUL, which PostgreSQL's text cannot hold, no `__proto__`, no nesting deeper than
 * `depthMax`. Each fault has the pointer of its value. A syntax error stands alone, and too deep nesting is the last fault.
 */
export function parseStrictJson(bytes: Buffer, depthMax: number): StrictJson {
  if (!isUtf8(bytes)) {
    return { faults: [{ pointer: '', code: 'invalid_utf8', detail: 'The body is not valid UTF-8.' }] };
  }
  const text = bytes.toString();
  let value: Json;
  try {
    value = JSON.parse(text);
  } catch {
    return { faults: [{ pointer: '', code: 'syntax', detail: `The body is ${text === '' ? 'empty' : 'not JSON'}.` }] };
  }
  const faults: Fault[] = [];
  let characters = 0;
  for (const fault of faultsOf(text.trim(), [], depthMax)) {
    characters += fault.pointer.length + charactersPerFault;
    if (faults.length > 0 && characters > faultCharactersMax) break;
    faults.push(fault);
    if (fault.code === 'too_deep') break;
  }
  if (faults.length > 0) return { faults };
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return { value: isObject ? Object.assign(Object.create(noMembers), value) : value };
}

function* faultsOf(json: string, path: readonly string[], depthMax: number): Generator<Fault> {
  const isObject = json.startsWith('{');
  if (json.startsWith('"')) yield* faultsOfText(JSON.parse(json), path);
  if (/^[-\d]/.test(json) && decimal(json) !== decimal(String(Number(json)))) {
    const detail = `${json.slice(0, quoteMax)} cannot be held without loss.`;
    yield { pointer: pointer(path), code: 'lossy_number', detail };
  }
  if (!isObject && !json.startsWith('[')) return;
  if (path.length >= depthMax) {
    yield { pointer: pointer(path), code: 'too_deep', detail: `The body is nested deeper than ${depthMax}.` };
  }
  const names = new Set<string>();
  for (const [name, value] of childrenOf(json)) {
    const inner = [...path, name];
    if (isObject) yield* faultsOfText(name, path);
    if (name === '__proto__') {
      yield { pointer: pointer(inner), code: 'forbidden_name', detail: 'This name is not allowed.' };
    }
    if (names.has(name)) {
      yield { pointer: pointer(inner), code: 'duplicate_name', detail: 'This name is given more than once.' };
    }
    names.add(name);
    yield* faultsOf(value, inner, depthMax);
  }
}

function* faultsOfText(text: string, path: readonly string[]): Generator<Fault> {
  if (text.includes('\0')) {
    yield { pointer: pointer(path), code: 'nul', detail: 'The character NUL is not allowed.' };
  }
  if (!text.isWellFormed()) {
    const detail = 'Half of a surrogate pair is not a character.';
    yield { pointer: pointer(path), code: 'lone_surrogate', detail };
  }
}
