import { createDecipheriv, type KeyObject } from 'node:crypto';
import {
  type CellAppender,
  type Codec,
  type CodecOptions,
  DecodeError,
  type EncodedRows,
  makeHeaderReader,
  makeKeyIdReader,
  type PresentRow,
  splitTemplate,
} from './codec.js';
import { decodeWith, encodings } from './encodings.js';
import { isUtf8Between } from './json-bytes.js';

// Example: a cell has `enc:v2:k1:`, then base64 of a nonce of 12 bytes, the ciphertext and a tag of 16 bytes. The key k1 opens it with the
// associated data "7|klanten|telefoon|42", of workspace, table, column and id, so that the value opens in no other cell.

type PieceText = (present: PresentRow, column: string) => string | null;

/** Compiles "{workspace}|{table}|{column}|{id}"; the AAD is null when a column is NULL. */
function compileAad(aad: string, { table, otherColumns: others }: EncodedRows): PieceText {
  const ids = new Map<string, PieceText>([
    ['workspace', ({ workspace }) => workspace],
    ['table', () => table],
    ['column', (_, column) => column],
    ['id', ({ id }) => id],
  ]);
  const texts = splitTemplate(aad).map((piece, i): PieceText => {
    if (i % 2 === 0) return () => piece;
    const at = others?.get(piece) as number;
    return ids.get(piece) ?? (({ row }) => row.getText(at));
  });
  return (present, column) => {
    let filled = '';
    for (const textOf of texts) {
      const text = textOf(present, column);
      if (text === null) return null;
      filled += text;
    }
    return filled;
  };
}

/** Bytes that a buffer keeps: one large value must not hold its memory forever. */
const keptBytesMax = 65_536;

/** Opens AES-256-GCM. The AAD names the cell, so a value of another cell fails its tag, and so does a value relabelled as an older form. */
export function makeSealedAppender(codec: Codec, { keyring }: CodecOptions, rows: EncodedRows): CellAppender {
  const layout = parseSealLayout(codec.layout ?? []);
  if (layout === null) throw new Error(`The layout of the codec of ${rows.table} lacks a part or repeats one.`);
  const { decode, bytesMax } = encodings[codec.encoding];
  const readHeader = makeHeaderReader(codec);
  const readKeyId = makeKeyIdReader(codec, rows);
  const composeAad = codec.aad === undefined ? () => undefined : compileAad(codec.aad, rows);
  const opener = new Opener(layout);
  let buffer = Buffer.alloc(256);
  /** Header and key of the value before, which most values share. */
  let last: { readonly bytes: Buffer; readonly key: KeyObject; readonly keyId: string | null } | null = null;
  return (json, { name, at }, present) => {
    const { row } = present;
    const keyId = readKeyId(row);
    if (last === null || last.keyId !== keyId || !row.beginsWith(at, last.bytes)) {
      const header = readHeader(row.getText(at) as string);
      if (header === null) throw new DecodeError('bad_format');
      const key = keyring.get(header.keyId ?? keyId ?? '');
      if (key === undefined) throw new DecodeError('unknown_key');
      last = { bytes: Buffer.from(header.text), key, keyId };
    }
    const { bytes: header, key } = last;
    const [start, end] = [(row.starts[at] as number) + header.length, row.ends[at] as number];
    const bytes = bytesMax(end - start);
    const sealed = bytes > buffer.length ? Buffer.alloc(bytes * 2) : buffer;
    if (sealed.length <= keptBytesMax) buffer = sealed;
    const dataBytes = decode(row.bytes, start, end, sealed, 0) - layout.overheadBytes;
    const aad = composeAad(present, name);
    if (dataBytes < 0 || aad === null) throw new DecodeError('bad_format');
    const opened = opener.open(key, sealed, dataBytes, aad);
    if (opened === null) throw new DecodeError('bad_tag');
    if (!isUtf8Between(opened, 0, opened.length)) throw new DecodeError('bad_utf8');
    json.appendString(opened, 0, opened.length);
  };
}

/** Fewer bytes can look like text under a wrong key. */
const tellingBytes = 6;

/** Opens without the AAD that the tag needs; returns null for a value of another codec, or one too short to tell. */
export function makeTextOpener(codec: Codec): (stored: string, key: KeyObject) => boolean | null {
  const readHeader = makeHeaderReader(codec);
  const layout = parseSealLayout(codec.layout ?? []);
  if (layout === null) return () => null;
  const opener = new Opener(layout);
  return (stored, key) => {
    const header = readHeader(stored);
    if (header === null) return null;
    const sealed = decodeWith(codec.encoding, Buffer.from(stored), Buffer.byteLength(header.text));
    const dataBytes = (sealed?.length ?? 0) - layout.overheadBytes;
    if (sealed === null || dataBytes < tellingBytes) return null;
    const { opened } = opener.decipher(key, sealed, dataBytes);
    return isUtf8Between(opened, 0, opened.length);
  };
}

/** Copies nonce and tag into buffers that are used again, because a view of each costs more. */
class Opener {
  readonly #nonce: Buffer;
  readonly #tag: Buffer;
  readonly #options: { readonly authTagLength: number };

  constructor(readonly layout: SealLayout) {
    this.#nonce = Buffer.alloc(layout.nonce.bytes);
    this.#tag = Buffer.alloc(layout.tag.bytes);
    this.#options = { authTagLength: layout.tag.bytes };
  }

  /** Returns null when the tag is wrong. */
  open(key: KeyObject, sealed: Buffer, dataBytes: number, aad: string | undefined): Buffer | null {
    const { decipher, opened } = this.decipher(key, sealed, dataBytes, aad);
    copySegment(sealed, this.layout.tag, dataBytes, this.#tag);
    decipher.setAuthTag(this.#tag);
    try {
      decipher.final();
      return opened;
    } catch {
      return null;
    }
  }

  /** Decrypts without authentication: the caller checks the tag. */
  decipher(key: KeyObject, sealed: Buffer, dataBytes: number, aad?: string) {
    const { nonce, data } = this.layout;
    copySegment(sealed, nonce, dataBytes, this.#nonce);
    const decipher = createDecipheriv('aes-256-gcm', key, this.#nonce, this.#options);
    if (aad !== undefined) decipher.setAAD(Buffer.from(aad));
    return { decipher, opened: decipher.update(sealed.subarray(data.at, data.at + dataBytes)) };
  }
}

function copySegment(sealed: Buffer, { at, behindData }: SealSegment, dataBytes: number, into: Buffer): void {
  const start = at + behindData * dataBytes;
  for (let i = 0; i < into.length; i++) into[i] = sealed[start + i] as number;
}

interface SealSegment {
  /** Size; 0 for the ciphertext. */
  readonly bytes: number;
  /** Position without the ciphertext before it. */
  readonly at: number;
  /** 1 if the ciphertext is before the segment. */
  readonly behindData: 0 | 1;
}

interface SealLayout {
  readonly nonce: SealSegment;
  readonly data: SealSegment;
  readonly tag: SealSegment;
  readonly overheadBytes: number;
}

const segmentPattern = /^(nonce|data|tag)(\d*)$/;

/** Turns ["tag16", "nonce12", "data"] into positions; null unless each part occurs once. */
function parseSealLayout(layout: readonly string[]): SealLayout | null {
  const segments = new Map<string, SealSegment>();
  let at = 0;
  for (const text of layout) {
    const [, name = '', size = ''] = segmentPattern.exec(text) ?? [];
    const bytes = Number(size);
    if (name === '' || segments.has(name) || (name === 'data') !== (bytes === 0)) return null;
    segments.set(name, { bytes, at, behindData: segments.has('data') ? 1 : 0 });
    at += bytes;
  }
  const [nonce, data, tag] = ['nonce', 'data', 'tag'].map((name) => segments.get(name));
  return nonce && data && tag ? { nonce, data, tag, overheadBytes: at } : null;
}
