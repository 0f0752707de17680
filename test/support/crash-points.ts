import fs from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

/** The process would have ended at this call. */
export class Crashed extends Error {}

const changing = ['open', 'rename', 'rm', 'mkdir', 'writeFile', 'utimes'] as const;
const ofHandles = ['write', 'sync', 'datasync', 'truncate', 'writeFile'] as const;

type Call = (...args: unknown[]) => Promise<unknown>;
type Calls = Record<string, Call>;

/**
 * Runs the work, and ends every call of node:fs/promises that changes a file, from the given one on, as a process ends that is killed
 * there: a write writes half of its bytes, all others do nothing. Returns the number of such calls. For one process, one at a time.
 */
export async function crashAt(call: number, work: () => Promise<void>): Promise<number> {
  let calls = 0;
  const sample = await fs.promises.open('/dev/null');
  const handles = Object.getPrototypeOf(sample) as Calls;
  await sample.close();
  const promises = fs.promises as unknown as Calls;
  const opened: FileHandle[] = [];
  const undo: (() => void)[] = [];
  const wrap = (owner: Calls, name: string): void => {
    const original = owner[name] as Call;
    owner[name] = async function (this: unknown, ...args: unknown[]) {
      if (++calls < call) {
        if (name.endsWith('sync')) return undefined; // the kernel keeps the writes of a process that is killed
        const result = await original.apply(this, args);
        if (name === 'open') opened.push(result as FileHandle);
        return result;
      }
      const [bytes, offset, length, position] = args as [Uint8Array, number, number, number];
      if (calls === call && name === 'write') await original.call(this, bytes, offset, length >> 1, position);
      throw new Crashed(`${name} is call ${calls}`);
    };
    undo.push(() => (owner[name] = original));
  };
  for (const name of changing) wrap(promises, name);
  for (const name of ofHandles) wrap(handles, name);
  syncBuiltinESMExports();
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Crashed)) throw error;
  } finally {
    for (const each of undo) each();
    syncBuiltinESMExports();
    for (const handle of opened) await handle.close().catch(() => undefined); // closed already
  }
  return calls;
}
