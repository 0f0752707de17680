import { Ajv2020 } from 'ajv/dist/2020.js';
import type pg from 'pg';
import { toPointer } from '../../base/members.js';
import { Row, type TextRow } from '../../postgres/row.js';
import type { WorkspaceId } from '../../postgres/statement.js';
import { makeGuardStep, runSteps } from '../../postgres/transaction.js';
import { makeRecordSchema, mayLackValue } from '../../resource/definition/record-schema.js';
import { getColumns, getPlace, type Leaf, listLeaves, type Resource } from '../../resource/definition/resource.js';
import type { ProjectionOptions } from '../../resource/projection/redact.js';
import { compileSerializer } from '../../resource/serializer/row-serializer.js';
import { compileStatements } from '../../resource/statements/statements.js';
import { runReadOnly } from '../check-session.js';
import { type Item, type Level, makeItem, summarizeFaults } from '../finding.js';
import { findUnexpected } from './contents.js';
import { listFormsLeftOut } from './left-out.js';
import { rowsPerEnd, type WorkspaceSample } from './workspaces.js';

const noSecrets = 'No text or JSON of the records holds keys, tokens, cookies or e-mail addresses.';
const noForms = 'JSON has no form of values that show leaves out.';
const workspacesMax = 2;
const limits = `set local statement_timeout = '1s'`;
/** If fewer values were read, all may be damaged although the keys are right. */
const lostMin = 10;
/** A larger fraction of at least `storedMin` values is a failure, otherwise a warning. */
const fractionMax = 0.05;
const storedMin = 20;

/** The faults of the sampled records of a resource are counted here. */
interface SampledRecords {
  count: number;
  readonly idAt: number;
  readonly members: readonly MemberTally[];
  readonly misfits: Set<string>;
  readonly unexpected: Map<string, { readonly count: number; readonly example: string }>;
  readonly leftOut: Map<string, number>;
}

interface MemberTally {
  readonly leaf: Leaf;
  readonly columnAt: number;
  stored: number;
  lost: number;
  example: string;
  readonly reasons: Set<string>;
}

interface DecodedRow {
  readonly texts: TextRow;
  readonly record: object;
  /** Why a value was not decoded, by the pointer of its member. */
  readonly undecodable: ReadonlyMap<string, string>;
}

/** Counts members that are null although a value is stored, and compares records with their JSON Schema. Findings quote no value. */
export async function checkRecords(
  client: pg.Client,
  resource: Resource,
  projection: ProjectionOptions,
  { ids, computeMac }: WorkspaceSample,
): Promise<Item[]> {
  const undecodable = new Map<string, string>();
  const serializer = compileSerializer(resource, projection, (event) => {
    if (event.type === 'decode_failed') undecodable.set(event.pointer, event.reason);
  });
  const listMisfits = makeMisfitFinder(resource);
  const sample = makeSample(resource);
  const tally = (texts: TextRow, workspace: WorkspaceId): void => {
    undecodable.clear();
    const record = JSON.parse(serializer.toJson(Row.make(texts), workspace)) as object;
    tallyRow(sample, { texts, record, undecodable }, resource);
    for (const misfit of listMisfits(record)) sample.misfits.add(misfit);
  };
  const read = async (): Promise<Item[]> => {
    let workspaces = 0;
    for (const workspace of ids) {
      const rows = await readBothEnds(client, resource, computeMac(workspace));
      for (const texts of rows) tally(texts, workspace);
      if (rows.length > 0 && ++workspaces === workspacesMax) break;
    }
    return [describeValues(resource, sample), ...describeRecords(resource, sample)];
  };
  return runReadOnly(client, { settings: limits, object: resource.view }, read, ({ message }) => [
    makeItem('failed', 'values', `They could not be read: ${message}.`, resource.name),
  ]);
}

function makeSample(resource: Resource): SampledRecords {
  const columns = getColumns(resource);
  const members = listLeaves(resource).map((leaf): MemberTally => {
    const columnAt = columns.indexOf(leaf.field.column);
    return { leaf, columnAt, stored: 0, lost: 0, example: '', reasons: new Set() };
  });
  const idAt = columns.indexOf('id');
  return { count: 0, idAt, members, misfits: new Set(), unexpected: new Map(), leftOut: new Map() };
}

function tallyRow(sample: SampledRecords, row: DecodedRow, resource: Resource): void {
  const id = row.texts[sample.idAt] as string;
  sample.count++;
  for (const member of sample.members) {
    const { leaf, columnAt } = member;
    const text = row.texts[columnAt];
    if (isNoTime(leaf.field, text, resource)) continue;
    const value = getValue(row.record, leaf);
    tallyContents(sample, leaf, value, id);
    for (const form of listFormsLeftOut(leaf, text)) sample.leftOut.set(form, (sample.leftOut.get(form) ?? 0) + 1);
    if (text !== null) tallyMember(member, value, id, row.undecodable.get(toPointer(leaf.path)));
    else if (!mayLackValue(leaf.field)) sample.misfits.add(`${getPlace(leaf.path)} (type)`);
  }
}

/** Notes a value that clients should not see, with the record that has it first. */
function tallyContents({ unexpected }: SampledRecords, leaf: Leaf, value: unknown, id: string): void {
  const kind = isChecked(leaf) ? findUnexpected(leaf.path.at(-1) ?? '', value) : undefined;
  if (kind === undefined) return;
  const place = `${getPlace(leaf.path)} holds ${kind}`;
  const { count, example } = unexpected.get(place) ?? { count: 0, example: id };
  unexpected.set(place, { count: count + 1, example });
}

/** Counts a stored value, and whether it is lost. JSON may hold null itself, and images are removed on purpose. */
function tallyMember(member: MemberTally, value: unknown, id: string, reason: string | undefined): void {
  const { clean, pointer, type } = member.leaf.field;
  const isRemoved = clean !== undefined || pointer !== undefined || type === 'json' || type === 'text';
  member.stored++;
  if (reason === undefined && (value !== null || isRemoved)) return;
  if (member.lost++ === 0) member.example = id;
  member.reasons.add(reason ?? 'JSON has no such value');
}

/** Makes an item for contents, one for what `show` leaves out, and one for the schema. */
function describeRecords({ name: object, file }: Resource, sample: SampledRecords): Item[] {
  const { count, misfits, unexpected, leftOut } = sample;
  const contents = [...unexpected].map(
    ([place, each]) => `${place} in ${each.count} of ${count} records, such as ${each.example}`,
  );
  const forms = [...leftOut].map(([form, times]) => `${form} in ${times} of ${count} records`);
  const unfit = misfits.size > 0 ? [`Records do not fit it: ${[...misfits].join('; ')}`] : [];
  const whenFit = `${count} records fit it.`;
  return [
    summarizeFaults('contents', contents, { whenOk: noSecrets, object, level: 'warning', file }),
    summarizeFaults('shown', forms, { whenOk: noForms, object, level: 'warning', file }),
    summarizeFaults('schema', unfit, { whenOk: whenFit, object, level: 'failed', file }),
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

function describeValues({ name: object, file }: Resource, { count, members }: SampledRecords): Item {
  const faulty = members.filter(({ lost }) => lost > 0);
  const levels = faulty.map(getLevel);
  const level = (['refused', 'failed'] as const).find((one) => levels.includes(one)) ?? 'warning';
  const sentences = faulty.map(
    ({ leaf, stored, lost, example, reasons }) =>
      `${getPlace(leaf.path)}: ${lost} of ${stored} values are stored but shown as null (${[...reasons].join(', ')}), such as in row ${example}`,
  );
  const whenOk = `${count} records show every value that is stored.`;
  return summarizeFaults('values', sentences, { whenOk, object, level, file });
}

function getLevel({ stored, lost }: MemberTally): Level {
  if (stored >= lostMin && lost === stored) return 'refused';
  return stored >= storedMin && lost > stored * fractionMax ? 'failed' : 'warning';
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
