import { meantBy } from '../nearest-name.js';
import { projectText } from '../paths.js';
import { oneLine, outputEnded, printText, sayText, UsageError } from './command.js';

// Without `navigator`, which Node has from version 21 on, pg asks `Response` where it runs: that loads 9 MB of Node's HTTP client.
if (!('navigator' in globalThis)) Object.assign(globalThis, { navigator: { userAgent: 'Node.js' } });

// A reader that is gone (EPIPE, for example of `head`) or a full disk ends no command in the middle of its work.
let stdoutFault: NodeJS.ErrnoException | undefined;
process.stdout.on('error', (error) => {
  stdoutFault ??= error;
});
process.stderr.on('error', () => undefined); // nothing is left to say it with

export function asksForHelp(args: readonly string[]): boolean {
  return args.includes('--help') || args.includes('-h');
}

/** Prints the help text of a command. */
export function printHelp({ help }: Usage): number {
  printText(projectText(help).trimEnd());
  return 0;
}

/** Runs the program, and ends the process with its exit code: open handles of a failed start would keep it alive. */
export async function runProgram(run: () => Promise<number>, usage: Usage): Promise<never> {
  process.exit(await exitCodeOf(run, usage));
}

/** The exit code of a run; its errors are explained on stderr. */
export async function exitCodeOf(run: () => Promise<number>, usage: Usage): Promise<number> {
  try {
    const code = await run();
    await outputEnded();
    if (stdoutFault === undefined || stdoutFault.code === 'EPIPE') return code;
    sayText(`The output could not be written (${stdoutFault.code}).`);
    return Math.max(code, 1);
  } catch (error) {
    const { text, exitCode, unexpected } = explain(error, usage);
    sayText(unexpected ? ((error as Error).stack ?? text) : text);
    return exitCode;
  }
}

/** How a command is called, and the file with its help text. */
export interface Usage {
  readonly called: string;
  readonly help: string;
}

/** The text to print and the exit code. `unexpected` means a bug, whose stack is printed. */
interface Explanation {
  readonly text: string;
  readonly exitCode: number;
  readonly unexpected: boolean;
}

/** Exit codes of errors whose message is written for the operator. By name, so that their modules need not be imported. */
const exitCodes: Readonly<Record<string, number>> = {
  SettingsError: 2,
  UsageError: 2,
  Failure: 1,
  MigrationFailed: 1,
  AdoptRefused: 1,
  StartRefused: 1,
};

const connectionFaults: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name cannot be looked up now',
  ETIMEDOUT: 'it does not answer',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ECONNRESET: 'it closed the connection',
};

/** The next step after an error of PostgreSQL, by SQLSTATE or by class: the server, the login or the database is another than was meant. */
const nextSteps: Readonly<Record<string, string>> = {
  '25006': 'It is a replica, or its transactions are read-only: give the URL of the primary.',
  '28': 'Look at user and password of its URL, and at pg_hba.conf.',
  '3D000': 'Look at the name of the database in its URL.',
  '42501': 'Give the URL of a role that may do this.',
  '53300': 'Repeat it when connections are free, or raise max_connections or the limit of the role.',
};

/** Their messages name the file and the fault. */
const fileFaults = /^E(ACCES|PERM|NOENT|EXIST|NOTDIR|ISDIR|NOSPC|DQUOT|ROFS|IO)$/;

/** Explains any error in a sentence or more, without connection URLs and passwords. */
function explain(error: unknown, usage: Usage): Explanation {
  const { name, message, code, severity, address, port } = error as DatabaseOrSystemError;
  const hint = `Try: ${usage.called} --help`;
  if (typeof code === 'string' && code.startsWith('ERR_PARSE_ARGS'))
    return expected(`${wrongOption(message, usage)}\n${hint}`, 2);
  if (error instanceof UsageError) return expected(`${message}\n${hint}`, 2);
  const exitCode = exitCodes[name];
  if (exitCode !== undefined) return expected(message, exitCode);
  if (error instanceof AggregateError && error.errors.length > 0) return explain(error.errors[0], usage);
  if (code !== undefined && connectionFaults[code]) {
    const where = address ? ` at ${address}:${port}` : '';
    return expected(`The server${where} cannot be reached: ${connectionFaults[code]} (${code}).`, 1);
  }
  if (severity) {
    const nextStep = nextSteps[code ?? ''] ?? nextSteps[code?.slice(0, 2) ?? ''];
    return expected(`PostgreSQL says: ${oneLine(message)} (SQLSTATE ${code})${nextStep ? `. ${nextStep}` : ''}`, 1);
  }
  if (code === 'ERR_INVALID_URL') return expected('A connection URL is not a valid URL.', 1);
  if (code === 'EADDRINUSE')
    return expected(`Port ${port} is in use; choose another with --port or --ops-port, 0 for a free one.`, 1);
  if (code !== undefined && fileFaults.test(code)) return expected(message, 1);
  if (
    /^(timeout expired|Connection terminated|Query read timeout|Client has encountered a connection error)/.test(
      message,
    )
  ) {
    return expected(`The database did not answer in time, or closed the connection (${message}).`, 1);
  }
  return { text: message, exitCode: 1, unexpected: true };
}

interface DatabaseOrSystemError extends Error {
  readonly code?: string;
  readonly severity?: string;
  readonly address?: string;
  readonly port?: number;
}

function expected(text: string, exitCode: number): Explanation {
  return { text, exitCode, unexpected: false };
}

/** node:util adds advice on how to pass a value that begins with a dash; its first sentence names the fault. */
function wrongOption(message: string, { help }: Usage): string {
  const sentence = message.split('. ')[0]?.replace(/\.$/, '');
  const [, option] = /^Unknown option '([^']+)'/.exec(message) ?? [];
  if (option === undefined) return `${sentence}.`;
  const known = projectText(help).match(/--[a-z-]+/g) ?? [];
  return `${sentence}${meantBy(option, known)}`;
}
