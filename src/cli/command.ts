import { type ParseArgsConfig, parseArgs } from 'node:util';

export const program = 'workspace-data-gateway';

/** Takes the arguments after its name; resolves with the exit code. */
export type Command = (args: readonly string[]) => Promise<number>;

type Options = NonNullable<ParseArgsConfig['options']>;
type ParsedOptions<T extends Options> = ReturnType<typeof parseArgs<{ options: T; allowPositionals: true }>>;

/** Options of one type, without defaults. */
export function makeOptions<const T extends 'string' | 'boolean', const N extends string>(
  type: T,
  ...names: readonly N[]
): Record<N, { readonly type: T }> {
  return Object.fromEntries(names.map((name) => [name, { type }])) as Record<N, { readonly type: T }>;
}

/** Refuses unknown options, and words unless the command takes them. */
export function makeCommand<const T extends Options, R>(
  options: T,
  run: (values: ParsedOptions<T>['values'], words: readonly string[]) => Promise<R>,
  allowPositionals = false,
): (args: readonly string[]) => Promise<R> {
  return (args) => {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals });
    return run(values as ParsedOptions<T>['values'], positionals);
  };
}

/** A wrong command line: its message and a hint at --help are printed, and the exit code is 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** A fault that the operator can correct: only its message is printed, and the exit code is 1. */
export class Failure extends Error {
  override readonly name = 'Failure';
}

export function printLine(line: string): void {
  printText(foldToOneLine(line));
}

/** Aligns the cells of each column; a later part of a table passes the `widths` of the part before. */
export function printTable(lines: readonly (readonly string[])[], widths: number[] = []): void {
  for (const line of lines) for (const [i, { length }] of line.entries()) widths[i] = Math.max(widths[i] ?? 0, length);
  const padded = (line: readonly string[]) => line.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ');
  for (const line of lines) printLine(padded(line).trimEnd());
}

/** Resolves with null, or with the code of the fault when stdout does not take the line. */
export function tryPrintLine(line: string): Promise<string | null> {
  return writeOut(`${showControls(foldToOneLine(line))}\n`);
}

export async function waitForOutput(): Promise<void> {
  await writeOut('');
}

function writeOut(text: string): Promise<string | null> {
  const getFault = (error?: NodeJS.ErrnoException | null) => (error ? (error.code ?? error.message) : null);
  return new Promise((resolve) => process.stdout.write(text, (error) => resolve(getFault(error))));
}

export function printText(lines: string): void {
  process.stdout.write(`${showControls(lines)}\n`);
}

/** Prints one line on stderr, so that stdout holds only results. */
export function printError(line: string): void {
  printErrorText(foldToOneLine(line));
}

export function printErrorText(lines: string): void {
  process.stderr.write(`${showControls(lines)}\n`);
}

/** Replaces the last line of a terminal; prints nothing elsewhere. */
export function showProgress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${showControls(foldToOneLine(line))}`);
}

/** Escapes newlines: foreign text, such as a message of PostgreSQL, must not begin a line. */
export function foldToOneLine(text: string): string {
  return text.replaceAll('\n', '\\u000a');
}

/** Splits the names of an option at commas; empty ones do not count. */
export function parseNames(list: string): string[] {
  return list.split(',').flatMap((name) => name.trim() || []);
}

/** Escapes control characters as \uXXXX, as in JSON: foreign names must not steer the terminal. */
function showControls(text: string): string {
  const hex = (character: string): string => character.charCodeAt(0).toString(16).padStart(4, '0');
  return text.replace(/(?!\n)[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, (character) => `\\u${hex(character)}`);
}

export function parseWholeNumber(option: string, value: string, minimum: number, maximum: number): number {
  const number = Number(value);
  if (/^\d{1,10}$/.test(value) && number >= minimum && number <= maximum) return number;
  throw new UsageError(`${option} must be a whole number from ${minimum} to ${maximum}, not "${value}".`);
}
