import { Row } from '../../postgres/row.js';
import {
  type CellContext,
  type Codec,
  type CodecOptions,
  DecodeError,
  type DecodeFunction,
  type EncodedColumn,
  type EncodedRows,
  formatOf,
  headerReader,
  headOf,
  type RowDecoder,
  rowKeyId,
  type StoredHeader,
} from './codec.js';
import { encodingOf } from './encodings.js';
import { isText, type JsonBytes } from './json-bytes.js';
import { SealedCells } from './sealed-cells.js';

/** Makes the decoder of the columns of a table that have this codec. Prepares all that is the same for every row. */
export function compileCodec(codec: Codec, options: CodecOptions, rows: EncodedRows): RowDecoder {
  const { older } = codec;
  const decoder = ciphers[codec.cipher](codec, options, rows);
  if (older === undefined) return decoder;
  const isOlder = olderCells(codec, older);
  const other = ciphers[older.cipher](older, options, rows);
  let present = new Row();
  return {
    startRow: (row, workspace, id) => {
      present = row;
      decoder.startRow(row, workspace, id);
      other.startRow(row, workspace, id);
    },
    writeCell: (column, json) => {
      const isOther = isOlder(present, (rows.columns[column] as EncodedColumn).at);
      if (isOther && !options.legacy) throw new DecodeError('legacy_refused');
      (isOther ? other : decoder).writeCell(column, json);
    },
  };
}

/** Tells older cells by their prefix; where they have none, by that of the others, whose next version is not older either. */
function olderCells(codec: Codec, older: Codec): (row: Row, at: number) => boolean {
  const [own, today] = [Buffer.from(headOf(older)), Buffer.from(headOf(codec))];
  const format = Buffer.from(formatOf(headOf(codec)));
  if (own.length === 0) return (row, at) => !row.beginsWith(at, format);
  return (row, at) => row.beginsWith(at, own) && !(today.length > 0 && row.beginsWith(at, today));
}

const ciphers: Readonly<Record<Codec['cipher'], typeof compileCodec>> = {
  none: encodedText,
  'aes-256-gcm': (codec, options, rows) => new SealedCells(codec, options, rows),
  module: moduleText,
};

/** An encoding of UTF-8. */
function encodedText(codec: Codec, _: CodecOptions, rows: EncodedRows): RowDecoder {
  const headerOf = headerReader(codec);
  return cellByCell(rows, (json, { at }, { row }) => {
    const stored = row.text(at) as string;
    const bytes = bytesOf(codec, Buffer.from(stored), known(headerOf(stored)));
    if (!isText(bytes, 0, bytes.length)) throw new DecodeError('bad_utf8');
    json.string(bytes, 0, bytes.length);
  });
}

const moduleTextMax = 1_048_576; // characters

/** The text that the codec module returns; its errors are shown to no client and in no log. */
function moduleText(codec: Codec, options: CodecOptions, rows: EncodedRows): RowDecoder {
  const { keyring, decode } = options;
  if (decode === undefined) throw new Error('A codec has cipher module, and CODEC_MODULE is not set.');
  const headerOf = headerReader(codec);
  const keyIdOf = rowKeyId(codec, rows);
  return cellByCell(rows, (json, column, { row, workspace, id }) => {
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
  });
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

interface PresentRow {
  readonly row: Row;
  readonly workspace: string;
  readonly id: string;
}

function cellByCell(
  { columns }: EncodedRows,
  write: (json: JsonBytes, column: EncodedColumn, present: PresentRow) => void,
): RowDecoder {
  let present: PresentRow = { row: new Row(), workspace: '', id: '' };
  return {
    startRow: (row, workspace, id) => {
      present = { row, workspace, id };
    },
    writeCell: (index, json) => write(json, columns[index] as EncodedColumn, present),
  };
}

function known(header: StoredHeader | null): StoredHeader {
  if (header === null) throw new DecodeError('bad_format');
  return header;
}

function bytesOf({ encoding }: Codec, stored: Buffer, { text }: StoredHeader): Buffer {
  const { decode, bytesMax } = encodingOf(encoding);
  const bytes = Buffer.alloc(bytesMax(stored.length));
  const length = decode(stored, Buffer.byteLength(text), stored.length, bytes, 0);
  if (length < 0) throw new DecodeError('bad_format');
  return bytes.subarray(0, length);
}
