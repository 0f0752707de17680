import {
  type DiffMemberNames,
  type DiffShape,
  readStoredChanges,
  type StoredChange,
  usualDiff,
  usualWords,
} from './audit-diff.js';
import type { CodecOptions } from './codec.js';
import { MalformedJson } from './json-scan.js';

/** Names the fields whose JSON the log shows, by the app's name of the entity and the name of a field. */
export type RedactionRules = Readonly<Record<string, ReadonlyMap<string, LoggedForm>>>;
export type LoggedForm = (json: string) => boolean;

/**
 * Turns a stored diff into JSON of changes, in the definition's words. Values of listed fields are shown if they have the form of the
 * field; any other value leaves the name and {"shielded": true}. Other members are left out; other text becomes []. Never throws.
 */
export type RedactDiff = (entity: string | null, diff: string) => string;
export type Redaction = (shape?: DiffShape, words?: DiffMemberNames) => RedactDiff;

/** Shows names that the rules or `named` list, because a log can have anything in their place. */
export function compileRedaction(rules: RedactionRules, named: readonly string[] = []): Redaction {
  return (shape = usualDiff, words = usualWords) => {
    const names = new Set(
      [...Object.values(rules).flatMap((forms) => [...forms.keys()]), ...named].map(normalizeSpelling),
    );
    const entities = new Map(
      Object.entries(rules).map(([entity, forms]) => [entity, makeFieldNamer(forms, names, words)]),
    );
    const none = makeFieldNamer(new Map(), names, words);
    const [old, next, shielded] = [words.old, words.new, words.shielded].map((word) => `${JSON.stringify(word)}:`);
    const redactChange = (nameField: (name: string) => FieldName, change: StoredChange): string => {
      const { field, form } = nameField(change.name);
      const isShown = (json: string): boolean => json === 'null' || form?.(json) === true;
      return form !== undefined && isShown(change.old) && isShown(change.new)
        ? `${field}${old}${change.old},${next}${change.new}}`
        : `${field}${shielded}true}`;
    };
    return (entity, diff) => {
      const nameField = entities.get(entity ?? '') ?? none;
      try {
        return `[${readStoredChanges(diff, shape).map((change) => redactChange(nameField, change))}]`;
      } catch (error) {
        if (error instanceof MalformedJson) return '[]';
        throw error;
      }
    };
  };
}

interface FieldName {
  /** Undefined: no value is shown. */
  readonly form: LoggedForm | undefined;
  readonly field: string;
}

const namesMax = 200;
const nameLengthMax = 100;

function makeFieldNamer(
  forms: ReadonlyMap<string, LoggedForm>,
  names: ReadonlySet<string>,
  words: DiffMemberNames,
): (name: string) => FieldName {
  const formsByName = new Map([...forms].map(([name, form]) => [normalizeSpelling(name), form]));
  const knownFields = new Map<string, FieldName>();
  return (name) => {
    const found = knownFields.get(name);
    if (found !== undefined) return found;
    const isField = names.has(normalizeSpelling(name)) && name.length <= nameLengthMax;
    const form = isField ? formsByName.get(normalizeSpelling(name)) : undefined;
    const field = `{${JSON.stringify(words.field)}:${JSON.stringify(isField ? name : `(${words.shielded})`)},`;
    if (isField && knownFields.size < namesMax) knownFields.set(name, { form, field });
    return { form, field };
  };
}

/** Makes one name of "vullingKg", "vulling_kg" and "/vullingKg"; a path such as "vulling.kg" stays another. */
export function normalizeSpelling(field: string): string {
  return field.replace(/^\/|[_-]/g, '').toLowerCase();
}

export interface ProjectionOptions extends CodecOptions {
  /** Text of CODEC_MODULE, which decides how values are decoded. */
  readonly moduleText?: string | undefined;
  readonly redaction: Redaction;
}
