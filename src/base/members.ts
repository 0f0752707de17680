/** Reads a table by a name from outside: "constructor" is no name of a table that lacks it. */
export function getOwn<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

/** Takes the members of these names: where settings are passed on, a reader sees which bound reaches which code. */
export function pick<T extends object, K extends keyof T>(from: T, ...names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(names.map((name) => [name, from[name]])) as unknown as Pick<T, K>;
}

/** Splits the list of a setting at spaces and commas. */
export function splitList(setting: string): string[] {
  return setting.split(/[\s,]+/).filter((entry) => entry !== '');
}

/** Writes "/adres/straat" (RFC 6901). */
export function toPointer(path: readonly string[]): string {
  return path.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** Turns "/a~1b/c", or the fragment "#/a~1b/c", into ["a/b", "c"]. */
export function splitPointer(pointer: string): string[] {
  const [, ...tokens] = pointer.split('/').map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
  return tokens;
}
