import { createHash } from 'node:crypto';

/** Numbers that are the same on every run: the source of all made-up data. */
export interface Random {
  /** A whole number, 0 ≤ result < size. */
  below(size: number): number;
  /** One of the items. */
  pick<T>(items: readonly T[]): T;
  /** True in about `percent` of the draws. */
  chance(percent: number): boolean;
}

/** Mulberry32, started from the MD5 of `name`: each made-up thing has its own generator. */
export function random(name: string): Random {
  let state = createHash('md5').update(name).digest().readUInt32LE(0);
  function below(size: number): number {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296) * size);
  }
  function pick<T>(items: readonly T[]): T {
    const item = items[below(items.length)];
    if (item === undefined) throw new Error('nothing to pick from');
    return item;
  }
  return { below, pick, chance: (percent) => below(100) < percent };
}

/** The id of thing number n, shaped as a version 4 UUID. sql/apps/first/seed/01_frame.sql has the same function. */
export function seedId(kind: string, workspaceIndex: number, n: number): string {
  const hex = createHash('md5').update(`${kind}/${workspaceIndex}/${n}`).digest('hex');
  const shaped = `${hex.slice(0, 12)}4${hex.slice(13, 16)}${'89ab'.charAt(n % 4)}${hex.slice(17)}`;
  return shaped.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** The id of row number n, where the database makes ids. sql/apps/second/seed/01_frame.sql has the same function. */
export function numberedId(workspaceIndex: number, n: number): string {
  return String((workspaceIndex + 1) * 10_000_000 + n);
}
