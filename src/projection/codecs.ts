import { decodeBase64 } from './base64.js';
import { DecodeError } from './decode-error.js';
import { jsonText } from './json-text.js';
import type { Keyring } from './keyring.js';
import { SealedCells } from './sealed-cells.js';

/** Decodes the encoded cells of rows, a row at a time. */
export interface RowDecoder {
  /** Takes a row, which must stay as it is until the next is taken. `workspace` and `id` are ids as text. */
  readonly take: (row: readonly (string | null)[], workspace: string, id: string) => void;
  /** The text of a cell of that row as a JSON string, by the index of its column. Throws DecodeError. */
  readonly json: (column: number) => string;
}

/** A column to decode, and where it stands in the rows. */
export interface EncodedColumn {
  readonly name: string;
  readonly at: number;
}

/** What a codec may rely on. `legacy`: whether "enc:v1" values, which are bound to no cell, may still be read. */
export interface CodecOptions {
  readonly keyring: Keyring;
  readonly legacy: boolean;
}

/** Makes the decoder of some columns of a table; all that does not depend on the row is done here. */
type Codec = (options: CodecOptions, table: string, columns: readonly EncodedColumn[]) => RowDecoder;

const codecs = {
  plain: (_, __, columns) => cellByCell(columns, (stored) => JSON.stringify(stored)),
  base64: (_, __, columns) => cellByCell(columns, base64Text()),
  'aes-256-gcm': (options, table, columns) => new SealedCells(options, table, columns),
} satisfies Record<string, Codec>;

/** The codecs a resource definition may name. */
export type CodecName = keyof typeof codecs;

/**
 * The decoder of those columns of `table` that have this codec, to be made once at start-up.
 * Throws an Error on a name that is no codec, so that a bad resource definition refuses to boot.
 */
export function compileCodec(
  name: CodecName,
  options: CodecOptions,
  table: string,
  columns: readonly EncodedColumn[],
): RowDecoder {
  if (!Object.hasOwn(codecs, name)) throw new Error(`No codec "${name}" for ${table}.${columns[0]?.name}.`);
  return codecs[name](options, table, columns);
}

function cellByCell(columns: readonly EncodedColumn[], decode: (stored: string) => string): RowDecoder {
  const positions = columns.map(({ at }) => at);
  let taken: readonly (string | null)[] = [];
  return {
    take: (row) => {
      taken = row;
    },
    json: (column) => decode(taken[positions[column] as number] as string),
  };
}

/** Base64 of UTF-8. Such columns hold few different values: the last one is remembered. */
function base64Text(): (stored: string) => string {
  let last = { stored: '', json: '""' };
  return (stored) => {
    if (stored === last.stored) return last.json;
    const bytes = Buffer.allocUnsafe(stored.length + 2);
    const length = decodeBase64(stored, 0, bytes, 1);
    if (length < 0) throw new DecodeError('bad_format');
    const json = jsonText(bytes, 1, 1 + length);
    if (json === null) throw new DecodeError('bad_utf8');
    last = { stored, json };
    return json;
  };
}
