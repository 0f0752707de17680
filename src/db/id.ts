import { fieldType, type IdType } from '../definition/field-types.js';

/** An id as it is bound: null, which equals nothing, when it cannot be an id. */
export function idOrNull(type: IdType, text: string): string | null {
  return fieldType(type).isPrinted?.(text) ? text : null;
}
