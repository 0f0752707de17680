import { projectText } from '../paths.js';
import { outputEnded, printText, sayText } from './command.js';
import { explain, type Usage } from './explain.js';

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

/** Errors are explained on stderr. */
async function exitCodeOf(run: () => Promise<number>, usage: Usage): Promise<number> {
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
