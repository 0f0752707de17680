import { Refused } from './api.js';
import { Unusable } from './destination.js';
import { display } from './display.js';
import { UnfitDocument } from './document.js';
import { isClear, parse, UsageError, usage } from './options.js';
import { isLostConnection, keepCopy } from './run.js';

process.umask(0o077); // copies hold personal data

/** Exit codes of a run that a signal ended, as a shell has them. */
const codeOf = { SIGINT: 130, SIGTERM: 143 } as const;
let stoppedCode = 0;
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    stoppedCode = codeOf[signal];
    stop.abort();
  });

async function main(args: readonly string[]): Promise<number> {
  const screen = display();
  try {
    const command = parse(args);
    if (command.does === 'help') {
      process.stdout.write(usage);
      return 0;
    }
    if (command.does === 'status') {
      const { statusText } = await import('./sql/status.js');
      const { text, isFresh } = await statusText(command, command.maxAgeMs);
      process.stdout.write(text);
      return isFresh ? 0 : 1;
    }
    if (isClear(command.options.base))
      screen.note('The token and the data travel in clear text: use https for a host that is not this one.');
    await keepCopy(command.options, screen, stop.signal);
    return 0;
  } catch (error) {
    if (stop.signal.aborted) return stoppedCode;
    screen.note(inWords(error));
    return error instanceof UsageError ? 2 : 1;
  }
}

/** The error in words that an operator can act on. */
function inWords(error: unknown): string {
  const { code, message } = error as { code?: string; message: string };
  const own = [Refused, Unusable, UsageError, UnfitDocument].some((kind) => error instanceof kind);
  if (own) return message;
  if (code === 'ENOSPC' || code === '53100' || /No space left|not enough disk/i.test(message))
    return `The disk is full: ${message.split('\n')[0]}`;
  if (code === 'EEXIST' || code === 'ENOTDIR') return `A file is in the way of a folder: ${message}`;
  if (['EACCES', 'EPERM', 'EROFS', '42501'].includes(code ?? ''))
    return `The destination cannot be written: ${message}`;
  if (isLostConnection(error)) return `The connection to the destination was lost: ${message}`;
  return `${message.split('\n')[0]}`;
}

let isUnread = false;
process.stdout.on('error', () => {
  isUnread = true; // a reader that went away, such as `head`, ends no run
});
const exitCode = await main(process.argv.slice(2));
setImmediate(() => process.exit(exitCode || Number(isUnread))); // after the error of the last line
