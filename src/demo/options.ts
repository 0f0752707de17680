import { once } from 'node:events';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Failure, program, UsageError, wholeNumber } from '../cli/command.js';
import { ports } from '../cli/serve.js';
import { projectRoot } from '../paths.js';
import { loadSettings, type Settings } from '../settings.js';

/** The text of `demo --help`. */
export const help = `Usage: ${program} demo [options]

Starts a PostgreSQL primary with streaming replicas from the binaries that npm installed (or those in PG_BIN), fills
it with two installers' workspaces, and runs the gateway in front. Ctrl-C or SIGTERM stops everything it started.

Options:
  --port N           Port of the API; 0 picks a free one; default PORT, else 8080
  --ops-port N       Port of /livez, /readyz, /metrics and /docs; 0 picks a free one; default OPS_PORT, else 9090
  --replicas N       Replicas, 1 to 8; default 1
  --rows SIZE        small (default, some 20,000 rows in all), large (200,000 work orders), or a number of work orders
  --dir DIR          Keep data, keys, passwords and tokens in DIR between runs; default a temporary folder
  --ready-file FILE  When serving, write connection URLs, tokens and process ids to FILE as JSON
  --help             This text

Every setting works from the environment as in \`serve\`, but for the databases and keys, which are the demo's own.
Exit codes: 0 stopped by a signal, 1 something to put right, 2 wrong usage or settings.`;

/** The options of `demo`, parsed. */
export interface DemoOptions {
  readonly dir: string | undefined;
  readonly rows: string | undefined;
  readonly replicas: number;
  readonly readyFile: string | undefined;
  readonly settings: Settings;
  /** For `serve`. */
  readonly args: readonly string[];
}

/** The command line of `demo`. Throws UsageError. */
export function parseOptions(args: readonly string[]): DemoOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      port: { type: 'string' },
      'ops-port': { type: 'string' },
      replicas: { type: 'string', default: '1' },
      rows: { type: 'string' },
      dir: { type: 'string' },
      'ready-file': { type: 'string' },
    },
  });
  const { rows, dir, 'ready-file': readyFile } = values;
  if (rows !== undefined && rows !== 'small' && rows !== 'large' && !/^[1-9]\d{0,6}$/.test(rows)) {
    throw new UsageError(`--rows must be small, large or a number from 1 to 9999999, not "${rows}".`);
  }
  const given = ports(values);
  const chosen = Object.entries({ '--port': given.port, '--ops-port': given.opsPort });
  return {
    dir: dir === undefined ? undefined : resolve(dir),
    rows,
    replicas: wholeNumber('--replicas', values.replicas, 1, 8),
    readyFile: readyFile === undefined ? undefined : resolve(readyFile),
    settings: loadSettings(demoEnvironment(), given),
    args: chosen.flatMap(([option, value]) => (value === undefined ? [] : [option, String(value)])),
  };
}

/** This process's environment without the settings that the demo decides: a secret may be set by itself or by the name of its file, not both. */
export function demoEnvironment(): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    CONFIG_FILE: process.env.CONFIG_FILE ?? join(projectRoot, 'config/demo.json'),
  };
  for (const name of ['REPLICA_URLS', 'PRIMARY_URL', 'ADMIN_URL', 'DATA_KEYS']) {
    delete env[name];
    delete env[`${name}_FILE`];
  }
  return env;
}

/** Fails before minutes of seeding, not after: the gateway's ports must be free. */
export async function checkPorts({ host, port, opsHost, opsPort }: Settings): Promise<void> {
  for (const [address, number, option] of [
    [host, port, '--port'],
    [opsHost, opsPort, '--ops-port'],
  ] as const) {
    const server = createServer().listen(number, address);
    await once(server, 'listening').catch(({ code }: NodeJS.ErrnoException) => {
      const reason =
        code === 'EADDRINUSE' ? `Port ${number} is in use` : `Cannot listen on ${address}:${number} (${code})`;
      throw new Failure(`${reason}: name another with ${option}; ${option} 0 picks a free one.`);
    });
    await new Promise((closed) => server.close(closed));
  }
}
