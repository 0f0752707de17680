import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Snapshot } from '../../postgres/snapshot.js';
import type { Values } from '../../postgres/statement.js';
import type { CompiledResource } from '../../resource/compiled.js';
import { JsonBytes } from '../../resource/projection/json-bytes.js';

export interface ExportedFile {
  readonly resource: string;
  readonly file: string;
  /** Hash of what decides how the records are shown (resource/compiled.ts). */
  readonly definition: string;
  readonly records: number;
  /** Size of the file on the disk. */
  readonly bytes: number;
  readonly sha256: string;
}

/** Filters of a resource by name, and their values. */
export interface PeriodFilter {
  readonly filters: readonly string[];
  readonly values: Values;
}

interface RecordsOptions extends PeriodFilter {
  readonly workspace: string;
  readonly gzip: boolean;
  readonly folder: string;
  readonly onRecords: (records: number) => void;
}

const batch = { rowsAtFirst: 100, rowsMax: 10_000, bytesMax: 2_000_000 };

/** Writes each line with the bytes of the API. A few batches bound the memory. */
export async function exportRecords(
  snapshot: Snapshot,
  compiled: CompiledResource,
  { workspace, gzip, folder, onRecords, ...period }: RecordsOptions,
): Promise<ExportedFile> {
  const { name } = compiled.resource;
  const file = `${name}.ndjson${gzip ? '.gz' : ''}`;
  const hash = createHash('sha256');
  const written = { records: 0, bytes: 0 };
  const counted = new Transform({
    transform(bytes: Buffer, _, done) {
      hash.update(bytes);
      written.bytes += bytes.length;
      done(null, bytes);
    },
  });
  const note = (records: number): void => {
    written.records += records;
    onRecords(written.records);
  };
  const lines = Readable.from(readBatches(snapshot, compiled, workspace, period, note));
  const target = createWriteStream(join(folder, file), { flags: 'wx', mode: 0o600, flush: true });
  await (gzip ? pipeline(lines, createGzip(), counted, target) : pipeline(lines, counted, target));
  return { resource: name, file, definition: compiled.projectionHash, ...written, sha256: hash.digest('hex') };
}

/** Yields a buffer whenever the rows fill one, and at the end of each batch; reads on when it was taken. */
export async function* readBatches(
  { openCursor }: Snapshot,
  { statements, serializer }: CompiledResource,
  workspace: string,
  { filters, values }: PeriodFilter,
  onRecords: (records: number) => void = () => undefined,
): AsyncGenerator<Buffer> {
  const lines = new JsonBytes(batch.bytesMax);
  const rows = openCursor(statements.list(filters).rows.all, { ...values, limit: null }, (row) => {
    const start = lines.length;
    serializer.append(row, workspace, lines);
    joinLines(lines.view(), start);
    lines.appendText('\n');
    return lines.length >= batch.bytesMax;
  });
  for (let asked = batch.rowsAtFirst; ; ) {
    let [read, bytes] = [0, 0];
    for await (const records of rows.readRows(asked)) {
      read += records;
      bytes += lines.length;
      onRecords(records);
      if (records > 0) yield Buffer.from(lines.view());
      lines.clear();
    }
    if (read < asked) return;
    asked = Math.max(1, Math.min(batch.rowsMax, Math.floor((batch.bytesMax / bytes) * read)));
  }
}

/** PostgreSQL puts line breaks between values of JSON; none can stand inside a string (RFC 8259 §7). */
function joinLines(bytes: Buffer, start: number): void {
  for (const lineBreak of [0x0a, 0x0d])
    for (let at = bytes.indexOf(lineBreak, start); at >= 0; at = bytes.indexOf(lineBreak, at + 1)) bytes[at] = 0x20;
}
