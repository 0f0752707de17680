import type { KeyObject } from 'node:crypto';
import { decodeBase64 } from './base64.js';
import type { CodecOptions, EncodedColumn, RowDecoder } from './codecs.js';
import { DecodeError, type DecodeReason } from './decode-error.js';
import { cipherBytesMax, GcmKey, ivBytes, openNative, tagBytes } from './gcm.js';
import { jsonText } from './json-text.js';
import { PlaceHash } from './place-hash.js';

interface SealKey {
  readonly object: KeyObject;
  readonly gcm: GcmKey;
  readonly places: PlaceHash;
}

/** What a stored value begins with, up to and including the colon behind the key id. */
interface Header {
  readonly text: string;
  readonly key: SealKey;
  readonly bound: boolean;
}

/** A column, and its cell in the row at hand. */
interface Cell {
  readonly column: EncodedColumn;
  readonly index: number;
  /** Where iv ‖ ciphertext ‖ tag is put, and then the text. */
  readonly slot: number;
  /** Null when there is nothing to open: json or reason is known. */
  header: Header | null;
  cipherBytes: number;
  stream: number;
  json: string;
  reason: DecodeReason | null;
}

const versionLength = 'enc:v2:'.length;
const slotBytes = ivBytes + cipherBytesMax + tagBytes;
/** Values of more characters, for which a decipher of their own is no matter, are opened by Node's GCM. */
const encodedLengthMax = Math.floor(slotBytes / 3) * 4;

/**
 * AES-256-GCM, the cells of a row together. Stored: "enc:v2:<key id>:<base64 of iv(12) ‖ ciphertext ‖ tag(16)>",
 * authenticated together with the place it stands in, "<workspace>|<table>|<column>|<row>", so that a value copied from
 * another cell does not decode. "enc:v1:…" is the same without that binding. The version is no secret and needs no
 * protection of its own: a v2 value relabelled v1 fails its tag.
 */
export class SealedCells implements RowDecoder {
  readonly #keys: ReadonlyMap<string, SealKey>;
  readonly #legacy: boolean;
  readonly #table: string;
  readonly #cells: readonly Cell[];
  readonly #bytes: Buffer;
  #prefixes: readonly Buffer[] = [];
  #header: Header | null = null;
  #row: readonly (string | null)[] = [];
  #workspace: string | null = null;
  #id = '';
  #idBytes = Buffer.alloc(128);
  #opened = false;

  constructor({ keyring, legacy }: CodecOptions, table: string, columns: readonly EncodedColumn[]) {
    this.#keys = new Map(keyring.ids.map((id) => [id, sealKey(keyring.get(id) as KeyObject, columns.length)]));
    this.#legacy = legacy;
    this.#table = table;
    this.#bytes = Buffer.alloc(columns.length * slotBytes);
    this.#cells = columns.map((column, index) => ({
      ...{ column, index, slot: index * slotBytes, header: null },
      ...{ cipherBytes: 0, stream: 0, json: '', reason: null },
    }));
  }

  take(row: readonly (string | null)[], workspace: string, id: string): void {
    if (workspace !== this.#workspace) {
      this.#prefixes = this.#cells.map(({ column }) => Buffer.from(`${workspace}|${this.#table}|${column.name}|`));
      for (const { places } of this.#keys.values()) places.enter(this.#prefixes);
      this.#workspace = workspace;
    }
    this.#row = row;
    this.#id = id;
    this.#opened = false;
  }

  json(column: number): string {
    if (!this.#opened) this.#openAll();
    const { reason, json } = this.#cells[column] as Cell;
    if (reason !== null) throw new DecodeError(reason);
    return json;
  }

  #openAll(): void {
    if (this.#idBytes.length < this.#id.length * 3) this.#idBytes = Buffer.alloc(this.#id.length * 3);
    const idLength = this.#idBytes.write(this.#id);
    for (const cell of this.#cells) {
      cell.header = null;
      const stored = this.#row[cell.column.at] as string | null;
      if (stored !== null) cell.reason = this.#read(cell, stored);
    }
    for (const { header } of this.#cells) {
      if (header?.key.gcm.run()) header.key.places.row(this.#idBytes, idLength);
    }
    for (const cell of this.#cells) {
      if (cell.header !== null) cell.reason = this.#open(cell, cell.header);
    }
    this.#opened = true;
  }

  /** Brings the bytes of a cell into its slot and asks for its key stream. */
  #read(cell: Cell, stored: string): DecodeReason | null {
    const header =
      this.#header !== null && stored.startsWith(this.#header.text) ? this.#header : this.#headerOf(stored);
    if (typeof header === 'string') return header;
    this.#header = header;
    const start = header.text.length;
    if (stored.length - start > encodedLengthMax) return this.#openLong(cell, header, stored);
    const length = decodeBase64(stored, start, this.#bytes, cell.slot);
    cell.cipherBytes = length - ivBytes - tagBytes;
    if (cell.cipherBytes < 0) return 'bad_format';
    cell.stream = header.key.gcm.queue(this.#bytes, cell.slot, cell.cipherBytes);
    cell.header = header;
    return null;
  }

  #headerOf(stored: string): Header | DecodeReason {
    const bound = stored.startsWith('enc:v2:');
    if (!bound && !stored.startsWith('enc:v1:')) return 'bad_format';
    const keyEnd = stored.indexOf(':', versionLength);
    if (keyEnd < 0) return 'bad_format';
    if (!bound && !this.#legacy) return 'legacy_refused';
    const key = this.#keys.get(stored.slice(versionLength, keyEnd));
    return key === undefined ? 'unknown_key' : { text: stored.slice(0, keyEnd + 1), key, bound };
  }

  #open(cell: Cell, { key, bound }: Header): DecodeReason | null {
    const start = cell.slot + ivBytes;
    const associatedBytes = bound ? key.places.start(cell.index) : key.gcm.hash.start();
    if (!key.gcm.open(this.#bytes, start, cell.cipherBytes, cell.stream, associatedBytes)) return 'bad_tag';
    return this.#text(cell, this.#bytes, start, start + cell.cipherBytes);
  }

  #openLong(cell: Cell, { text, key, bound }: Header, stored: string): DecodeReason | null {
    const sealed = Buffer.allocUnsafe(stored.length);
    const length = decodeBase64(stored, text.length, sealed, 0);
    if (length < 0) return 'bad_format';
    const associated = bound ? Buffer.concat([this.#prefixes[cell.index] as Buffer, Buffer.from(this.#id)]) : undefined;
    const opened = openNative(key.object, sealed.subarray(0, length), associated);
    if (opened === null) return 'bad_tag';
    sealed.set(opened, 1);
    return this.#text(cell, sealed, 1, 1 + opened.length);
  }

  #text(cell: Cell, bytes: Buffer, start: number, end: number): DecodeReason | null {
    const json = jsonText(bytes, start, end);
    cell.json = json ?? '';
    return json === null ? 'bad_utf8' : null;
  }
}

function sealKey(object: KeyObject, messages: number): SealKey {
  const gcm = new GcmKey(object, messages);
  return { object, gcm, places: new PlaceHash(gcm.hash) };
}
