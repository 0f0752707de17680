import type { Row } from '../../postgres/row.js';
import {
  type CellAppender,
  type CellContext,
  type Codec,
  type CodecOptions,
  DecodeError,
  type DecodeFunction,
  type EncodedRows,
  getFormat,
  getHead,
  makeHeaderReader,
  makeKeyIdReader,
  type StoredHeader,
} from './codec.js';
import { decodeWith } from './encodings.js';
import { isUtf8Between } from './json-bytes.js';
import { makeSealedAppender } from './sealed-cells.js';

export function compileCodec(codec: Codec, options: CodecOptions, rows: EncodedRows): CellAppender {
  const { older } = codec;
  const appendCell = ciphers[codec.cipher](codec, options, rows);
  if (older === undefined) return appendCell;
  const isOlder = makeOlderCellTest(codec, older);
  const appendOlder = ciphers[older.cipher](older, options, rows);
  return (json, column, present) => {
    if (!isOlder(present.row, column.at)) return appendCell(json, column, present);
    if (!options.legacy) throw new DecodeError('legacy_refused');
    appendOlder(json, column, present);
  };
}

/** Recognizes older values by their prefix, or without one by lacking the codec's format, which its next version has, too. */
function makeOlderCellTest(codec: Codec, older: Codec): (row: Row, at: number) => boolean {
  const [own, today] = [Buffer.from(getHead(older)), Buffer.from(getHead(codec))];
  const format = Buffer.from(getFormat(getHead(codec)));
  if (own.length === 0) return (row, at) => !row.beginsWith(at, format);
  return (row, at) => row.beginsWith(at, own) && !(today.length > 0 && row.beginsWith(at, today));
}

const ciphers: Readonly<
  Record<Codec['cipher'], (codec: Codec, options: CodecOptions, rows: EncodedRows) => CellAppender>
> = { none: makeEncodedAppender, 'aes-256-gcm': makeSealedAppender, module: makeModuleAppender };

function makeEncodedAppender(codec: Codec): CellAppender {
  const readHeader = makeHeaderReader(codec);
  return (json, { at }, { row }) => {
    const stored = row.getText(at) as string;
    const bytes = decodeStored(codec, Buffer.from(stored), requireHeader(readHeader(stored)));
    if (!isUtf8Between(bytes, 0, bytes.length)) throw new DecodeError('bad_utf8');
    json.appendString(bytes, 0, bytes.length);
  };
}

const moduleTextMax = 1_048_576; // characters

/** Appends values of CODEC_MODULE, whose errors no client and no log sees. */
function makeModuleAppender(codec: Codec, options: CodecOptions, rows: EncodedRows): CellAppender {
  const { keyring, decode } = options;
  if (decode === undefined) throw new Error('A codec has cipher module, and CODEC_MODULE is not set.');
  const readHeader = makeHeaderReader(codec);
  const readKeyId = makeKeyIdReader(codec, rows);
  return (json, column, { row, workspace, id }) => {
    const stored = row.getText(column.at) as string;
    const header = requireHeader(readHeader(stored));
    const value =
      codec.encoding === 'text' ? stored.slice(header.text.length) : decodeStored(codec, Buffer.from(stored), header);
    const context = {
      workspace,
      table: rows.table,
      column: column.name,
      id,
      keyId: header.keyId ?? readKeyId(row),
      keys: { get: (id: string) => keyring.get(id) },
    };
    json.appendText(JSON.stringify(checkReturned(decode, value, context)));
  };
}

function checkReturned(decode: DecodeFunction, value: Buffer | string, context: CellContext): string {
  let text: unknown;
  try {
    text = decode(value, context);
  } catch {
    throw new DecodeError('module');
  }
  if (typeof text !== 'string' || text.length > moduleTextMax) throw new DecodeError('module');
  return text;
}

function requireHeader(header: StoredHeader | null): StoredHeader {
  if (header === null) throw new DecodeError('bad_format');
  return header;
}

function decodeStored({ encoding }: Codec, stored: Buffer, { text }: StoredHeader): Buffer {
  const bytes = decodeWith(encoding, stored, Buffer.byteLength(text));
  if (bytes === null) throw new DecodeError('bad_format');
  return bytes;
}
