import { suggest } from '../base/nearest-name.js';
import { readProject } from '../base/paths.js';
import { type Command, foldToOneLine, printErrorText, printText, UsageError, waitForOutput } from './command.js';

// pg looks for `navigator`, and without it for `Response`, which loads 9 MB of Node's HTTP client.
if (!('navigator' in globalThis)) Object.assign(globalThis, { navigator: { userAgent: 'Node.js' } });

// A closed reader (EPIPE, for example of `head`) or a full disk must not end a command midway.
let stdoutFault: NodeJS.ErrnoException | undefined;
process.stdout.on('error', (error) => {
  stdoutFault ??= error;
});
process.stderr.on('error', () => undefined); // no stream is left to report the error

export interface Usage {
  readonly called: string;
  readonly help: string;
}

export function printHelp({ help }: Usage): number {
  printText(readProject(help).trimEnd());
  return 0;
}

/** Exits explicitly: open handles of a failed start would keep the process alive. */
export async function runProgram(usage: Usage, args: readonly string[], run: Command): Promise<never> {
  process.exit(await runForExitCode(usage, args, run));
}

export async function runForExitCode(usage: Usage, args: readonly string[], run: Command): Promise<number> {
  const asksForHelp = usage.help !== '' && (args.includes('--help') || args.includes('-h'));
  try {
    const code = asksForHelp ? printHelp(usage) : await run(args);
    await waitForOutput();
    if (stdoutFault === undefined || stdoutFault.code === 'EPIPE') return code;
    printErrorText(`The output could not be written (${stdoutFault.code}).`);
    return Math.max(code, 1);
  } catch (error) {
    const [text, exitCode] = explainFailure(error, usage) ?? [(error as Error).stack ?? String(error), 1];
    printErrorText(text);
    return exitCode;
  }
}

/** Errors by the name of their class, so that their modules need not be imported. */
const refusals = ['Failure', 'MigrationFailed', 'AdoptRefused', 'StartRefused', 'ExportFailed'];

const connectionFaults: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name cannot be looked up now',
  ETIMEDOUT: 'it does not answer',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ECONNRESET: 'it closed the connection',
};

const nextSteps: Readonly<Record<string, string>> = {
  '25006': 'It is a replica, or its transactions are read-only: give the URL of the primary.',
  '28': 'Look at user and password of its URL, and at pg_hba.conf.',
  '3D000': 'Look at the name of the database in its URL.',
  '42501': 'Give the URL of a role that may do this.',
  '53300': 'Repeat it when connections are free, or raise max_connections or the limit of the role.',
};

const fileFaults = /^E(ACCES|PERM|NOENT|EXIST|NOTDIR|ISDIR|NOSPC|DQUOT|ROFS|IO)$/;

type DatabaseOrSystemError = Error & Partial<Record<'code' | 'severity' | 'address' | 'port', string>>;

/** Returns sentences without URLs and passwords; undefined for a bug, which is printed with its stack. */
function explainFailure(error: unknown, usage: Usage): readonly [text: string, exitCode: number] | undefined {
  const { name, message, code = '', severity, address, port } = error as DatabaseOrSystemError;
  const isParsing = String(code).startsWith('ERR_PARSE_ARGS');
  if (isParsing || error instanceof UsageError)
    return [`${isParsing ? describeWrongOption(message, usage) : message}\nTry: ${usage.called} --help`, 2];
  if (name === 'SettingsError') return [message, 2];
  if (refusals.includes(name)) return [message, 1];
  if (error instanceof AggregateError && error.errors.length > 0) return explainFailure(error.errors[0], usage);
  const place = address ? ` at ${address}:${port}` : '';
  if (connectionFaults[code]) return [`The server${place} cannot be reached: ${connectionFaults[code]} (${code}).`, 1];
  if (severity) {
    const nextStep = nextSteps[code] ?? nextSteps[code.slice(0, 2)];
    return [`PostgreSQL says: ${foldToOneLine(message)} (SQLSTATE ${code})${nextStep ? `. ${nextStep}` : ''}`, 1];
  }
  if (code === 'ERR_INVALID_URL') return ['A connection URL is not a valid URL.', 1];
  if (fileFaults.test(code)) return [message, 1];
  if (noReply.test(message)) return [`The database did not answer in time, or closed the connection (${message}).`, 1];
  return undefined;
}

const noReply = /^(timeout expired|Connection terminated|Query read timeout|Client has encountered a connection error)/;

/** Keeps the first sentence of node:util, which names the fault, and drops its advice. */
function describeWrongOption(message: string, { help }: Usage): string {
  const sentence = message.split('. ')[0]?.replace(/\.$/, '');
  const [, option] = /^Unknown option '([^']+)'/.exec(message) ?? [];
  if (option === undefined) return `${sentence}.`;
  const knownOptions = readProject(help).match(/--[a-z-]+/g) ?? [];
  const others = knownOptions.filter((each) => each !== option);
  return `${sentence}${suggest(option, others)}`;
}
