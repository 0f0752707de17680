import type { Row } from '../../postgres/row.js';
import {
  type CellContext,
  type CellWriter,
  type Codec,
  type CodecOptions,
  DecodeError,
  type DecodeFunction,
  type EncodedRows,
  formatOf,
  headerReader,
  headOf,
  rowKeyId,
  type StoredHeader,
} from './codec.js';
import { decoded } from './encodings.js';
import { isUtf8Between } from './json-bytes.js';
import { sealedText } from './sealed-cells.js';

export function compileCodec(codec: Codec, options: CodecOptions, rows: EncodedRows): CellWriter {
  const { older } = codec;
  const writeCell = ciphers[codec.cipher](codec, options, rows);
  if (older === undefined) return writeCell;
  const isOlder = olderCells(codec, older);
  const writeOlder = ciphers[older.cipher](older, options, rows);
  return (json, column, present) => {
    if (!isOlder(present.row, column.at)) return writeCell(json, column, present);
    if (!options.legacy) throw new DecodeError('legacy_refused');
    writeOlder(json, column, present);
  };
}

/** Without a prefix they are told by the prefix of the others, whose next version is not older either. */
function olderCells(codec: Codec, older: Codec): (row: Row, at: number) => boolean {
  const [own, today] = [Buffer.from(headOf(older)), Buffer.from(headOf(codec))];
  const format = Buffer.from(formatOf(headOf(codec)));
  if (own.length === 0) return (row, at) => !row.beginsWith(at, format);
  return (row, at) => row.beginsWith(at, own) && !(today.length > 0 && row.beginsWith(at, today));
}

const ciphers: Readonly<
  Record<Codec['cipher'], (codec: Codec, options: CodecOptions, rows: EncodedRows) => CellWriter>
> = { none: encodedText, 'aes-256-gcm': sealedText, module: moduleText };

function encodedText(codec: Codec): CellWriter {
  const headerOf = headerReader(codec);
  return (json, { at }, { row }) => {
    const stored = row.text(at) as string;
    const bytes = bytesOf(codec, Buffer.from(stored), known(headerOf(stored)));
    if (!isUtf8Between(bytes, 0, bytes.length)) throw new DecodeError('bad_utf8');
    json.string(bytes, 0, bytes.length);
  };
}

const moduleTextMax = 1_048_576; // characters

/** Its errors are shown to no client and in no log. */
function moduleText(codec: Codec, options: CodecOptions, rows: EncodedRows): CellWriter {
  const { keyring, decode } = options;
  if (decode === undefined) throw new Error('A codec has cipher module, and CODEC_MODULE is not set.');
  const headerOf = headerReader(codec);
  const keyIdOf = rowKeyId(codec, rows);
  return (json, column, { row, workspace, id }) => {
    const stored = row.text(column.at) as string;
    const header = known(headerOf(stored));
    const value =
      codec.encoding === 'text' ? stored.slice(header.text.length) : bytesOf(codec, Buffer.from(stored), header);
    const context = {
      workspace,
      table: rows.table,
      column: column.name,
      id,
      keyId: header.keyId ?? keyIdOf(row),
      keys: { get: (id: string) => keyring.get(id) },
    };
    json.text(JSON.stringify(returned(decode, value, context)));
  };
}

function returned(decode: DecodeFunction, value: Buffer | string, context: CellContext): string {
  let text: unknown;
  try {
    text = decode(value, context);
  } catch {
    throw new DecodeError('module');
  }
  if (typeof text !== 'string' || text.length > moduleTextMax) throw new DecodeError('module');
  return text;
}

function known(header: StoredHeader | null): StoredHeader {
  if (header === null) throw new DecodeError('bad_format');
  return header;
}

function bytesOf({ encoding }: Codec, stored: Buffer, { text }: StoredHeader): Buffer {
  const bytes = decoded(encoding, stored, Buffer.byteLength(text));
  if (bytes === null) throw new DecodeError('bad_format');
  return bytes;
}
