/** Reads a table by a name from outside: "constructor" is no name of a table that lacks it. */
export function getOwn<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

/** The members of these names: where settings are passed on, a reader sees which bound reaches what. */
export function pick<T extends object, K extends keyof T>(from: T, ...names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(names.map((name) => [name, from[name]])) as unknown as Pick<T, K>;
}
