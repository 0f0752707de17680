import { SealedCells } from './aes-gcm/sealed-cells.js';
import { decodeBase64 } from './base64.js';
import { DecodeError } from './decode-error.js';
import { isText, type JsonBytes } from './json-bytes.js';
import type { Keyring } from './keyring.js';

/** What is needed of a row: the stored text of a cell, null for NULL. */
export interface StoredRow {
  text(at: number): string | null;
}

/** Decodes the encoded cells of rows, a row at a time. */
export interface RowDecoder {
  /** Takes a row, which must stay as it is until its cells are written. `workspace` and `id` are ids as text. */
  readonly take: (row: StoredRow, workspace: string, id: string) => void;
  /** Writes the text of a cell of that row as a JSON string, by the index of its column. Throws DecodeError, and then has written nothing. */
  readonly write: (column: number, json: JsonBytes) => void;
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
  plain: (_, __, columns) => cellByCell(columns, (stored, json) => json.text(JSON.stringify(stored))),
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

function cellByCell(columns: readonly EncodedColumn[], write: (stored: string, json: JsonBytes) => void): RowDecoder {
  const positions = columns.map(({ at }) => at);
  let taken: StoredRow = { text: () => null };
  return {
    take: (row) => {
      taken = row;
    },
    write: (column, json) => write(taken.text(positions[column] as number) as string, json),
  };
}

/** Base64 of UTF-8. Such columns hold few different values: the last one is remembered. */
function base64Text(): (stored: string, json: JsonBytes) => void {
  let last = { stored: '', bytes: Buffer.alloc(0) };
  return (stored, json) => {
    if (stored !== last.stored) {
      const bytes = Buffer.allocUnsafe(stored.length);
      const length = decodeBase64(stored, 0, bytes, 0);
      if (length < 0) throw new DecodeError('bad_format');
      if (!isText(bytes, 0, length)) throw new DecodeError('bad_utf8');
      last = { stored, bytes: bytes.subarray(0, length) };
    }
    json.string(last.bytes, 0, last.bytes.length);
  };
}
