import { type ParseArgsConfig, parseArgs } from 'node:util';

/** The name of the program in help and hints. */
export const program = 'workspace-data-gateway';

/** A command of the program: takes the arguments behind its name; resolves to the exit code, 0 for success. */
export type Command = (args: readonly string[]) => Promise<number>;

type Options = NonNullable<ParseArgsConfig['options']>;
type Given<T extends Options> = ReturnType<typeof parseArgs<{ options: T; allowPositionals: true }>>;

/** A command with these options; any other is refused, and so are words, unless it takes them. */
export function command<const T extends Options, R>(
  options: T,
  run: (given: Given<T>['values'], words: readonly string[]) => Promise<R>,
  allowPositionals = false,
): (args: readonly string[]) => Promise<R> {
  return (args) => {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals });
    return run(values as Given<T>['values'], positionals);
  };
}

/** A wrong command line: its message and a hint at --help are printed, exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** A fault that the operator can put right: only its message is printed, exit code 1. */
export class Failure extends Error {
  override readonly name = 'Failure';
}

/** Prints one line to stdout: results. */
export function print(line: string): void {
  printText(oneLine(line));
}

/** Prints one line to stdout; resolves with null, or with the code of the fault when stdout does not take it. */
export function printed(line: string): Promise<string | null> {
  return written(`${visible(oneLine(line))}\n`);
}

/** Resolves when stdout has taken, or refused, what was printed. */
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

/** Prints lines to stdout. */
export function printText(lines: string): void {
  process.stdout.write(`${visible(lines)}\n`);
}

/** Prints one line to stderr: explanations, so that stdout holds nothing but the result. */
export function say(line: string): void {
  sayText(oneLine(line));
}

/** Prints lines to stderr. */
export function sayText(lines: string): void {
  process.stderr.write(`${visible(lines)}\n`);
}

/** Replaces the last line of a terminal by this one; where stderr is no terminal it shows nothing. */
export function showProgress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${visible(oneLine(line))}`);
}

/** Text from elsewhere, such as a message of PostgreSQL, as part of several lines: a newline in it begins no line. */
export function oneLine(text: string): string {
  return text.replaceAll('\n', '\\u000a');
}

/**
 * Names from the database or the environment must not steer the terminal: control characters (ESC and C1 included), bidi
 * controls and Unicode line ends become \uXXXX, which leaves JSON the same. Newlines stay.
 */
function visible(text: string): string {
  const hex = (character: string): string => character.charCodeAt(0).toString(16).padStart(4, '0');
  return text.replace(/(?!\n)[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, (character) => `\\u${hex(character)}`);
}

/** The value of an option that is a whole number within limits. */
export function wholeNumber(option: string, value: string, minimum: number, maximum: number): number {
  const number = Number(value);
  if (/^\d{1,10}$/.test(value) && number >= minimum && number <= maximum) return number;
  throw new UsageError(`${option} must be a whole number from ${minimum} to ${maximum}, not "${value}".`);
}
