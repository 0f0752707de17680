#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Command, print, program, say, UsageError } from './cli/command.js';
import { explain } from './cli/explain.js';
import { projectRoot } from './paths.js';

/** Loaded only when it is called: `--version` needs no database driver. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./cli/serve.js')).serve,
  demo: async () => (await import('./demo/demo.js')).demo,
  check: async () => (await import('./cli/check.js')).check,
  migrate: async () => (await import('./cli/migrate.js')).migrateCommand,
  tokens: async () => (await import('./cli/tokens.js')).tokens,
};

async function main(args: readonly string[]): Promise<number> {
  const [name = '--help', ...rest] = args;
  if (name === '--help' || name === '-h' || name === 'help') return help();
  if (name === '--version') return version();
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (load === undefined) throw new UsageError(`There is no ${name.startsWith('-') ? 'option' : 'command'} "${name}".`);
  const command = await load();
  if (rest.includes('--help') || rest.includes('-h')) {
    print(command.help);
    return 0;
  }
  return command.run(rest);
}

async function help(): Promise<number> {
  const lines = await Promise.all(
    Object.entries(commands).map(async ([name, load]) => `  ${name.padEnd(9)} ${(await load()).summary}`),
  );
  print(`Usage: ${program} COMMAND [options]

Commands:
${lines.join('\n')}

Options:
  --help     This text; behind a command, what that command takes
  --version  Version of the gateway

Settings come from the environment; config/settings.schema.json describes each.`);
  return 0;
}

function version(): number {
  const { version } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8')) as { version: string };
  print(version);
  return 0;
}

// A reader that has seen enough, such as head, is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

const args = process.argv.slice(2);
let code: number;
try {
  code = await main(args);
} catch (error) {
  const { text, exitCode, unexpected } = explain(
    error,
    args[0] !== undefined && Object.hasOwn(commands, args[0]) ? args[0] : '',
  );
  say(unexpected ? ((error as Error).stack ?? text) : text);
  code = exitCode;
}
// Not left to happen by itself: what a failed start or interrupted work still holds open may not keep us alive.
process.exit(code);
