/** How the program is called in help and hints. */
export const program = 'workspace-data-gateway';

/** A command of the program: what --help says, and what runs it. */
export interface Command {
  /** What `program NAME --help` prints. */
  readonly help: string;
  /** Runs with the arguments behind the command's name; resolves to the exit code, 0 for success. */
  run(args: readonly string[]): Promise<number>;
}

/** The command line itself is wrong: message and a hint at --help, exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Something the operator can put right: the message is all there is to say, exit code 1. */
export class Failure extends Error {
  override readonly name = 'Failure';
}

/** Explanations go to stderr, so that stdout holds nothing but the result. */
export function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** The value of an option that is a whole number within limits. */
export function wholeNumber(option: string, value: string, minimum: number, maximum: number): number {
  const number = Number(value);
  if (/^\d{1,10}$/.test(value) && number >= minimum && number <= maximum) return number;
  throw new UsageError(`${option} must be a whole number from ${minimum} to ${maximum}, not "${value}".`);
}
