export function namedBy(part: string, names: readonly string[]): readonly string[] {
  if (names.includes(part)) return [part];
  const found = part === '' ? [] : names.filter((name) => name.includes(part));
  if (found.length === 0)
    throw new Error(`None of the ${names.length} names contains "${part}": see test/mutants.json.`);
  return found;
}
