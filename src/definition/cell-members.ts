import { DecodeError } from '../projection/codec.js';
import { holdsImage } from '../projection/images.js';
import { elementsOf, MalformedJson, memberOf } from '../projection/json-scan.js';
import { stripImages } from '../projection/strip.js';
import { fieldType } from './field-types.js';
import type { Field } from './resource.js';

/**
 * Makes the function that finds, in a JSON cell, the JSON of a field that is a member of it; "null" where there is none. Scanned, not
 * parsed, so that numbers keep every digit. It throws DecodeError when the cell is not JSON or the member is not of the field's type.
 */
export function memberReader({ pointer = '', type, clean }: Field): (cell: string) => string {
  const tokens = tokensOf(pointer);
  return (cell) => {
    const value = at(cell.trim(), tokens);
    if (value === undefined || value === 'null') return 'null';
    if (!fieldType(type).isMember?.(value)) throw new DecodeError('bad_format');
    if (clean === 'json-images') return stripImages(value);
    return clean === 'text-images' && holdsImage(String(JSON.parse(value))) ? 'null' : value;
  };
}

/** The text of a decoded cell, once it is sure that it is JSON. Throws DecodeError. */
export function jsonCell(text: string): string {
  try {
    JSON.parse(text);
    return text;
  } catch {
    throw new DecodeError('bad_format');
  }
}

function at(json: string, tokens: readonly string[]): string | undefined {
  let value: string | undefined = json;
  try {
    for (const token of tokens) value = value && inside(value, token);
  } catch (error) {
    throw error instanceof MalformedJson ? new DecodeError('bad_format') : error;
  }
  return value;
}

function inside(container: string, token: string): string | undefined {
  if (container.startsWith('{')) return memberOf(container, token);
  const isIndex = container.startsWith('[') && /^(0|[1-9]\d{0,8})$/.test(token);
  return isIndex ? elementsOf(container)[Number(token)] : undefined;
}

/** "/a~1b/0" → "a/b", "0" (RFC 6901). */
function tokensOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}
