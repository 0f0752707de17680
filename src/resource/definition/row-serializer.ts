import type { Observe } from '../../base/events.js';
import { splitPointer, toPointer } from '../../base/members.js';
import { Row } from '../../postgres/row.js';
import { type Codec, DecodeError, type PresentRow } from '../projection/codec.js';
import { compileCodec } from '../projection/codecs.js';
import { removeImage } from '../projection/images.js';
import { type ConstantJson, encodeJson, JsonBytes, nullJson } from '../projection/json-bytes.js';
import { listChildren, MalformedJson } from '../projection/json-scan.js';
import { openingList, openingObject, skipBlanks } from '../projection/json-walk.js';
import type { ProjectionOptions } from '../projection/redact.js';
import { getType, type ValueAppender } from './field-types.js';
import { appendShaped, makeShapeAppender } from './parts.js';
import { canFail } from './record-schema.js';
import {
  type Field,
  getColumns,
  getEntityColumn,
  type JsonShape,
  type Leaf,
  listLeaves,
  type Resource,
  versionColumn,
} from './resource.js';

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

/** Texts of the order columns as PostgreSQL prints them, with microseconds. */
export type OrderKey = readonly string[];

/** Appends rows by position, and builds no objects or strings. */
export interface RowSerializer {
  /** Appends null for an undecodable value, names it in `decodeErrors` and observes it; never throws. */
  readonly append: (row: Row, workspace: string, json: JsonBytes) => void;
  readonly toJson: (row: Row, workspace: string) => string;
  readonly keyAt: readonly number[];
  /** The personal fields among the members, separated by commas, for the register of reads. */
  readonly personal: string;
}

/** Bytes that the buffer of single records keeps; most records have some 500. */
const recordBytesKept = 262_144;
const brace = encodeJson('}');

/** Decides once what does not depend on a row. Rows have the `columns`; the record shows the `members`. */
export function compileSerializer(
  resource: Resource,
  options: ProjectionOptions,
  observe: Observe,
  members: readonly Leaf[] = listLeaves(resource),
  columns: readonly string[] = getColumns(resource),
): RowSerializer {
  const positions = members.map(({ field }) => columns.indexOf(field.column));
  const idAt = columns.indexOf('id');
  const { versionSeed } = resource;
  const versionAt = columns.indexOf(versionColumn);
  let failed: string[] = []; // pointers of the row being appended; appending is synchronous, so one list serves
  const cells = new Map<number, string>(); // JSON cells of that row by position: each is decoded once
  const present = { row: new Row(), workspace: '', id: '' };
  const cellAppenders = compileDecoders(resource, options, members, columns, present);
  const noteFailure = (path: readonly string[], row: Row, reason: string): void => {
    const place = { resource: resource.name, row: row.text(idAt) as string, pointer: toPointer(path) };
    failed.push(place.pointer);
    observe({ type: 'decode_failed', ...place, reason });
  };
  const decoding = ({ field, path }: Leaf): ValueAppender => {
    const decoded = cellAppenders.get(field.column) as ValueAppender;
    const isWhole = field.pointer === undefined && field.type !== 'json';
    const append = isWhole ? decoded : makeMemberOfCell(field, decoded, cells);
    return guardUndecodable(append, (row, reason) => noteFailure(path, row, reason));
  };
  const appenders = members.map((member): ValueAppender => {
    const { field } = member;
    const append = canFail(field) ? decoding(member) : makePlainValue(resource, columns, field, options);
    return field.type === 'text' && field.column !== 'id' ? stripImage(append) : append;
  });
  const { prefixes, suffix } = makePunctuation(members);
  /** Runs also before a row: our own code may have failed in the row before. */
  const forget = (): void => {
    if (cells.size > 0) cells.clear();
    if (failed.length > 0) failed = [];
  };
  const append = (row: Row, workspace: string, json: JsonBytes): void => {
    forget();
    if (cellAppenders.size > 0) Object.assign(present, { row, workspace, id: row.text(idAt) });
    for (let i = 0; i < prefixes.length; i++) {
      const at = positions[i] as number;
      json.appendConstant(prefixes[i] as ConstantJson);
      if (row.isNull(at)) json.appendConstant(nullJson);
      else (appenders[i] as ValueAppender)(row, at, json);
    }
    json.appendConstant(suffix);
    if (failed.length > 0) json.appendText(`,"decodeErrors":${JSON.stringify(failed)}`);
    if (versionSeed !== undefined)
      json.appendText(`,"syncVersion":"${formatHexVersion(row.text(versionAt) as string, versionSeed)}"`);
    json.appendConstant(brace);
    forget();
  };
  return {
    append,
    toJson: makeSingleRecord(append),
    keyAt: resource.order.map(({ column }) => columns.indexOf(column)),
    personal: members.flatMap(({ path, field }) => listPersonal(field, path)).join(','),
  };
}

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

/** Replaces a value that cannot be decoded, and the bytes of it that were written before the error, by null. */
function guardUndecodable(append: ValueAppender, note: (row: Row, reason: string) => void): ValueAppender {
  return (row, at, json) => {
    const before = json.length;
    try {
      append(row, at, json);
    } catch (error) {
      json.truncate(before);
      note(row, error instanceof DecodeError ? error.reason : 'unexpected');
      json.appendConstant(nullJson);
    }
  };
}

/** Reads the JSON of a cell, which `cells` keeps for the other members of the row. */
function makeMemberOfCell(field: Field, decoded: ValueAppender, cells: Map<number, string>): ValueAppender {
  const readMember = makeMemberReader(field);
  const append = field.type === 'json' ? makeShapeAppender(field) : null;
  return (row, at, json) => {
    const known = cells.get(at);
    const cell = known ?? (field.codec === undefined ? (row.text(at) as string) : decodeCell(decoded, row, at));
    cells.set(at, cell);
    const member = readMember(cell);
    if (append === null || member === 'null') json.appendText(member);
    else appendShaped(append, member, json);
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

/** Compiles appenders of the encoded columns of the `present` row, by name. */
function compileDecoders(
  { codecs, table }: Resource,
  options: ProjectionOptions,
  members: readonly Leaf[],
  columns: readonly string[],
  present: PresentRow,
): ReadonlyMap<string, ValueAppender> {
  const others = new Map(columns.map((column, at) => [column, at]));
  const used = [...new Set(members.flatMap(({ field }) => field.codec ?? []))];
  return new Map(
    used.flatMap((codec) => {
      const names = new Set(members.flatMap(({ field }) => (field.codec === codec ? field.column : [])));
      const encoded = [...names].map((name) => ({ name, at: columns.indexOf(name) }));
      const appendCell = compileCodec(codecs[codec] as Codec, options, {
        table,
        columns: encoded,
        otherColumns: others,
      });
      return encoded.map((column) => [column.name, (_, __, json) => appendCell(json, column, present)] as const);
    }),
  );
}

function makePlainValue(
  resource: Resource,
  columns: readonly string[],
  field: Field,
  { redaction }: ProjectionOptions,
): ValueAppender {
  const { type, clean, diff, words } = field;
  if (clean === 'audit-diff') {
    const entityAt = columns.indexOf(getEntityColumn(resource));
    const redactDiff = redaction(diff, words);
    return (row, at, json) => json.appendText(redactDiff(row.text(entityAt), row.text(at) as string));
  }
  if (type !== 'json') return getType(type).append;
  const append = makeShapeAppender(field);
  return (row, at, json) => {
    const start = skipBlanks(row.bytes, row.starts[at] as number);
    const isContainer = row.bytes[start] === openingList || row.bytes[start] === openingObject;
    // Nothing ends a number before the bytes of the next column.
    if (isContainer) append(row, start, json);
    else appendShaped(append, (row.text(at) as string).trim(), json);
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
