import { runCommand } from './command.js';
import { openDisplay } from './display.js';

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

let isUnread = false;
process.stdout.on('error', () => {
  isUnread = true; // a closed reader, such as `head`, ends no run
});
const screen = openDisplay({
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
});
const exitCode = await runCommand(process.argv.slice(2), screen, stop.signal).catch(() => stoppedCode);
setImmediate(() => process.exit(exitCode || Number(isUnread))); // after the error of the last line
