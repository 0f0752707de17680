import { mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { elements } from './json-text.js';

/** The changes of a transaction: records of a page, or deletions. */
export type Change = { readonly body: string } | { readonly ids: readonly string[] };

/** The files of `--changes`. */
export interface ChangeFiles {
  /**
   * Writes a file for what a transaction is about to change, then commits it with the file's number. A file whose number was not
   * committed does not count, and the next run removes it.
   */
  write<T>(resource: string, change: Change, commit: (changeFiles: number) => Promise<T>): Promise<T>;
}

/** Without `--changes`. */
export function noChangeFiles(number: number): ChangeFiles {
  return { write: (_, __, commit) => commit(number) };
}

const nameForm = /^(\d{10})-[\w-]+\.ndjson(\.part)?$/;

/** Numbered files in a folder, NUMBER-RESOURCE.ndjson, each a change a line: {"change":"upsert","record":…} or {"change":"delete","id":…}. */
export async function changeFiles(folder: string, committed: number): Promise<ChangeFiles> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const name of await readdir(folder)) {
    const number = Number(nameForm.exec(name)?.[1] ?? 0);
    if (number > committed || (number > 0 && name.endsWith('.part'))) await rm(join(folder, name));
  }
  let last = committed;
  return {
    write: async (resource, change, commit) => {
      const lines = linesOf(change);
      if (lines.length === 0) return commit(last);
      const file = join(folder, `${String(last + 1).padStart(10, '0')}-${resource}.ndjson`);
      const handle = await open(`${file}.part`, 'w', 0o600);
      try {
        await handle.writeFile(`${lines.join('\n')}\n`);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(`${file}.part`, file);
      const result = await commit(last + 1);
      last++;
      return result;
    },
  };
}

function linesOf(change: Change): string[] {
  if ('ids' in change) return change.ids.map((id) => JSON.stringify({ change: 'delete', id }));
  const at = change.body.indexOf('[');
  // A line end in JSON is always outside of its texts; PostgreSQL prints some between the elements of an array.
  return [...elements(change.body.slice(at))].map(
    (record) => `{"change":"upsert","record":${record.replaceAll('\n', '')}}`,
  );
}
