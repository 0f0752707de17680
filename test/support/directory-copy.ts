import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

/** A line of a change file, whose record is its text. */
interface Change {
  readonly seq: number;
  readonly change: string;
  readonly id: string;
  readonly record: string;
}

/** The records that the change files of a folder make, by id, each as its JSON text; the changes that the state does not count are left out. */
export function recordsIn(folder: string): Map<string, string> {
  const records = new Map<string, string>();
  if (!existsSync(join(folder, 'state.json'))) return records;
  const { seq } = JSON.parse(readFileSync(join(folder, 'state.json'), 'utf8')) as { seq: number };
  let last = 0;
  for (const change of changesIn(folder)) {
    if (change.seq > seq) break;
    if (change.seq !== ++last) throw new Error(`change ${last} is missing: ${change.seq} follows ${last - 1}`);
    if (change.change === 'delete') records.delete(change.id);
    else records.set(change.id, change.record);
  }
  if (last !== seq) throw new Error(`the state counts ${seq} changes, the files have ${last}`);
  return records;
}

function* changesIn(folder: string): Generator<Change> {
  for (const name of readdirSync(folder).sort()) {
    if (!name.endsWith('.ndjson.gz')) continue;
    for (const line of gunzipSync(readFileSync(join(folder, name)))
      .toString()
      .split('\n')
      .slice(0, -1)) {
      const { seq, change, id } = JSON.parse(line) as Change;
      // As text: JavaScript would round numbers.
      yield { seq, change, id, record: line.slice(line.indexOf(',"record":') + ',"record":'.length, -1) };
    }
  }
}
