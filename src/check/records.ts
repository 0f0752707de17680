import { Ajv2020 } from 'ajv/dist/2020.js';
import type pg from 'pg';
import { mayLackValue, recordSchema } from '../definition/record-schema.js';
import { columnsOf, type Leaf, leaves, placeOf, pointer, type Resource } from '../definition/resource.js';
import { compileSerializer } from '../definition/row-serializer.js';
import { compileStatements } from '../definition/statements.js';
import { Row, type TextRow } from '../postgres/row.js';
import type { WorkspaceId } from '../postgres/statement.js';
import { transactionOn } from '../postgres/transaction.js';
import { holdsImage } from '../projection/images.js';
import type { ProjectionOptions } from '../projection/redact.js';
import { isSignatureName } from '../projection/strip.js';
import { failure, type Item, type Level, verdict, warning, withFile } from './finding.js';
import { asServed, isPassing } from './views.js';

/** With fewer values their form is chance. */
const valuesMin = 5;
const sealedShareMin = 0.9;
const address = /[\w.+-]{1,64}@[\w-]+(\.[\w-]+)*\.[a-z]{2,}/i;
/** Words such as "enc:v2:k1:" before bytes in base64 or hex. */
const sealed = /^(?:[\w.-]{1,40}[:$|!])*(?=[\w+/-]*\d)(?=[\w+/-]*[A-Za-z])([\w+/-]{38,}={0,2})$/;
const digestLengths = [32, 40, 64, 96, 128];

/** The values of the members of a sample, as a list shows them. */
export class ClearValues {
  readonly #values = new Map<Leaf, unknown[]>();

  add(leaf: Leaf, value: unknown): void {
    if (value === null || value === undefined) return;
    const values = this.#values.get(leaf) ?? [];
    this.#values.set(leaf, values);
    values.push(value);
  }

  /** A warning of members that show personal data, images or sealed values as they are stored. No value is in it. */
  items(resource: Resource): Item[] {
    const reasons = [...this.#values].flatMap(([leaf, values]) => {
      const reason = reasonOf(leaf, values);
      return reason === undefined ? [] : [`${placeOf(leaf.path)}: ${reason}`];
    });
    return reasons.length === 0
      ? []
      : [warning('clear_values', `${withFile(reasons, resource).join('; ')}.`, resource.name)];
  }
}

function reasonOf({ field, path }: Leaf, values: readonly unknown[]): string | undefined {
  const texts = values.filter((value) => typeof value === 'string');
  if (field.clean !== 'audit-diff' && values.some(isDiff)) return 'changes of records, without "clean": "audit-diff"';
  const isCleaned = field.clean !== undefined;
  if (!isCleaned && values.some((value) => holdsImage(typeof value === 'string' ? value : JSON.stringify(value))))
    return 'images, without "clean"';
  if (!isCleaned && texts.length > 0 && isSignatureName(path.at(-1) as string)) return 'signatures, without "clean"';
  if (texts.length > 0 && texts.filter((text) => address.test(text)).length * 2 > texts.length)
    return 'e-mail addresses';
  if (texts.length >= valuesMin && texts.filter(isSealed).length >= texts.length * sealedShareMin && !areDigests(texts))
    return 'values that look encrypted, without a codec';
  return undefined;
}

/** Whether the value, or an element of it, has the old and the new value of a field: as two members, or as a pair. */
function isDiff(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(isDiff);
  if (typeof value !== 'object' || value === null) return false;
  const names = Object.keys(value);
  const isPair = (member: unknown): boolean => Array.isArray(member) && member.length === 2;
  return (
    (names.some((name) => /^(oud|old|before|previous)/i.test(name)) &&
      names.some((name) => /^(nieuw|new|after|current)/i.test(name))) ||
    (names.length > 0 && Object.values(value).every(isPair))
  );
}

/** Bytes without form, of a nonce and a tag at least. */
function isSealed(text: string): boolean {
  const [, payload] = sealed.exec(text) ?? [];
  if (payload === undefined) return false;
  const bytes = Buffer.from(payload, /^([0-9a-f]{2})+$/i.test(payload) ? 'hex' : 'base64');
  return bytes.length >= 28 && bytes.toString('utf8').includes('\ufffd');
}

function areDigests(texts: readonly string[]): boolean {
  const [length = 0] = new Set(texts.map((text) => text.length));
  return texts.every((text) => text.length === length && /^[0-9a-f]+$/i.test(text)) && digestLengths.includes(length);
}

/** Rows that are read of each end of the list in each of two workspaces, and the time for a statement. */
const rowsPerEnd = 250;
const begin = `begin read only; ${asServed}; set local statement_timeout = '1s'`;
/** With fewer stored values, all of them may be damaged and the keys right nevertheless. */
const lostMin = 10;
/** A few damaged values are a warning; a larger share of at least `shareMin` values is a failure. */
const shareMax = 0.05;
const shareMin = 20;

/** The stored values of a member, and those of them that are shown as null. */
interface Tally {
  stored: number;
  empty: number;
  /** Id of the first row with such a value. */
  example: string;
  readonly reasons: Set<string>;
}

/**
 * Serializes rows of two workspaces as a list does: members that are null although a value is stored are counted, and the records are
 * compared with their JSON Schema. No value is in the findings.
 */
export async function checkRecords(
  client: pg.Client,
  resource: Resource,
  projection: ProjectionOptions,
  workspaces: readonly WorkspaceId[],
): Promise<Item[]> {
  const reasons = new Map<string, string>();
  const serializer = compileSerializer(resource, projection, (event) => {
    if (event.type === 'decode_failed') reasons.set(event.pointer, event.reason);
  });
  const misfitsOf = misfitsIn(resource);
  const positions = columnsOf(resource);
  const cells = leaves(resource).map((leaf) => ({ leaf, at: positions.indexOf(leaf.field.column) }));
  const tallies = new Map<string, Tally>();
  const misfits = new Set<string>();
  const clear = new ClearValues();
  let count = 0;
  let sampled = 0;
  await client.query(begin);
  try {
    for (const workspace of workspaces) {
      const rows = await bothEnds(client, resource, workspace);
      for (const texts of rows) {
        reasons.clear();
        const record = JSON.parse(serializer.json(Row.of(texts), workspace)) as object;
        const id = texts[positions.indexOf('id')] as string;
        for (const { leaf, at } of cells) {
          clear.add(leaf, valueAt(record, leaf));
          if (texts[at] !== null) tally(tallies, leaf, { id, record, reasons });
          else if (!mayLackValue(leaf.field)) misfits.add(`${placeOf(leaf.path)} (type)`);
        }
        for (const misfit of misfitsOf(record)) misfits.add(misfit);
      }
      count += rows.length;
      if (rows.length > 0 && ++sampled === 2) break;
    }
  } catch (error) {
    if (isPassing(error)) throw error;
    return [failure('values', `They could not be read: ${(error as Error).message}.`, resource.name)];
  } finally {
    await client.query('rollback');
  }
  const items = [valuesItem(resource, count, tallies)];
  if (misfits.size > 0)
    items.push(
      failure('schema', `Records do not fit it: ${withFile([...misfits], resource).join('; ')}.`, resource.name),
    );
  else items.push(verdict('schema', [], `${count} records fit it.`, resource.name));
  return [...items, ...clear.items(resource)];
}

function valueAt(record: object, { path }: Pick<Leaf, 'path'>): unknown {
  return path.reduce<unknown>((inner, name) => (inner as Record<string, unknown>)[name], record);
}

async function bothEnds(client: pg.Client, resource: Resource, workspace: WorkspaceId): Promise<TextRow[]> {
  const { list } = compileStatements(resource);
  const idAt = columnsOf(resource).indexOf('id');
  const rows = new Map<string, TextRow>();
  for (const direction of ['asc', 'desc'] as const) {
    const step = { statement: list([], direction).rows.all, values: { limit: rowsPerEnd } };
    const [found] = await transactionOn(client, workspace).run(step);
    for (const row of found) rows.set(row[idAt] as string, row);
    if (rows.size < rowsPerEnd) break;
  }
  return [...rows.values()];
}

/** Counts a stored value, and whether its member is null. JSON may hold null itself, and cleaning removes values on purpose. */
function tally(
  tallies: Map<string, Tally>,
  { field, path }: Leaf,
  { id, record, reasons }: { id: string; record: object; reasons: ReadonlyMap<string, string> },
): void {
  const at = pointer(path);
  const undecodable = reasons.get(at);
  const value = valueAt(record, { path });
  const isRemoved = field.clean !== undefined || field.pointer !== undefined || field.type === 'json';
  const entry = tallies.get(placeOf(path)) ?? { stored: 0, empty: 0, example: id, reasons: new Set<string>() };
  tallies.set(placeOf(path), entry);
  entry.stored++;
  if (undecodable === undefined && (value !== null || isRemoved)) return;
  if (entry.empty++ === 0) entry.example = id;
  entry.reasons.add(undecodable ?? 'JSON has no such value');
}

function valuesItem(resource: Resource, count: number, tallies: ReadonlyMap<string, Tally>): Item {
  const { name } = resource;
  const shown = [...tallies].filter(([, { empty }]) => empty > 0);
  if (shown.length === 0) return verdict('values', [], `${count} records show every value that is stored.`, name);
  const levels = shown.map(([, one]) => levelOf(one));
  const level = (['refused', 'failed', 'warning'] as const).find((one) => levels.includes(one)) as Level;
  const sentences = shown.map(
    ([member, { stored, empty, example, reasons }]) =>
      `${member}: ${empty} of ${stored} values are stored but shown as null (${[...reasons].join(', ')}), such as in row ${example}`,
  );
  return { level, code: 'values', object: name, detail: `${withFile(sentences, resource).join('; ')}.` };
}

function levelOf({ stored, empty }: Tally): Level {
  if (stored >= lostMin && empty === stored) return 'refused';
  return stored >= shareMin && empty > stored * shareMax ? 'failed' : 'warning';
}

/** A function that names the members of a record that do not fit, each with the keyword of the schema; below a member the data may give names. */
function misfitsIn(resource: Resource): (record: object) => string[] {
  const ajv = new Ajv2020({ allErrors: true, strict: false, validateFormats: false });
  const validate = ajv.compile(recordSchema(resource));
  const members = leaves(resource).map(({ path }) => path);
  return (record) => {
    if (validate(record)) return [];
    return (validate.errors ?? []).map(({ instancePath, keyword }) => {
      const member = members.find((path) => `${instancePath}/`.startsWith(`${pointer(path)}/`));
      return `${member ? placeOf(member) : 'the record'} (${keyword})`;
    });
  };
}
