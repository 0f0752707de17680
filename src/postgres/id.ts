import { fieldType, type IdType } from '../definition/field-types.js';

/** An id as a statement's value: null, which equals no id, when the text is not an id of the type. */
export function idOrNull(type: IdType, text: string): string | null {
  return fieldType(type).isPrinted?.(text) ? text : null;
}
