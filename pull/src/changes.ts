import { type FileHandle, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { UnusableDestination } from './destination.js';

/** The file for the changes of a transaction. */
export interface ChangeFile {
  writeUpserts(records: readonly string[]): Promise<void>;
  writeDeletions(ids: readonly string[]): Promise<void>;
  /** Readies the file before the transaction is committed. Resolves with its number, or the last one if nothing changed. */
  seal(): Promise<number>;
  /** Makes the file count. A file whose number was not committed is removed by the next run. */
  markCommitted(): void;
  close(): Promise<void>;
}

export interface ChangeFiles {
  open(resource: string): ChangeFile;
}

/** Replaces `--changes` if it is absent. */
export function skipChangeFiles(number: number): ChangeFiles {
  const skip = async (): Promise<void> => undefined;
  const file = {
    writeUpserts: skip,
    writeDeletions: skip,
    close: skip,
    seal: async () => number,
    markCommitted: () => undefined,
  };
  return { open: () => file };
}

const nameForm = /^(\d{10})-.+\.ndjson(\.part)?$/;

/** Numbered files, NUMBER-RESOURCE.ndjson, with a change a line: {"change":"upsert","record":…} or {"change":"delete","id":…}. */
export async function openChangeFiles(folder: string, committed: number): Promise<ChangeFiles> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const present = (await readdir(folder)).map((name) => ({ name, number: Number(nameForm.exec(name)?.[1] ?? 0) }));
  // A kill leaves one uncommitted file at most.
  const foreign = present.find(({ number }) => number > committed + 1);
  if (foreign !== undefined)
    throw new UnusableDestination(
      `${join(folder, foreign.name)} is of another copy, as this one has ${committed} change files: give another folder, or move it away.`,
    );
  for (const { name, number } of present) {
    if (number > committed || (number > 0 && name.endsWith('.part'))) await rm(join(folder, name));
  }
  let last = committed;
  return {
    open: (resource) => {
      const file = join(folder, `${String(last + 1).padStart(10, '0')}-${resource}.ndjson`);
      let handle: FileHandle | null = null;
      const write = async (lines: readonly string[]): Promise<void> => {
        handle ??= await open(`${file}.part`, 'w', 0o600);
        await handle.writeFile(lines.map((line) => `${line}\n`).join('')); // write() can stop in the middle
      };
      return {
        // A line end in JSON is always outside of its texts; PostgreSQL prints some between the elements of an array.
        writeUpserts: (records) =>
          write(records.map((record) => `{"change":"upsert","record":${record.replace(/[\r\n]+/g, '')}}`)),
        writeDeletions: (ids) => write(ids.map((id) => JSON.stringify({ change: 'delete', id }))),
        seal: async () => {
          if (handle === null) return last;
          await handle.sync();
          await rename(`${file}.part`, file);
          return last + 1;
        },
        markCommitted: () => {
          if (handle !== null) last++;
        },
        close: async () => handle?.close(),
      };
    },
  };
}
