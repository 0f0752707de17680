import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { DestinationUnusable, type Groups } from './destination.js';
import { writeAt } from './durable-files.js';
import { HashSet } from './hash-set.js';

/** Digits of a group: the depth of the digest that a comparison asks for at most. */
const groupDigits = 3;

/**
 * Ids of the records in a folder: a file with a line for each that came (+) or went (-), and in memory 8 bytes of the hash of each, in
 * a table that takes 11 to 22 bytes for each, half as much again while it grows. Lines behind the committed length do not count.
 */
export class CopiedIds {
  readonly #file: FileHandle;
  readonly #present = new HashSet();
  readonly #counts = new Uint32Array(16 ** groupDigits);
  readonly #high = new Uint32Array(16 ** groupDigits);
  readonly #low = new Uint32Array(16 ** groupDigits);
  #committedBytes = 0;
  #uncommitted = '';

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Reads the first bytes of the file. Throws DestinationUnusable when it is shorter. */
  static async open(path: string, committedBytes: number): Promise<CopiedIds> {
    const ids = new CopiedIds(await open(path, committedBytes === 0 ? 'w+' : 'r+'));
    ids.#committedBytes = committedBytes;
    if ((await ids.#file.stat()).size < committedBytes) throw damaged(path);
    for await (const lines of ids.#lines()) for (const { sign, hash } of lines) ids.#count(sign, hash);
    return ids;
  }

  add(id: string): void {
    this.#note('+', id);
  }

  delete(id: string): void {
    this.#note('-', id);
  }

  digest(depth: number): Groups {
    const groups = new Map<string, { count: number; high: number; low: number }>();
    for (const [group, count] of this.#counts.entries()) {
      if (count === 0) continue;
      const prefix = group.toString(16).padStart(groupDigits, '0').slice(0, depth);
      const sum = groups.get(prefix) ?? { count: 0, high: 0, low: 0 };
      groups.set(prefix, {
        count: sum.count + count,
        high: sum.high ^ (this.#high[group] as number),
        low: sum.low ^ (this.#low[group] as number),
      });
    }
    return new Map([...groups].map(([prefix, { count, high, low }]) => [prefix, `${count} ${hex(high)}${hex(low)}`]));
  }

  async withPrefixes(prefixes: readonly string[]): Promise<readonly string[]> {
    const wanted = new Set(prefixes);
    const lengths = [...new Set(prefixes.map(({ length }) => length))];
    const found = new Set<string>();
    for await (const lines of this.#lines())
      for (const { sign, hash, id } of lines) {
        if (!lengths.some((length) => wanted.has(hash.slice(0, length)))) continue;
        const text = JSON.parse(id) as string; // a string of its own: a slice would keep its block in memory
        if (sign === '+') found.add(text);
        else found.delete(text);
      }
    return [...found];
  }

  /** Writes new lines to the disk. Returns the length that counts from the next state on. */
  async flush(): Promise<number> {
    const bytes = Buffer.from(this.#uncommitted);
    if (bytes.length > 0) {
      await writeAt(this.#file, bytes, this.#committedBytes);
      await this.#file.datasync();
    }
    this.#committedBytes += bytes.length;
    this.#uncommitted = '';
    return this.#committedBytes;
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  #note(sign: '+' | '-', id: string): void {
    const hash = createHash('sha256').update(id).digest('hex').slice(0, 16);
    if (this.#count(sign, hash)) this.#uncommitted += `${sign}${hash} ${JSON.stringify(id)}\n`;
  }

  /** Returns whether the id came or went. */
  #count(sign: string, hash: string): boolean {
    const [high, low] = [Number.parseInt(hash.slice(0, 8), 16), Number.parseInt(hash.slice(8), 16)];
    const isChange = sign === '+' ? this.#present.add(high, low) : this.#present.delete(high, low);
    if (!isChange) return false;
    const group = high >>> (32 - 4 * groupDigits);
    this.#counts[group] = (this.#counts[group] as number) + (sign === '+' ? 1 : -1);
    this.#high[group] = (this.#high[group] as number) ^ high;
    this.#low[group] = (this.#low[group] as number) ^ low;
    return true;
  }

  async *#lines(): AsyncGenerator<readonly { sign: string; hash: string; id: string }[]> {
    let rest = '';
    for await (const text of this.#texts()) {
      const lines = (rest + text).split('\n');
      rest = lines.pop() as string;
      yield lines.map((line) => ({ sign: line[0] as string, hash: line.slice(1, 17), id: line.slice(18) }));
    }
  }

  async *#texts(): AsyncGenerator<string> {
    const decoder = new TextDecoder();
    const buffer = Buffer.alloc(1 << 20);
    for (let at = 0; at < this.#committedBytes; ) {
      const { bytesRead } = await this.#file.read(buffer, 0, Math.min(buffer.length, this.#committedBytes - at), at);
      at += bytesRead;
      yield decoder.decode(buffer.subarray(0, bytesRead), { stream: true });
    }
    yield this.#uncommitted;
  }
}

function damaged(path: string): DestinationUnusable {
  return new DestinationUnusable(
    `${path} is shorter than the state says: empty the folder, and everything is read again.`,
  );
}

const hex = (word: number): string => (word >>> 0).toString(16).padStart(8, '0');
