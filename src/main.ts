#!/usr/bin/env node
import { existsSync } from 'node:fs';
import { type Command, Failure, outputEnded, print, printText, program, sayText, UsageError } from './cli/command.js';
import { explain } from './cli/explain.js';
import { meantBy } from './nearest-name.js';
import { projectText } from './paths.js';

interface Entry {
  /** One line for the list of commands. */
  readonly summary: string;
  /** Imports the command only when it is called: `--version` needs no database driver. */
  load(): Promise<Command>;
}

const commands: Readonly<Record<string, Entry>> = {
  serve: { summary: 'Run the gateway', load: async () => (await import('./cli/serve.js')).serve },
  demo: { summary: 'Run the gateway over an example: a PostgreSQL primary and replica of its own', load: loadDemo },
  check: {
    summary: 'Say whether the databases fit the gateway, and what is wrong',
    load: async () => (await import('./cli/check.js')).check,
  },
  adopt: {
    summary: 'Draft views and definitions for the schema of an app',
    load: async () => (await import('./cli/adopt.js')).adoptCommand,
  },
  migrate: {
    summary: "Bring the gateway's schema in the database up to date",
    load: async () => (await import('./cli/migrate.js')).migrateCommand,
  },
  views: {
    summary: "Drop and create the views around changes of the app's tables",
    load: async () => (await import('./cli/views.js')).viewsCommand,
  },
  docs: {
    summary: 'Write the documentation page of the API to a file',
    load: async () => (await import('./cli/docs.js')).docsCommand,
  },
  pull: {
    summary: 'Keep a copy of a workspace in a database or folder of your own, through the API',
    load: async () => (await import('./cli/pull.js')).pullCommand,
  },
  tokens: {
    summary: 'Create, list, rotate and revoke access tokens',
    load: async () => (await import('./cli/tokens.js')).tokens,
  },
};

/** The production image has no src/demo. */
async function loadDemo(): Promise<Command> {
  if (existsSync(new URL('./demo', import.meta.url))) return (await import('./demo/demo.js')).demo;
  throw new Failure('The demo is not part of the production image: run it in a clone of the project.');
}

async function main(args: readonly string[]): Promise<number> {
  const [first = '--help', ...rest] = args;
  if (first === '--version') return version();
  const isHelp = ['--help', '-h', 'help'].includes(first);
  if (isHelp && rest.length === 0) return help();
  const [name = '', ...others] = isHelp ? rest : args;
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (entry === undefined) throw unknown(name);
  if (isHelp || others.includes('--help') || others.includes('-h')) {
    printText(projectText(`config/help/${name}.txt`).trimEnd());
    return 0;
  }
  return (await entry.load())(others);
}

function unknown(name: string): UsageError {
  if (name.startsWith('-'))
    return new UsageError(`There is no option "${name}"${meantBy(name, ['--help', '--version'])}`);
  return new UsageError(`There is no command "${name}"${meantBy(name, Object.keys(commands))}`);
}

function help(): number {
  const lines = Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(9)} ${summary}`);
  printText(`Usage: ${program} COMMAND [options]

Commands:
${lines.join('\n')}

Options:
  --help     This text; behind a command, as \`help COMMAND\`, the options of that command
  --version  Version of the gateway

Exit codes: 0 success, 1 something to put right, 2 wrong usage or settings.
Settings come from the environment; config/settings.schema.json describes each.`);
  return 0;
}

function version(): number {
  const { version } = JSON.parse(projectText('package.json')) as { version: string };
  print(version);
  return 0;
}

// Without `navigator`, which Node has from version 21 on, pg asks `Response` where it runs: that loads 9 MB of Node's HTTP client.
if (!('navigator' in globalThis)) Object.assign(globalThis, { navigator: { userAgent: 'Node.js' } });

// A reader that is gone (EPIPE, for example of `head`) or a full disk ends no command in the middle of its work.
let stdoutFault: NodeJS.ErrnoException | undefined;
process.stdout.on('error', (error) => {
  stdoutFault ??= error;
});
process.stderr.on('error', () => undefined); // nothing is left to say it with

/** Runs the command and returns its exit code. Errors are explained on stderr. */
async function exitCodeOf(args: readonly string[]): Promise<number> {
  try {
    const code = await main(args);
    await outputEnded();
    if (stdoutFault === undefined || stdoutFault.code === 'EPIPE') return code;
    sayText(`The output could not be written (${stdoutFault.code}).`);
    return Math.max(code, 1);
  } catch (error) {
    const [command = ''] = args;
    const { text, exitCode, unexpected } = explain(error, Object.hasOwn(commands, command) ? command : '');
    sayText(unexpected ? ((error as Error).stack ?? text) : text);
    return exitCode;
  }
}

// Exit explicitly: open handles of a failed start would keep the process alive.
void exitCodeOf(process.argv.slice(2)).then((code) => process.exit(code));
