/** Reads a table by a name from outside: "constructor" is no name of a table that lacks it. */
export function own<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
