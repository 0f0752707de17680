import { type ParseArgsConfig, parseArgs } from 'node:util';

export const program = 'workspace-data-gateway';

/** Takes the arguments behind its name; resolves to the exit code. */
export type Command = (args: readonly string[]) => Promise<number>;

type Options = NonNullable<ParseArgsConfig['options']>;
type ParsedOptions<T extends Options> = ReturnType<typeof parseArgs<{ options: T; allowPositionals: true }>>;

/** Refuses any other option, and words unless it takes them. */
export function command<const T extends Options, R>(
  options: T,
  run: (given: ParsedOptions<T>['values'], words: readonly string[]) => Promise<R>,
  allowPositionals = false,
): (args: readonly string[]) => Promise<R> {
  return (args) => {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals });
    return run(values as ParsedOptions<T>['values'], positionals);
  };
}

/** Its message and a hint at --help are printed, exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The operator can correct the fault: only its message is printed, and the exit code is 1. */
export class Failure extends Error {
  override readonly name = 'Failure';
}

export function outLine(line: string): void {
  outText(oneLine(line));
}

/** Aligns the cells of each column; a later part of a table passes the `widths` of the part before. */
export function outTable(lines: readonly (readonly string[])[], widths: number[] = []): void {
  for (const line of lines) for (const [i, { length }] of line.entries()) widths[i] = Math.max(widths[i] ?? 0, length);
  const padded = (line: readonly string[]) => line.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ');
  for (const line of lines) outLine(padded(line).trimEnd());
}

/** Resolves with null, or with the code of the fault when stdout does not take the line. */
export function tryOut(line: string): Promise<string | null> {
  return written(`${visible(oneLine(line))}\n`);
}

export async function outputEnded(): Promise<void> {
  await written('');
}

function written(text: string): Promise<string | null> {
  return new Promise((resolve) =>
    process.stdout.write(text, (error) =>
      resolve(error ? ((error as NodeJS.ErrnoException).code ?? error.message) : null),
    ),
  );
}

export function outText(lines: string): void {
  process.stdout.write(`${visible(lines)}\n`);
}

/** Prints one line on stderr, so that stdout holds only results. */
export function errLine(line: string): void {
  errText(oneLine(line));
}

export function errText(lines: string): void {
  process.stderr.write(`${visible(lines)}\n`);
}

/** Replaces the last line of a terminal; without one it shows nothing. */
export function showProgress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${visible(oneLine(line))}`);
}

/** A newline in foreign text, such as a message of PostgreSQL, must not begin a line. */
export function oneLine(text: string): string {
  return text.replaceAll('\n', '\\u000a');
}

/** Foreign names must not steer the terminal: control characters become \uXXXX, as in JSON. */
function visible(text: string): string {
  const hex = (character: string): string => character.charCodeAt(0).toString(16).padStart(4, '0');
  return text.replace(/(?!\n)[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, (character) => `\\u${hex(character)}`);
}

export function wholeNumber(option: string, value: string, minimum: number, maximum: number): number {
  const number = Number(value);
  if (/^\d{1,10}$/.test(value) && number >= minimum && number <= maximum) return number;
  throw new UsageError(`${option} must be a whole number from ${minimum} to ${maximum}, not "${value}".`);
}
