import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { type DatabaseTarget, openWriter } from './database-writer.js';
import { cpuMsOf, treeCpuMsOf } from './process-cost.js';

/** Creates or updates of installations: each writer sends its next one when the last is answered. */
export interface WriteLoad {
  readonly kind: 'create' | 'update';
  readonly writers: number;
  readonly seconds: number;
  /** Before them, not counted. */
  readonly leadInSeconds: number;
  readonly workspace: string;
  /** Customers that new installations belong to. */
  readonly customers: readonly string[];
  readonly target: HttpTarget | DatabaseTarget;
  /** The process between the writers and PostgreSQL; null: there is none. */
  readonly serverPid: number | null;
  readonly primaryPid: number;
}

/** A server that creates at a path; updates are PATCHes of the gateway. */
export interface HttpTarget {
  readonly origin: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Name of the member with the customer's id. */
  readonly customer: string;
  /** Members of every record, and whether the client makes the id. */
  readonly members: Readonly<Record<string, string | boolean>>;
  readonly makesIds: boolean;
}

export interface WriteResult {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** All writes, those of the lead-in too. */
  readonly writes: number;
  /** Processor time that each write cost this process, the server (null: there is none) and the primary, in microseconds. */
  readonly clientCpuUs: number;
  readonly serverCpuUs: number | null;
  readonly primaryCpuUs: number;
}

/** Makes one write; rejects unless it succeeds. */
type Writer = () => Promise<unknown>;

// Process of the writers: the load as JSON in its argument, the result as JSON on its stdout.
const load = JSON.parse(process.argv[2] as string) as WriteLoad;
const { target } = load;
const starts = Array.from({ length: load.writers }, (_, i) => load.customers[i % load.customers.length] as string);
const writers = await Promise.all(
  starts.map((customer) => ('url' in target ? databaseWriter(target, customer) : httpWriter(target, customer))),
);
const leadIn = await runFor(load.leadInSeconds * 1000);
const startedMs = performance.now();
const before = cpuMs();
const times = (await runFor(load.seconds * 1000)).sort((a, b) => a - b);
const at = (share: number): number => times[Math.floor(times.length * share)] ?? Number.NaN;
const perSecond = (times.length * 1000) / (performance.now() - startedMs);
const after = cpuMs();
const cpuUs = (of: 'client' | 'server' | 'primary'): number => (1000 * (after[of] - before[of])) / times.length;
const result: WriteResult = {
  perSecond,
  p50Ms: at(0.5),
  p99Ms: at(0.99),
  writes: leadIn.length + times.length,
  clientCpuUs: cpuUs('client'),
  serverCpuUs: load.serverPid === null ? null : cpuUs('server'),
  primaryCpuUs: cpuUs('primary'),
};
process.stdout.write(JSON.stringify(result));
process.exit(0);

/** Processor time so far. The backends of the writers have not ended yet: that of a process that ends meanwhile is not counted. */
function cpuMs(): Record<'client' | 'server' | 'primary', number> {
  const { user, system } = process.cpuUsage();
  const server = load.serverPid === null ? Number.NaN : cpuMsOf(load.serverPid);
  return { client: (user + system) / 1000, server, primary: treeCpuMsOf(load.primaryPid) };
}

/** Times of all writes, in milliseconds. */
async function runFor(ms: number): Promise<number[]> {
  const endMs = performance.now() + ms;
  const taken: number[] = [];
  const repeat = async (write: Writer): Promise<void> => {
    for (let now = performance.now(); now < endMs; ) {
      await write();
      const done = performance.now();
      taken.push(done - now);
      now = done;
    }
  };
  await Promise.all(writers.map(repeat));
  return taken;
}

async function httpWriter(server: HttpTarget, customer: string): Promise<Writer> {
  const { host } = new URL(server.origin);
  const exchange = await httpConnection(server.origin);
  const fixed = Object.entries({ host, 'content-type': 'application/json', ...server.headers });
  const send = async (method: string, path: string, body: object, more: Record<string, string> = {}) => {
    const text = JSON.stringify(body);
    const length = { 'content-length': String(Buffer.byteLength(text)), 'idempotency-key': randomUUID() };
    const headers = [...fixed, ...Object.entries({ ...length, ...more })].map(
      ([name, value]) => `${name}: ${value}\r\n`,
    );
    const head = await exchange(`${method} ${path} HTTP/1.1\r\n${headers.join('')}\r\n${text}`);
    if (!head.startsWith('HTTP/1.1 2')) throw new Error(`${method} ${path} → ${head.slice(9, 12)}`);
    return head;
  };
  const create = (): Promise<string> => {
    const id = server.makesIds ? { id: randomUUID() } : {};
    return send('POST', server.path, { ...server.members, ...id, [server.customer]: customer, naam: 'Koelcel' });
  };
  if (load.kind === 'create') return create;
  let head = await create();
  const { pathname } = new URL(headerOf(head, 'location'));
  let changes = 0;
  return async () => {
    const naam = `Koelcel ${changes++}`;
    head = await send('PATCH', pathname, { naam }, { 'if-match': headerOf(head, 'etag') });
  };
}

/** The value of a header in the head of a response. */
function headerOf(head: string, name: string): string {
  return new RegExp(`\\r\\n${name}: ([^\\r]*)`, 'i').exec(head)?.[1] ?? '';
}

/**
 * Sends requests on one connection, each after the response to the last, and resolves to the head of the response. It does no more
 * than that, as load generators do: on a machine with two processors the client's time is the server's loss.
 */
async function httpConnection(origin: string): Promise<(request: string) => Promise<string>> {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.setNoDelay(true);
  return (request) =>
    new Promise((resolve, reject) => {
      let response = '';
      const end = (settle: () => void): void => {
        socket.removeAllListeners('data').removeAllListeners('close').removeAllListeners('error');
        settle();
      };
      socket.on('data', (bytes: Buffer) => {
        response += bytes.toString('latin1');
        const headEnd = response.indexOf('\r\n\r\n');
        if (headEnd < 0) return;
        const head = response.slice(0, headEnd);
        const missing = headEnd + 4 + Number(headerOf(head, 'content-length')) - response.length;
        if (missing <= 0) end(() => resolve(head));
      });
      for (const event of ['close', 'error'])
        socket.on(event, () => end(() => reject(new Error('The connection ended.'))));
      socket.write(request);
    });
}

async function databaseWriter(database: DatabaseTarget, customer: string): Promise<Writer> {
  const write = await openWriter(database, load.workspace, customer);
  const create = (id: string): Promise<void> => write(id, 'Koelcel', true);
  if (load.kind === 'create') return () => create(randomUUID());
  const id = randomUUID();
  await create(id);
  return () => write(id, `Koelcel ${randomUUID()}`, false);
}
