import { isUtf8 } from 'node:buffer';
import type { FieldError, FieldErrorCode } from '../../base/errors.js';
import { toPointer } from '../../base/members.js';
import { normalizeDecimal } from '../../resource/definition/field-types.js';
import { findValueEnd, parseString, scanContainer, skipSpace } from '../../resource/projection/json-scan.js';

export const bodyDepthMax = 20;

/** A JSON value; the outermost object inherits nothing. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type StrictJson = { readonly value: Json } | { readonly faults: readonly FieldError[] };

/** V8 keeps an object without a prototype as a slow hash table. */
const noMembers: object = Object.freeze(Object.create(null));
/** Bounds the characters of all faults in the error response, where each fault counts this many beside its pointer. */
const faultCharactersMax = 65_536;
const charactersPerFault = 100;
const quoteMax = 40;

/** Accepts I-JSON (RFC 7493) without NUL, `__proto__`, and nesting deeper than `depthMax`. A syntax error is reported alone. */
export function parseStrictJson(bytes: Buffer, depthMax: number): StrictJson {
  if (!isUtf8(bytes))
    return { faults: [{ pointer: '', code: 'invalid_utf8', detail: 'The body is not valid UTF-8.' }] };
  const json = bytes.toString();
  let value: Json;
  try {
    value = JSON.parse(json);
  } catch {
    return { faults: [{ pointer: '', code: 'syntax', detail: `The body is ${json === '' ? 'empty' : 'not JSON'}.` }] };
  }
  const faults = listJsonFaults(json, depthMax);
  if (faults.length > 0) return { faults };
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return { value: isObject ? Object.assign(Object.create(noMembers), value) : value };
}

function listJsonFaults(json: string, depthMax: number): FieldError[] {
  const faults: FieldError[] = [];
  let characters = 0;
  const report = (path: readonly string[], code: FieldErrorCode, detail: string): void => {
    if (characters > faultCharactersMax) return;
    const place = toPointer(path);
    characters += place.length + charactersPerFault;
    faults.push({ pointer: place, code, detail });
  };
  const examineText = (text: string, path: readonly string[]): void => {
    if (text.includes('\0')) report(path, 'nul', 'The character NUL is not allowed.');
    if (!text.isWellFormed()) report(path, 'lone_surrogate', 'Half of a surrogate pair is not a character.');
  };
  const examineMembers = (start: number, path: readonly string[]): number => {
    if (path.length >= depthMax) {
      report(path, 'too_deep', `The body is nested deeper than ${depthMax}.`);
      return findValueEnd(json, start);
    }
    const names = new Set<string>();
    return scanContainer(json, start, (name, at) => {
      const inner = [...path, name];
      if (json[start] === '{') examineText(name, path);
      if (name === '__proto__') report(inner, 'forbidden_name', 'This name is not allowed.');
      if (names.has(name)) report(inner, 'duplicate_name', 'This name is given more than once.');
      names.add(name);
      return examine(at, inner);
    });
  };
  const examine = (start: number, path: readonly string[]): number => {
    if (json[start] === '{' || json[start] === '[') return examineMembers(start, path);
    const end = findValueEnd(json, start);
    const literal = json.slice(start, end);
    if (literal.startsWith('"')) examineText(parseString(json, start, end), path);
    else if (/^[-\d]/.test(literal) && normalizeDecimal(literal) !== normalizeDecimal(String(Number(literal))))
      report(path, 'lossy_number', `${literal.slice(0, quoteMax)} cannot be held without loss.`);
    return end;
  };
  examine(skipSpace(json, 0), []);
  return faults;
}
