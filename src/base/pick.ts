/** The members of these names: where settings are passed on, a reader sees which bound reaches what. */
export function pick<T extends object, K extends keyof T>(from: T, ...names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(names.map((name) => [name, from[name]])) as unknown as Pick<T, K>;
}
