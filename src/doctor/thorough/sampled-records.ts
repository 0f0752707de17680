import { Ajv2020 } from 'ajv/dist/2020.js';
import type pg from 'pg';
import { toPointer } from '../../base/members.js';
import { Row, type TextRow } from '../../postgres/row.js';
import type { WorkspaceId } from '../../postgres/statement.js';
import { makeGuardStep, runSteps } from '../../postgres/transaction.js';
import type { WorkspaceMac } from '../../postgres/workspace-mac.js';
import { makeRecordSchema, mayLackValue } from '../../resource/definition/record-schema.js';
import { getColumns, getPlace, type Leaf, listLeaves, type Resource } from '../../resource/definition/resource.js';
import type { ProjectionOptions } from '../../resource/projection/redact.js';
import { compileSerializer } from '../../resource/serializer/row-serializer.js';
import { compileStatements } from '../../resource/statements/statements.js';
import { runReadOnly } from '../check-session.js';
import { fail, faultIf, type Item, type Level, nameFile, sumUp } from '../finding.js';
import { findUnexpected } from './contents.js';
import { listFormsLeftOut } from './left-out.js';

const noSecrets = 'No text or JSON of the records holds keys, tokens, cookies or e-mail addresses.';
const rowsPerEnd = 250;
const bound = `set local statement_timeout = '1s'`;
/** If fewer values were read, all may be damaged although the keys are right. */
const lostMin = 10;
/** A larger fraction of at least `storedMin` values is a failure, otherwise a warning. */
const fractionMax = 0.05;
const storedMin = 20;

interface TalliedMember {
  readonly leaf: Leaf;
  readonly at: number;
  stored: number;
  empty: number;
  example: string;
  readonly reasons: Set<string>;
}

interface FoundInRecords {
  count: number;
  readonly misfits: Set<string>;
  readonly unexpected: Map<string, { count: number; readonly example: string }>;
  readonly leftOut: Map<string, number>;
}

/** Counts members that are null although a value is stored, and compares records with their JSON Schema. Findings quote no value. */
export async function checkRecords(
  client: pg.Client,
  resource: Resource,
  projection: ProjectionOptions,
  workspaces: readonly WorkspaceId[],
  computeMac: WorkspaceMac,
): Promise<Item[]> {
  const reasons = new Map<string, string>();
  const serializer = compileSerializer(resource, projection, (event) => {
    if (event.type === 'decode_failed') reasons.set(event.pointer, event.reason);
  });
  const misfitsOf = makeMisfitFinder(resource);
  const positions = getColumns(resource);
  const members = listLeaves(resource).map((leaf): TalliedMember => {
    const at = positions.indexOf(leaf.field.column);
    return { leaf, at, stored: 0, empty: 0, example: '', reasons: new Set() };
  });
  const sample: FoundInRecords = { count: 0, misfits: new Set(), unexpected: new Map(), leftOut: new Map() };
  const { misfits, unexpected, leftOut } = sample;
  let sampled = 0;
  const read = async (): Promise<Item[]> => {
    for (const workspace of workspaces) {
      const rows = await readBothEnds(client, resource, computeMac(workspace));
      for (const texts of rows) {
        reasons.clear();
        const record = JSON.parse(serializer.toJson(Row.make(texts), workspace)) as object;
        const id = texts[positions.indexOf('id')] as string;
        for (const member of members) {
          const { leaf, at } = member;
          const value = getValue(record, leaf);
          if (isNoTime(leaf.field, texts[at], resource)) continue;
          const kind = isChecked(leaf) ? findUnexpected(leaf.path.at(-1) ?? '', value) : undefined;
          if (kind !== undefined) {
            const place = `${getPlace(leaf.path)} holds ${kind}`;
            const known = unexpected.get(place);
            unexpected.set(place, { count: (known?.count ?? 0) + 1, example: known?.example ?? id });
          }
          for (const form of listFormsLeftOut(leaf, texts[at])) leftOut.set(form, (leftOut.get(form) ?? 0) + 1);
          if (texts[at] !== null) tallyMember(member, id, value, reasons.get(toPointer(leaf.path)));
          else if (!mayLackValue(leaf.field)) misfits.add(`${getPlace(leaf.path)} (type)`);
        }
        for (const misfit of misfitsOf(record)) misfits.add(misfit);
      }
      sample.count += rows.length;
      if (rows.length > 0 && ++sampled === 2) break;
    }
    return [describeValues(resource, sample.count, members), ...describeRecords(resource, sample)];
  };
  return runReadOnly(client, { settings: bound, object: resource.view }, read, ({ message }) => [
    fail('values', `They could not be read: ${message}.`, resource.name),
  ]);
}

/** Makes an item for contents, one for what `show` leaves out, and one for the schema. */
function describeRecords(resource: Resource, { count, misfits, unexpected, leftOut }: FoundInRecords): Item[] {
  const object = resource.name;
  const bad = `Records do not fit it: ${nameFile([...misfits], resource).join('; ')}`;
  const forms = [...leftOut].map(([form, times]) => `${form} in ${times} of ${count} records`);
  const contents = [...unexpected].map(
    ([place, each]) => `${place} in ${each.count} of ${count} records, such as ${each.example}`,
  );
  return [
    sumUp('contents', nameFile(contents, resource), noSecrets, object, 'warning'),
    sumUp('shown', nameFile(forms, resource), 'JSON has no form of values that show leaves out.', object, 'warning'),
    sumUp('schema', faultIf(misfits.size > 0, bad), `${count} records fit it.`, object, 'failed'),
  ];
}

function getValue(record: object, { path }: Pick<Leaf, 'path'>): unknown {
  return path.reduce<unknown>((inner, name) => (inner as Record<string, unknown>)[name], record);
}

async function readBothEnds(client: pg.Client, resource: Resource, mac: string): Promise<TextRow[]> {
  const { list } = compileStatements(resource);
  const idAt = getColumns(resource).indexOf('id');
  const rows = new Map<string, TextRow>();
  for (const direction of ['asc', 'desc'] as const) {
    const step = { statement: list([], direction).rows.all, values: { limit: rowsPerEnd } };
    const [found] = await runSteps(client, false, [step], [makeGuardStep(mac)]);
    for (const row of found?.rows ?? []) rows.set(row[idAt] as string, row);
    if (rows.size < rowsPerEnd) break;
  }
  return [...rows.values()];
}

/** Recognizes -infinity, which a view gives to put rows without a time first. */
function isNoTime({ column }: Leaf['field'], text: string | null | undefined, { order }: Resource): boolean {
  return text === '-infinity' && order.some((each) => each.column === column);
}

/** Recognizes members whose text or JSON clients see as it is; lists of members and logs are checked by their definition. */
function isChecked({ field: { type, clean, codec } }: Leaf): boolean {
  return (type === 'text' || type === 'json') && clean !== 'audit-diff' && codec === undefined;
}

/** Counts a member. JSON may hold null itself, and images are removed on purpose. */
function tallyMember(member: TalliedMember, id: string, value: unknown, undecodable: string | undefined): void {
  const { clean, pointer, type } = member.leaf.field;
  const isRemoved = clean !== undefined || pointer !== undefined || type === 'json' || type === 'text';
  member.stored++;
  if (undecodable === undefined && (value !== null || isRemoved)) return;
  if (member.empty++ === 0) member.example = id;
  member.reasons.add(undecodable ?? 'JSON has no such value');
}

function describeValues(resource: Resource, count: number, members: readonly TalliedMember[]): Item {
  const { name } = resource;
  const lost = members.filter(({ empty }) => empty > 0);
  if (lost.length === 0) return sumUp('values', [], `${count} records show every value that is stored.`, name);
  const levels = lost.map(getLevel);
  const level = (['refused', 'failed', 'warning'] as const).find((one) => levels.includes(one)) as Level;
  const sentences = lost.map(
    ({ leaf, stored, empty, example, reasons }) =>
      `${getPlace(leaf.path)}: ${empty} of ${stored} values are stored but shown as null (${[...reasons].join(', ')}), such as in row ${example}`,
  );
  return { level, code: 'values', object: name, detail: `${nameFile(sentences, resource).join('; ')}.` };
}

function getLevel({ stored, empty }: TalliedMember): Level {
  if (stored >= lostMin && empty === stored) return 'refused';
  return stored >= storedMin && empty > stored * fractionMax ? 'failed' : 'warning';
}

/** Names the keyword of the schema, without names from the data below a member. */
function makeMisfitFinder(resource: Resource): (record: object) => string[] {
  const ajv = new Ajv2020({ allErrors: true, strict: false, validateFormats: false, ownProperties: true });
  const validate = ajv.compile(makeRecordSchema(resource));
  const members = listLeaves(resource).map(({ path }) => path);
  return (record) => {
    if (validate(record)) return [];
    return (validate.errors ?? []).map(({ instancePath, keyword }) => {
      const member = members.find((path) => `${instancePath}/`.startsWith(`${toPointer(path)}/`));
      return `${member ? getPlace(member) : 'the record'} (${keyword})`;
    });
  };
}
