import { getFips } from 'node:crypto';
import { SealedCells } from './aes-gcm/sealed-cells.js';
import { decodeBase64 } from './base64.js';
import { DecodeError } from './decode-error.js';
import { isText, type JsonBytes } from './json-bytes.js';
import type { Keyring } from './keyring.js';

/** A row for the codecs: gives the stored text of a cell, null for NULL. */
export interface StoredRow {
  text(at: number): string | null;
}

/** Decodes the encoded cells of rows, a row at a time. */
export interface RowDecoder {
  /** Sets the present row, which must not change until its cells are written. `workspace` and `id` are ids as text. */
  readonly startRow: (row: StoredRow, workspace: string, id: string) => void;
  /** Writes the text of a cell of that row as a JSON string, by the index of its column. Throws DecodeError before it writes a byte. */
  readonly writeCell: (column: number, json: JsonBytes) => void;
}

/** A column to decode, and its position in the rows. */
export interface EncodedColumn {
  readonly name: string;
  readonly at: number;
}

/** How sealed cells are decrypted: those of a row together (docs/decoding.md), or each by node:crypto. */
export type DecryptMode = 'batched' | 'native';

/** Dependencies of the codecs. */
export interface CodecOptions {
  readonly keyring: Keyring;
  /** Whether "enc:v1" values, which have no associated data, are still read. */
  readonly legacy: boolean;
  readonly decrypt: DecryptMode;
  /** Called when batched decryption refused a cell that node:crypto opened. */
  readonly reportMismatch: (cell: { readonly table: string; readonly column: string; readonly row: string }) => void;
}

/** The mode of the setting; native in FIPS mode, because only OpenSSL's own GCM is validated. */
export function decryptModeOf(setting: DecryptMode, fips = getFips()): DecryptMode {
  return fips === 1 ? 'native' : setting;
}

/** Makes the decoder of columns of a table, and prepares all that is the same for every row. */
type Codec = (options: CodecOptions, table: string, columns: readonly EncodedColumn[]) => RowDecoder;

const codecs = {
  plain: (_, __, columns) => cellByCell(columns, (stored, json) => json.text(JSON.stringify(stored))),
  base64: (_, __, columns) => cellByCell(columns, base64Text()),
  'aes-256-gcm': (options, table, columns) => new SealedCells(options, table, columns),
} satisfies Record<string, Codec>;

/** The codecs that a resource definition can name. */
export type CodecName = keyof typeof codecs;

/**
 * The decoder of those columns of `table` that have this codec, to be made once at start-up.
 * Throws an Error for an unknown codec, so that a wrong definition refuses the start.
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
  let present: StoredRow = { text: () => null };
  return {
    startRow: (row) => {
      present = row;
    },
    writeCell: (column, json) => write(present.text(positions[column] as number) as string, json),
  };
}

/** Base64 of UTF-8. The last value is cached, because such columns hold few different values. */
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
