import { urlAs } from '../../demo/cluster/passwords.js';
import type { Creates, CreatesResult } from '../creates-process.js';
import { type Load, runLoad } from '../load.js';
import { runToEnd } from '../processes.js';
import type { Options } from '../report.js';
import { figure, type Measured, type Table } from '../report.js';
import { alternate, middle, pairedRatios } from '../rounds.js';
import { rowsOf, type Stage } from '../stage.js';

/** Clients: as many as the gateway has connections to the primary. */
const connections = 4;
/** Length of a turn, short because creates make the data grow. */
const secondsMax = 3;
/**
 * Begins each turn, not counted: a server that has rested for some seconds compiles its code again. After a minute's rest creates took the
 * gateway 1,400 µs in the first second, 420 to 550 some 3,000 later.
 */
const leadInSeconds = 4;
/** Creates before the first turn: with Node.js 24 a create took the gateway half as much as the primary only after 20,000. */
const warmUpCreates = 25_000;
const program = new URL('../creates-process.js', import.meta.url);

/** Compares creates of installations with the same statements in one pipelined transaction. */
export async function createsCase(stage: Stage, options: Options): Promise<Measured> {
  const { origin, primaryUrl, primaryPid, gatewayPid, workspace, mac, token } = stage;
  const seconds = Math.min(options.seconds, secondsMax);
  const idsOf = async (text: string, count: number): Promise<string[]> =>
    (await rowsOf(primaryUrl, text, [workspace, String(count)])).map(([id]) => id as string);
  const customers = await idsOf('select id from app.klanten where workspace_id = $1 order by id limit $2', connections);
  const [tokenId = ''] = await idsOf('select id from gateway.api_tokens where workspace_id = $1 limit $2', 1);
  const gateway = async (runSeconds: number): Promise<CreatesResult> => {
    const bodies = customers.map((customerId) => JSON.stringify({ customerId, naam: 'Koelcel' }));
    const requests = { post: '/api/v1/installaties', bodies };
    const load: Load = {
      origin,
      headers: { authorization: `Bearer ${token}` },
      requests,
      connections,
      seconds: runSeconds,
    };
    const cost = await runLoad(load, gatewayPid, primaryPid);
    const eachUs = (ms: number): number => (1000 * ms) / cost.requests;
    return {
      creates: cost.requests,
      perSecond: cost.perSecond,
      cpuUs: eachUs(cost.serverCpuMs),
      primaryCpuUs: eachUs(cost.databaseCpuMs),
    };
  };
  const url = urlAs(primaryUrl, 'gateway_writer');
  const creates: Creates = { url, mac, tokenId, customers, primaryPid, leadInSeconds, seconds };
  const sides = {
    gateway: async () => {
      await gateway(leadInSeconds);
      return gateway(seconds);
    },
    'the same statements by pg, pipelined': () => runToEnd<CreatesResult>(program, creates),
  };
  const warmUp = Math.min(warmUpCreates, 1000 * options.seconds * options.rounds);
  for (let done = 0; done < warmUp; ) done += (await gateway(leadInSeconds)).creates;
  const results = await alternate(Object.values(sides), options.rounds, (side) => side());
  const table: Table = {
    title: 'Creating installations',
    note: `${connections} connections, ${options.rounds} turns of ${seconds} s each, after ${leadInSeconds} s that do not count, medians. The statements are the gateway's own, as its role, with the same wait for the disk, all of a create sent before the first is answered; without HTTP, a token, limits, validation or an answer. CPU is per create, of the process and of the primary.`,
    head: ['', 'creates/s', 'CPU, µs', 'primary CPU, µs'],
    rows: Object.keys(sides).map((name, i) => {
      const runs = results[i] as CreatesResult[];
      return [
        name,
        ...[
          middle(runs, (run) => run.perSecond),
          middle(runs, (run) => run.cpuUs),
          middle(runs, (run) => run.primaryCpuUs),
        ].map(figure),
      ];
    }),
  };
  const ratio = pairedRatios(results[0], results[1], ({ perSecond }) => perSecond);
  return { figures: { 'Creates against the same statements, pipelined: creates/s': ratio }, tables: [table] };
}
