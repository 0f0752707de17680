import type { Row } from '../db/guarded-query.js';
import type { Observe } from '../ops/events.js';
import { type CodecName, type CodecOptions, compileCodec, type RowDecoder } from '../projection/codecs.js';
import { DecodeError } from '../projection/decode-error.js';
import { holdsImage } from '../projection/images.js';
import { redactDiff } from '../projection/redact.js';
import { stripImages } from '../projection/strip.js';
import { type Field, type FieldType, type Leaf, leaves, pointer, type Resource } from '../resources/definition.js';

/** The values of the two order columns as PostgreSQL prints them, microseconds included: where a page begins or ends. */
export type Key = readonly [string, string];

/** Turns the rows of a view into JSON, by position, without building objects. */
export interface RowWriter {
  /** The record's JSON. A value that cannot be decoded is null, named in `decodeErrors` and observed; nothing throws. */
  readonly write: (row: Row, workspace: string) => string;
  /** The row's place in the total order. */
  readonly key: (row: Row) => Key;
}

/** JSON of a stored value, null never given. */
type Writer = (value: string, row: Row) => string;

const quoted: Writer = (value) => `"${value}"`;

/** PostgreSQL's text form (ISO dates, UTC) → JSON. Infinite dates and numbers, which JSON does not have, become null. */
const writers: Readonly<Record<FieldType, Writer>> = {
  uuid: quoted,
  bigint: quoted,
  text: (value) => JSON.stringify(value),
  integer: (value) => value,
  number: (value) => (value.charCodeAt(value.length - 1) <= 57 ? value : 'null'),
  boolean: (value) => (value === 't' ? 'true' : 'false'),
  date: (value) => (value.length === 10 ? `"${value}"` : 'null'),
  timestamp: writeTimestamp,
  json: (value) => value,
};

/** "2026-03-29 01:59:59.123456+00" → "2026-03-29T01:59:59.123Z" (RFC 3339; microseconds are cut, not rounded). */
function writeTimestamp(value: string): string {
  if (value.charCodeAt(10) !== 32) return 'null';
  const fraction = value.length > 22 ? value.slice(20, -3) : '';
  return `"${value.slice(0, 10)}T${value.slice(11, 19)}.${fraction.length >= 3 ? fraction.slice(0, 3) : fraction.padEnd(3, '0')}Z"`;
}

/**
 * Everything that does not depend on a row is decided here, once. Rows always hold all columns of the resource; `shown`
 * picks what becomes a member.
 */
export function compileRowWriter(
  resource: Resource,
  codecs: CodecOptions,
  observe: Observe,
  shown: (field: Field) => boolean = () => true,
): RowWriter {
  const all = leaves(resource);
  const members = all.filter(({ field }) => shown(field));
  const positions = members.map((leaf) => all.indexOf(leaf));
  const position = (column: string): number => all.findIndex(({ field }) => field.column === column);
  const [first, second] = resource.order.map(({ column }) => position(column)) as [number, number];
  const idAt = position('id');
  let failed: string[] = []; // pointers of the row being written; writing is synchronous, so one list serves
  const decoders = compileDecoders(resource, codecs, members, positions);
  const writeLeaf = members.map((leaf): Writer => {
    const { field, path } = leaf;
    if (field.codec === undefined) return cleaning(resource, all, field);
    const { decoder, leaves: decoded } = decoders.get(field.codec) as Decoding;
    const column = decoded.indexOf(leaf);
    return (_, row) => {
      try {
        return decoder.json(column);
      } catch (error) {
        const reason = error instanceof DecodeError ? error.reason : 'unexpected';
        failed.push(pointer(path));
        observe({
          type: 'decode_failed',
          resource: resource.name,
          row: row[idAt] as string,
          pointer: pointer(path),
          reason,
        });
        return 'null';
      }
    };
  });
  const decoding = [...decoders.values()];
  const { prefixes, suffix } = punctuation(members);
  const write = (row: Row, workspace: string): string => {
    for (const { decoder } of decoding) decoder.take(row, workspace, row[idAt] as string);
    let json = '';
    for (let i = 0; i < prefixes.length; i++) {
      const value = row[positions[i] as number] as string | null;
      json += prefixes[i] as string;
      json += value === null ? 'null' : (writeLeaf[i] as Writer)(value, row);
    }
    json += suffix;
    if (failed.length === 0) return `${json}}`;
    json += `,"decodeErrors":${JSON.stringify(failed)}}`;
    failed = [];
    return json;
  };
  return { write, key: (row) => [row[first] as string, row[second] as string] };
}

/** The decoder of all leaves with one codec: they are decoded a row at a time. */
interface Decoding {
  readonly decoder: RowDecoder;
  readonly leaves: readonly Leaf[];
}

function compileDecoders(
  resource: Resource,
  codecs: CodecOptions,
  members: readonly Leaf[],
  positions: readonly number[],
): Map<CodecName, Decoding> {
  const names = new Set(members.flatMap(({ field }) => field.codec ?? []));
  const decodingOf = (name: CodecName): Decoding => {
    const decoded = members.filter(({ field }) => field.codec === name);
    const columns = decoded.map((leaf) => ({
      name: leaf.field.column,
      at: positions[members.indexOf(leaf)] as number,
    }));
    return { decoder: compileCodec(name, codecs, resource.table, columns), leaves: decoded };
  };
  return new Map([...names].map((name) => [name, decodingOf(name)]));
}

function cleaning(resource: Resource, all: readonly Leaf[], field: Field): Writer {
  switch (field.clean) {
    case 'text-images':
      return (value) => (holdsImage(value) ? 'null' : JSON.stringify(value));
    case 'json-images':
      return (value) => stripImages(value);
    case 'audit-diff': {
      const entityAt = all.findIndex(({ path }) => path.join('.') === 'entity');
      if (entityAt < 0) throw new Error(`${resource.name}: an audit diff needs a field named entity`);
      return (value, row) => redactDiff(row[entityAt] as string, value);
    }
    default:
      return writers[field.type];
  }
}

/** What stands in front of each leaf's value, groups opened and closed where they begin and end. */
function punctuation(all: readonly Leaf[]): { prefixes: string[]; suffix: string } {
  const groupOf = (leaf: Leaf | undefined): string | undefined =>
    leaf && leaf.path.length > 1 ? leaf.path[0] : undefined;
  const prefixes = all.map((leaf, i) => {
    const [before, now] = [groupOf(all[i - 1]), groupOf(leaf)];
    const closing = before !== undefined && before !== now ? '}' : '';
    const separator = i === 0 ? '{' : now !== undefined && before === now ? ',' : `${closing},`;
    const opening = now !== undefined && before !== now ? `${JSON.stringify(now)}:{` : '';
    return `${separator}${opening}${JSON.stringify(leaf.path.at(-1))}:`;
  });
  return { prefixes, suffix: groupOf(all.at(-1)) === undefined ? '' : '}' };
}
