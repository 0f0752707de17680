import type { Display } from './display.js';
import { describeError } from './errors.js';
import { isUnencrypted, parseCommand, UsageError, usage } from './options.js';
import { keepCopy } from './run.js';

/** Runs a command line. Returns the exit code; rejects when the signal ended it. */
export async function runCommand(
  args: readonly string[],
  screen: Display,
  signal: AbortSignal,
  firstPauseMs?: number,
): Promise<number> {
  try {
    const command = parseCommand(args);
    if (command.does === 'help') {
      screen.print(usage);
      return 0;
    }
    if (command.does === 'status') {
      const { composeStatus: statusText } = await import('./sql/status.js');
      const { text, isFresh } = await statusText(command, command.maxAgeMs);
      screen.print(text);
      return isFresh ? 0 : 1;
    }
    if (isUnencrypted(command.options.base))
      screen.note('The token and the data travel in clear text: use https for a host that is not this one.');
    await keepCopy(command.options, screen, signal, firstPauseMs);
    return 0;
  } catch (error) {
    signal.throwIfAborted();
    screen.note(describeError(error));
    return error instanceof UsageError ? 2 : 1;
  }
}
