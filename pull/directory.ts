import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ChangeFile, removeUncommitted } from './change-file.js';
import { changeFormats, type FormatName } from './change-formats.js';
import { CopiedIds } from './copied-ids.js';
import {
  type Column,
  type Copy,
  type Destination,
  DestinationUnusable,
  type Groups,
  type PullState,
} from './destination.js';
import { replaceFile } from './durable-files.js';
import { type FolderLock, lockFolder } from './folder-lock.js';
import { elements, member } from './json-text.js';

/** The content of state.json: what counts in the folder of a resource. */
interface FolderState extends PullState {
  readonly format: FormatName;
  /** Names of the members of a record. */
  readonly columns: readonly string[];
  /** Number of the last change file. */
  readonly files: number;
  /** Number of the last change. */
  readonly seq: number;
  /** Length of the file of ids. */
  readonly idsBytes: number;
}

/** The form of change files, and the compressed size at which a pass commits and begins another file. */
export interface DirectoryOptions {
  readonly format: FormatName;
  readonly fileBytesMax?: number;
}

const fileBytesDefault = 16 * 1024 * 1024;

/**
 * A copy as files: a folder for each resource, with change files that are never altered, and a state that is replaced as a whole after
 * the files that it counts. A process that is killed at any moment leaves at most files that do not count. Throws DestinationUnusable.
 */
export async function directoryDestination(folder: string, options: DirectoryOptions): Promise<Destination> {
  await mkdir(folder, { recursive: true });
  const lock = await lockFolder(folder);
  let copy: FolderCopy | undefined;
  return {
    open: async (resource, columns) => {
      await copy?.close();
      copy = undefined;
      copy = await FolderCopy.open(join(folder, resource), columns, lock, options);
      return copy;
    },
    close: async () => {
      try {
        await copy?.close();
      } finally {
        await lock.release();
      }
    },
  };
}

/** The copy of a resource in a folder. */
class FolderCopy implements Copy {
  readonly #folder: string;
  readonly #lock: FolderLock;
  readonly #ids: CopiedIds;
  readonly #fileBytesMax: number;
  #committed: FolderState;
  #now: FolderState;
  #file: ChangeFile | null = null;

  private constructor(folder: string, lock: FolderLock, ids: CopiedIds, state: FolderState, fileBytesMax: number) {
    this.#folder = folder;
    this.#lock = lock;
    this.#ids = ids;
    this.#committed = state;
    this.#now = state;
    this.#fileBytesMax = fileBytesMax;
  }

  static async open(
    folder: string,
    columns: readonly Column[],
    lock: FolderLock,
    { format, fileBytesMax = fileBytesDefault }: DirectoryOptions,
  ): Promise<FolderCopy> {
    await mkdir(folder, { recursive: true });
    const names = columns.map(({ name }) => name);
    const empty = { format, columns: names, since: null, cursor: null, files: 0, seq: 0, idsBytes: 0 };
    const state = (await stateIn(folder)) ?? empty;
    if (state.format !== format)
      throw new DestinationUnusable(`${folder} has files of another format: give --format ${state.format}.`);
    await removeUncommitted(folder, state.files);
    const ids = await CopiedIds.open(join(folder, 'ids'), state.idsBytes);
    // Records that were copied without a member get it by a pass over everything.
    const isSame = names.every((name) => state.columns.includes(name));
    const begun = isSame ? state : { ...state, since: null, cursor: null };
    return new FolderCopy(folder, lock, ids, { ...begun, columns: names }, fileBytesMax);
  }

  get state(): PullState {
    return this.#now;
  }

  async store(body: string, { since, cursor }: PullState): Promise<number> {
    const records = [...elements(member(body, 'data') as string)];
    const ids = records.map(idOf);
    const { columns } = this.#now;
    await this.#append(ids, (seq, id, i) => this.#format.upsert(seq, id, records[i] as string, columns));
    for (const id of ids) this.#ids.add(id);
    this.#now = { ...this.#now, since, cursor };
    if ((this.#file?.bytes ?? 0) >= this.#fileBytesMax) await this.commit();
    return records.length;
  }

  async delete(ids: readonly string[]): Promise<void> {
    await this.#append(ids, (seq, id) => this.#format.delete(seq, id, this.#now.columns));
    for (const id of ids) this.#ids.delete(id);
  }

  async digest(depth: number): Promise<Groups> {
    return this.#ids.digest(depth);
  }

  ids(prefixes: readonly string[]): Promise<readonly string[]> {
    return this.#ids.withPrefixes(prefixes);
  }

  async commit(): Promise<void> {
    const now = this.#now;
    if (now === this.#committed) return;
    this.#now = this.#committed; // a commit that fails is not tried again
    await this.#lock.check();
    if (now.files === 0) this.#file ??= await this.#newFile(); // readers find a file of an empty list as well
    await this.#file?.finish();
    const files = now.files + (this.#file === null ? 0 : 1);
    this.#file = null;
    const state = { ...now, files, idsBytes: await this.#ids.flush() };
    await replaceFile(join(this.#folder, 'state.json'), `${JSON.stringify(state)}\n`);
    this.#committed = state;
    this.#now = state;
  }

  async close(): Promise<void> {
    try {
      await this.commit();
    } finally {
      await this.#file?.close();
      await this.#ids.close();
    }
  }

  get #format() {
    return changeFormats[this.#now.format];
  }

  async #append(ids: readonly string[], line: (seq: number, id: string, i: number) => string): Promise<void> {
    if (ids.length === 0) return;
    const { seq } = this.#now;
    const text = ids.map((id, i) => line(seq + 1 + i, id, i)).join('');
    this.#file ??= await this.#newFile();
    await this.#file.append(text);
    this.#now = { ...this.#now, seq: seq + ids.length };
  }

  async #newFile(): Promise<ChangeFile> {
    const { files, format, columns } = this.#now;
    const file = await ChangeFile.create(this.#folder, files + 1, format);
    await file.append(this.#format.header(columns));
    return file;
  }
}

/** Null when the folder has no copy yet. */
async function stateIn(folder: string): Promise<FolderState | null> {
  const path = join(folder, 'state.json');
  try {
    return JSON.parse(await readFile(path, 'utf8')) as FolderState;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    if (error instanceof SyntaxError)
      throw new DestinationUnusable(`${path} is damaged: restore it, or empty the folder.`);
    throw error;
  }
}

/** The id of a record as text; an id that is a number, as its digits. */
function idOf(record: string): string {
  const id = member(record, 'id') as string;
  return id.startsWith('"') ? (JSON.parse(id) as string) : id;
}
