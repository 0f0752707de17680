import { type FileHandle, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { DestinationUnusable } from './destination.js';
import { renameDurably, writeAt } from './durable-files.js';

const form = /^(\d{8,12})\.(?:ndjson|csv)\.gz(\.part)?$/;

/** A change file that is being written, under a name of its own until `finish`. */
export class ChangeFile {
  readonly #path: string;
  readonly #file: FileHandle;
  #bytes = 0;

  private constructor(path: string, file: FileHandle) {
    this.#path = path;
    this.#file = file;
  }

  static async create(folder: string, number: number, format: string): Promise<ChangeFile> {
    const path = join(folder, `${String(number).padStart(8, '0')}.${format}.gz`);
    return new ChangeFile(path, await open(`${path}.part`, 'w'));
  }

  /** Compressed. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds a gzip member: a file may consist of several (RFC 1952, section 2.2), so it is valid after each. */
  async append(text: string): Promise<void> {
    const bytes = await promisify(gzip)(text);
    await writeAt(this.#file, bytes, this.#bytes);
    this.#bytes += bytes.length;
  }

  /** Gives the file its name when it is on the disk. */
  async finish(): Promise<void> {
    await this.#file.truncate(this.#bytes); // drops what a failed append left
    await this.#file.sync();
    await this.close();
    await renameDurably(`${this.#path}.part`, this.#path);
  }

  /** Leaves a file that was not finished under the name that does not count. */
  close(): Promise<void> {
    return this.#file.close();
  }
}

/** Removes the files of a commit that did not end. Throws DestinationUnusable when there are more than such a commit can have left. */
export async function removeUncommitted(folder: string, committed: number): Promise<void> {
  for (const name of await readdir(folder)) {
    const [, digits, part] = form.exec(name) ?? [];
    const number = Number(digits);
    if (digits === undefined || (number <= committed && part === undefined)) continue;
    if (number > committed + 1)
      throw new DestinationUnusable(
        `${join(folder, name)} is not in the state of the copy: restore state.json, or empty the folder and read everything again.`,
      );
    await rm(join(folder, name));
  }
}
