import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

/** The names `--only` takes, in the order they run. */
export const caseNames = [
  'cold',
  'pages',
  'customers',
  'details',
  'lists',
  'deep',
  'portal',
  'compression',
  'flood',
  'writes',
  'work',
  'sync',
  'together',
  'scaling',
] as const;
export type CaseName = (typeof caseNames)[number];

export interface Options {
  readonly cases: readonly CaseName[];
  /** Length of one load run, in seconds. */
  readonly seconds: number;
  /** How often each contender gets its turn. */
  readonly rounds: number;
  /** Where performance.md and .svg go; null prints only. */
  readonly out: string | null;
  /** Keeps the data between runs; undefined for a temporary folder. */
  readonly dir: string | undefined;
  /** Work orders of the large workspace of --scale; null for the cases. */
  readonly scale: number | null;
}

const scaleDefault = 5_000_000;

export const help = `Usage: npm run bench -- [options]

Starts a primary, a replica with 200,000 work orders and the gateway, measures them in turns with their
alternatives, and writes docs/performance.md and docs/performance.svg. A whole run takes some thirty minutes.

Options:
  --only CASE    One of ${caseNames.join(', ')}; several with commas. Then docs/ is left alone
  --seconds N    Length of one load run; default 4
  --rounds N     How often each contender gets its turn; default 5
  --quick        1 second, 2 rounds: whether it works, not how fast. Then docs/ is left alone
  --out DIR      Write the files to DIR, whatever was measured; the case scaling has a file of its own, docs/scaling.md
  --dir DIR      Keep the data in DIR between runs; the log keeps the entries of the case writes then, which are larger
                 than others, and its last pages are slower
  --scale        5,000,000 work orders and 10,000,000 log entries in one workspace instead of the cases: a quarter of an hour,
                 20 GB of disk; writes docs/scale.md
  --work-orders N  Another number of work orders for --scale. Then docs/ is left alone
  --help         This text

POSTGREST_BIN names a PostgREST binary that shall take part. wrk makes the load when it is installed or WRK_BIN names it,
else autocannon does; the case writes needs wrk.`;

/** Throws a TypeError that names the fault. */
export function parseOptions(args: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string' },
      seconds: { type: 'string' },
      rounds: { type: 'string' },
      quick: { type: 'boolean', default: false },
      out: { type: 'string' },
      dir: { type: 'string' },
      scale: { type: 'boolean', default: false },
      'work-orders': { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return 'help';
  const cases = values.only === undefined ? caseNames : values.only.split(',').map(caseName);
  const workOrders = values['work-orders'];
  if (workOrders !== undefined && !(values.scale && /^[1-9]\d{4,7}$/.test(workOrders)))
    throw new TypeError('--work-orders goes with --scale, and must be a whole number from 10000 to 99999999.');
  const whole = values.only === undefined && !values.quick && workOrders === undefined;
  return {
    cases,
    seconds: count('--seconds', values.seconds ?? (values.quick ? '1' : '4')),
    rounds: count('--rounds', values.rounds ?? (values.quick ? '2' : '5')),
    out: values.out === undefined ? (whole ? 'docs' : null) : resolve(values.out),
    dir: values.dir === undefined ? undefined : resolve(values.dir),
    scale: values.scale ? Number(workOrders ?? scaleDefault) : null,
  };
}

function caseName(name: string): CaseName {
  const found = caseNames.find((each) => each === name);
  if (found === undefined) throw new TypeError(`--only takes ${caseNames.join(', ')}, not "${name}".`);
  return found;
}

function count(option: string, value: string): number {
  if (!/^[1-9]\d{0,2}$/.test(value)) throw new TypeError(`${option} must be a whole number from 1 to 999.`);
  return Number(value);
}
