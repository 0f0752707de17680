import type { Observe } from '../../base/events.js';
import { splitPointer, toPointer } from '../../base/members.js';
import { Row } from '../../postgres/row.js';
import { getType } from '../definition/field-types.js';
import { canFail } from '../definition/record-schema.js';
import {
  type Field,
  getColumns,
  getEntityColumn,
  type JsonShape,
  type Leaf,
  listLeaves,
  type Resource,
  versionColumn,
} from '../definition/resource.js';
import { type Codec, DecodeError, type PresentRow } from '../projection/codec.js';
import { compileCodec } from '../projection/codecs.js';
import { removeImage } from '../projection/images.js';
import { type ConstantJson, encodeJson, JsonBytes, nullJson } from '../projection/json-bytes.js';
import { openingList, openingObject } from '../projection/json-characters.js';
import { listChildren, MalformedJson } from '../projection/json-scan.js';
import { skipBlanks } from '../projection/json-walk.js';
import type { ProjectionOptions } from '../projection/redact.js';
import type { ValueAppender } from '../projection/value-appenders.js';
import { appendShaped, makeShapeAppender } from './shapes.js';

/** Appends rows by position, and builds no objects or strings. */
export interface RowSerializer {
  /** Appends null for an undecodable value, names it in `decodeErrors` and observes it; never throws. */
  readonly append: (row: Row, workspace: string, json: JsonBytes) => void;
  readonly toJson: (row: Row, workspace: string) => string;
  readonly keyAt: readonly number[];
  /** The personal fields among the members, separated by commas, for the register of reads. */
  readonly personal: string;
}

/** The appenders of a serializer share it. Appending is synchronous, so all rows use one state. */
interface RowState extends PresentRow {
  /** Pointers of the values that could not be decoded. */
  readonly failed: string[];
  /** JSON cells by position: each is decoded once, for all members that it has. */
  readonly cells: Map<number, string>;
}

/** The steps of the compilation share it. */
interface SerializerContext {
  readonly resource: Resource;
  readonly options: ProjectionOptions;
  readonly observe: Observe;
  readonly members: readonly Leaf[];
  readonly columns: readonly string[];
  readonly state: RowState;
}

/** Decides once what does not depend on a row. Rows have the `columns`; the record shows the `members`. */
export function compileSerializer(
  resource: Resource,
  options: ProjectionOptions,
  observe: Observe,
  members: readonly Leaf[] = listLeaves(resource),
  columns: readonly string[] = getColumns(resource),
): RowSerializer {
  const state: RowState = { row: new Row(), workspace: '', id: '', failed: [], cells: new Map() };
  const context: SerializerContext = { resource, options, observe, members, columns, state };
  const decoders = compileDecoders(context);
  const appenders = members.map((member) => compileMember(context, member, decoders));
  const append = joinMembers(context, appenders, decoders.size > 0);
  return {
    append,
    toJson: makeSingleRecord(append),
    keyAt: resource.order.map(({ column }) => columns.indexOf(column)),
    personal: members.flatMap(({ path, field }) => listPersonal(field, path)).join(','),
  };
}

type Decoders = ReadonlyMap<string, ValueAppender>;

function compileMember(context: SerializerContext, { field, path }: Leaf, decoders: Decoders): ValueAppender {
  const append = canFail(field)
    ? guardUndecodable(makeDecodedValue(context, field, decoders), context, path)
    : makePlainValue(context, field);
  return field.type === 'text' && field.column !== 'id' ? stripImage(append) : append;
}

function makeDecodedValue({ state }: SerializerContext, field: Field, decoders: Decoders): ValueAppender {
  const decoded = decoders.get(field.column) as ValueAppender;
  const isWhole = field.pointer === undefined && field.type !== 'json';
  return isWhole ? decoded : makeMemberOfCell(field, decoded, state.cells);
}

const brace = encodeJson('}');

/** Appends `{"id":`, the first value, `,"naam":`, the second one, and so on, then what a record has beside its members. */
function joinMembers(
  { resource: { versionSeed }, members, columns, state }: SerializerContext,
  appenders: readonly ValueAppender[],
  hasDecoders: boolean,
): RowSerializer['append'] {
  const { prefixes, suffix } = makePunctuation(members);
  const positions = members.map(({ field }) => columns.indexOf(field.column));
  const idAt = columns.indexOf('id');
  const versionAt = columns.indexOf(versionColumn);
  const { failed } = state;
  return (row, workspace, json) => {
    dropRow(state); // our own code may have failed in the row before
    if (hasDecoders) Object.assign(state, { row, workspace, id: row.getText(idAt) });
    for (let i = 0; i < prefixes.length; i++) {
      const at = positions[i] as number;
      json.appendConstant(prefixes[i] as ConstantJson);
      if (row.isNull(at)) json.appendConstant(nullJson);
      else (appenders[i] as ValueAppender)(row, at, json);
    }
    json.appendConstant(suffix);
    if (failed.length > 0) json.appendText(`,"decodeErrors":${JSON.stringify(failed)}`);
    if (versionSeed !== undefined)
      json.appendText(`,"syncVersion":"${formatHexVersion(row.getText(versionAt) as string, versionSeed)}"`);
    json.appendConstant(brace);
    dropRow(state);
  };
}

function dropRow({ cells, failed }: RowState): void {
  if (cells.size > 0) cells.clear();
  if (failed.length > 0) failed.length = 0;
}

/** Bytes that the buffer of single records keeps; most records have some 500. */
const recordBytesKept = 262_144;

/** Makes texts of records in one shared buffer. */
function makeSingleRecord(append: RowSerializer['append']): RowSerializer['toJson'] {
  const record = new JsonBytes(4096, recordBytesKept);
  return (row, workspace) => {
    try {
      append(row, workspace, record);
      return record.toString();
    } finally {
      record.clear();
    }
  };
}

/** Replaces a value that cannot be decoded, and the bytes of it that were appended before the error, by null. */
function guardUndecodable(append: ValueAppender, context: SerializerContext, path: readonly string[]): ValueAppender {
  const { resource, observe, columns, state } = context;
  const pointer = toPointer(path);
  const idAt = columns.indexOf('id');
  return (row, at, json) => {
    const before = json.length;
    try {
      append(row, at, json);
    } catch (error) {
      json.truncate(before);
      json.appendConstant(nullJson);
      state.failed.push(pointer);
      const reason = error instanceof DecodeError ? error.reason : 'unexpected';
      const bug = reason === 'unexpected' ? { error: error as Error } : {};
      const id = row.getText(idAt) as string;
      observe({ type: 'decode_failed', resource: resource.name, row: id, pointer, reason, ...bug });
    }
  };
}

/** Reads the JSON of a cell, which `cells` keeps for the other members of the row. */
function makeMemberOfCell(field: Field, decoded: ValueAppender, cells: Map<number, string>): ValueAppender {
  const readMember = makeMemberReader(field);
  const append = field.type === 'json' ? makeShapeAppender(field) : null;
  return (row, at, json) => {
    const known = cells.get(at);
    const cell = known ?? (field.codec === undefined ? (row.getText(at) as string) : decodeCell(decoded, row, at));
    cells.set(at, cell);
    const member = readMember(cell);
    if (append === null || member === 'null') json.appendText(member);
    else appendShaped(append, member, json);
  };
}

/** Scans instead of parsing, so that numbers keep every digit. Returns "null" for a missing member; throws DecodeError. */
function makeMemberReader({ pointer = '', type }: Field): (cell: string) => string {
  const tokens = splitPointer(pointer);
  return (cell) => {
    let value: string | undefined = cell.trim();
    try {
      for (const token of tokens) value = listChildren(value ?? '').findLast(([name]) => name === token)?.[1];
    } catch (error) {
      throw error instanceof MalformedJson ? new DecodeError('bad_format') : error;
    }
    if (value === undefined || value === 'null') return 'null';
    if (!getType(type).isMember?.(value)) throw new DecodeError('bad_format');
    return value;
  };
}

function listPersonal({ personal, items, fields = {} }: JsonShape, path: readonly string[]): string[] {
  if (personal) return [path.join('.')];
  const inside = Object.entries(fields).flatMap(([name, part]) => listPersonal(part, [...path, name]));
  return [...inside, ...(items === undefined ? [] : listPersonal(items, path))];
}

function formatHexVersion(version: string, seed: bigint): string {
  return BigInt.asUintN(64, BigInt(version) ^ seed)
    .toString(16)
    .padStart(16, '0');
}

/** Decodes a cell that holds JSON. Throws DecodeError. */
function decodeCell(decoded: ValueAppender, row: Row, at: number): string {
  const quoted = new JsonBytes(1024);
  decoded(row, at, quoted);
  const text = String(JSON.parse(quoted.toString()));
  try {
    JSON.parse(text);
    return text;
  } catch {
    throw new DecodeError('bad_format');
  }
}

/** Compiles appenders of the encoded columns, by name. */
function compileDecoders({ resource, options, members, columns, state }: SerializerContext): Decoders {
  const { codecs, table } = resource;
  const others = new Map(columns.map((column, at) => [column, at]));
  const usedCodecs = [...new Set(members.flatMap(({ field }) => field.codec ?? []))];
  return new Map(
    usedCodecs.flatMap((codec) => {
      const names = new Set(members.flatMap(({ field }) => (field.codec === codec ? field.column : [])));
      const encoded = [...names].map((name) => ({ name, at: columns.indexOf(name) }));
      const rows = { table, columns: encoded, otherColumns: others };
      const appendCell = compileCodec(codecs[codec] as Codec, options, rows);
      return encoded.map((column) => [column.name, (_, __, json) => appendCell(json, column, state)] as const);
    }),
  );
}

function makePlainValue({ resource, columns, options }: SerializerContext, field: Field): ValueAppender {
  const { type, clean, diff, words } = field;
  if (clean === 'audit-diff') {
    const entityAt = columns.indexOf(getEntityColumn(resource));
    const redactDiff = options.redaction(diff, words);
    return (row, at, json) => json.appendText(redactDiff(row.getText(entityAt), row.getText(at) as string));
  }
  if (type !== 'json') return getType(type).append;
  const append = makeShapeAppender(field);
  return (row, at, json) => {
    const start = skipBlanks(row.bytes, row.starts[at] as number);
    const isContainer = row.bytes[start] === openingList || row.bytes[start] === openingObject;
    // Nothing ends a number before the bytes of the next column.
    if (isContainer) append(row, start, json);
    else appendShaped(append, (row.getText(at) as string).trim(), json);
  };
}

function stripImage(append: ValueAppender): ValueAppender {
  return (row, at, json) => {
    const before = json.length;
    append(row, at, json);
    removeImage(json, before);
  };
}

/** Cuts the JSON between values from a record with placeholders for them. */
function makePunctuation(all: readonly Leaf[]): { prefixes: ConstantJson[]; suffix: ConstantJson } {
  const placeholder = '\0';
  const record: Record<string, string | Record<string, string>> = Object.create(null);
  for (const { path } of all) {
    const [name, inner] = path as [string, string?];
    record[name] =
      inner === undefined ? placeholder : { ...(record[name] as Record<string, string>), [inner]: placeholder };
  }
  const pieces = JSON.stringify(record).split(JSON.stringify(placeholder));
  const suffix = pieces.pop()?.slice(0, -1) ?? '';
  return { prefixes: pieces.map(encodeJson), suffix: encodeJson(suffix) };
}
