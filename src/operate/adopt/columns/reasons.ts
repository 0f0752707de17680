import { isNamed, type Purpose, toSnakeCase } from '../../../base/words.js';
import { areAddresses, findSecret, isPersonalDocument } from '../../../doctor/thorough/contents.js';
import { toSingular } from '../names.js';
import { askOnce, type Column, type Point, type Table, type TypeMember } from '../schema.js';
import { areSealedByCodec, type Form, guessColumnForm, isSealedDocument, listMembers } from './sampled-values.js';
import { getTypeName, holdsDocuments, holdsValue, isDocument, isInteger, isNumber, isTextual } from './types.js';

// The public face of columns/, which judges a column alone: types.ts has what its type means, sampled-values.ts what its values are,
// deletions.ts whether it hides rows, and this file whether clients may see it. Example: `password_hash` is left out ("secrets, by the
// name"), `note` with sealed texts as well ("sealed values, by the values"), and `title` is shown.

/** The first reason that holds says why no field shows a column. */
type Reasons = Readonly<Record<string, (column: Column, form: Form) => boolean>>;

const reasonsByName: Reasons = {
  'search index of other columns, by the type': (column) => getTypeName(column) === 'tsvector',
  'embedding of other columns, by the type': (column) => /^(half|sparse)?vec(tor)?$/.test(getTypeName(column)),
  'sealed values, by the name': (column) =>
    (isTextual(column) || column.type === 'bytea') &&
    /(^|_)(encrypted|cipher|ciphertext|cipher_text|sealed|enc)(_|$)/.test(toSnakeCase(column.name)) &&
    guessColumnForm(column) === 'plain',
  'unknown bytes, by the type': (column) => column.isArray && getTypeName(column) === 'bytea',
  // A count of tokens is no secret, but a PIN can be stored as a number.
  'secrets, by the name': (column) =>
    holdsValue(column) &&
    speaksOf('secret', column) &&
    (!isNumber(column) || isNamed('numericSecret', column.name)) &&
    !isReference(column),
  'secrets, by the names of table and column': (column) => isSecretInTable(column),
  // A telephone number may be stored as a number; a count of mails is none, and a day of birth is a date.
  'personal data, by the name': (column) =>
    (column.type !== 'boolean' && isNamed('birth', column.name)) ||
    (holdsValue(column) && speaksOf('contact', column) && !(isInteger(column) && /mail/i.test(column.name))),
  'images and signatures, by the name': (column) => holdsValue(column) && isNamed('image', column.name),
};

/** The name must speak of the value itself, and not of its type or lifetime, as token_type does. */
function speaksOf(purpose: Purpose, { name }: Column): boolean {
  return isNamed(purpose, name) && !isNamed('aboutSecret', name);
}

/** Is true for a reference to a record with a secret, such as api_key_id; but the id of a session can be the secret itself. */
function isReference({ name, refers }: Column): boolean {
  return refers && /_id$/.test(toSnakeCase(name)) && !/session_id$/.test(toSnakeCase(name));
}

/** Is true for the code in a table of passcodes, or the textual id in a table of sessions. */
function isSecretInTable(column: Column): boolean {
  const name = `${toSingular(toSnakeCase(column.table))}_${toSnakeCase(column.name)}`;
  if (!isNamed('secretInTable', name)) return false;
  if (name.endsWith('_id')) return isTextual(column);
  return holdsValue(column) && (!isNumber(column) || isNamed('numericSecret', name));
}

/** Only the operator knows which codec opens such values, and whether clients may see them. */
export const sealedReason =
  'sealed values, by the values: name their codec in the definition, as docs/adopt/adapting.md shows';

const reasonsByValues: Reasons = {
  'states of other records, by the name': (column) => isNamed('state', column.name) && holdsDocuments(column),
  // The sample can be of an app that has not used the column yet.
  'no value in the sample, and a name of what can hold secrets': (column) =>
    column.values.length === 0 && (isDocument(column) || isTextual(column)) && isNamed('secretDocument', column.name),
  'free JSON of which the sample has no member to list': (column) =>
    /^jsonb?$/.test(getTypeName(column)) && listMembers(column.values).length === 0,
  'keys, tokens or cookies, by the values': ({ values }) => values.some((value) => findSecret(value) !== undefined),
  'e-mail addresses, by the values': ({ values }) => areAddresses(values),
  'documents with personal data, by the names of their members': ({ values }) => values.some(isPersonalDocument),
  [sealedReason]: ({ values }, form) =>
    (form === 'sealed' && !areSealedByCodec(values)) || (values.length > 0 && values.every(isSealedDocument)),
};

/** Judges by type and name; undefined if clients may see the column. */
export function findReasonToLeaveOut(column: Column): string | undefined {
  if (column.isWanted) return undefined;
  return Object.entries(reasonsByName).find(([, holds]) => holds(column, 'plain'))?.[0];
}

/** Judges by type, name and values; undefined if clients may see the column. */
export function findReasonNotToShow(column: Column, documents: readonly Column[]): string | undefined {
  if (column.isWanted) return undefined;
  const form = guessColumnForm(column);
  return (
    findReasonToLeaveOut(column) ??
    (documents.includes(column) ? 'documents of an audit log, which hold values of any field' : undefined) ??
    Object.entries(reasonsByValues).find(([, holds]) => holds(column, form))?.[0] ??
    (['plain', 'base64', 'sealed'].includes(form) ? undefined : `${form}, by the values`)
  );
}

/** A row with such a name holds a secret beside it, as "smtp.password" does. */
function isSecretSetting(name: string): boolean {
  return /^[\w.:/-]+$/.test(name) && isNamed('secret', name) && !isNamed('aboutSecret', name);
}

export interface ColumnVerdicts {
  readonly shown: readonly Column[];
  readonly leftOut: readonly (readonly [reason: string, name: string])[];
}

/** Judges each column alone, then those that depend on others: generated columns, values beside the name of a setting, ids of keys. */
export function judgeColumns(
  columns: readonly Column[],
  reasonOf: (column: Column) => string | undefined,
): ColumnVerdicts {
  const ownReasons = columns.map(reasonOf);
  const areSettings = columns.some(({ name, values }) => isNamed('settingName', name) && values.some(isSecretSetting));
  const left = columns.flatMap(({ name }, i) => (ownReasons[i] === undefined ? [] : [name]));
  const reasons = columns.map((column, i) => {
    if (ownReasons[i] !== undefined || column.isWanted) return ownReasons[i];
    const isMadeOfLeft = holdsValue(column) && !isInteger(column) && column.madeOf.some((name) => left.includes(name));
    if (isMadeOfLeft) return 'generated from columns that are left out';
    if (areSettings && isNamed('settingValue', column.name)) return 'values of settings, some of which are secrets';
    return ownReasons.includes(sealedReason) && isNamed('keyId', column.name) ? 'ids of keys, by the name' : undefined;
  });
  return {
    shown: columns.filter((_, i) => reasons[i] === undefined),
    leftOut: columns.flatMap(({ name }, i) => (reasons[i] === undefined ? [] : [[reasons[i], name] as const])),
  };
}

export function describeLeftOut(table: Table, leftOut: ColumnVerdicts['leftOut']): Point[] {
  return [...new Set(leftOut.map(([reason]) => reason))].map((reason) => {
    const names = leftOut.filter(([each]) => each === reason).map(([, name]) => name);
    const text = `Columns are left out (${reason}). Where clients may see them, add them to view and definition.`;
    return askOnce(text, table, names.join(', '));
  });
}

/** Is true for what is about a person, also for the name of a customer, who can be one. */
export function isPersonal({ name, type, table = '' }: TypeMember & Partial<Column>): boolean {
  if (type === 'boolean') return false;
  const isContact = isNamed('contact', name) && !isNamed('aboutSecret', name);
  const isOfPerson = isContact || isNamed('personal', name) || isNamed('birth', name);
  return isOfPerson || (isNamed('label', name) && isNamed('personTable', table));
}

/** The audit log of the API may show such a text: the app sets it to one of few words, such as a state or a code. */
export function isLogText(column: Column): boolean {
  return isTextual(column) && isNamed('logged', column.name) && !isPersonal(column);
}
