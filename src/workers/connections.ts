import cluster, { type Worker } from 'node:cluster';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';

// Each worker accepts connections itself, and the first to wake accepts most of a burst. Kept connections stay where they are,
// so a worker with too many closes some after their next response, and their clients connect again: mostly to the workers with
// less work, because these wake sooner.

/** From a worker to its parent: the number of its connections with a request in the last second. */
interface ConnectionCount {
  readonly type: 'connections';
  readonly count: number;
}

/** From the parent to a worker: close so many connections. */
interface ShedOrder {
  readonly type: 'shed';
  readonly connections: number;
}

/** Interval of a worker's counts, while clients connect and otherwise. A connection is active for one or two of the longer. */
const countMs = 50;
const countMsMax = 500;
/** The parent waits for the counts of the other workers for this long: a burst of connections reaches all at once. */
const settleMs = 20;
/** With its event loop less busy than this a worker closes none: the clients would gain nothing. */
const busyMin = 0.25;

/** The worker's side: counts its active connections for the parent, and closes as many as the parent orders while it is busy. */
export function shedConnections(server: Server): void {
  let toClose = 0;
  let before = performance.eventLoopUtilization();
  let isDue = false;
  let active = new Set<Socket>();
  let activeBefore = new Set<Socket>();
  const send = (): void => {
    isDue = false;
    before = performance.eventLoopUtilization();
    const message: ConnectionCount = { type: 'connections', count: active.size + activeBefore.size };
    process.send?.(message, undefined, undefined, () => undefined); // the parent may be gone
  };
  server.on('connection', (socket) => {
    socket.once('close', () => active.delete(socket) || activeBefore.delete(socket));
    if (!isDue) setTimeout(send, countMs).unref();
    isDue = true;
  });
  setInterval(() => {
    activeBefore = active;
    active = new Set();
    send();
  }, countMsMax).unref();
  server.prependListener('request', ({ socket }, response) => {
    active.add(socket);
    activeBefore.delete(socket);
    if (toClose === 0) return;
    toClose--;
    response.shouldKeepAlive = false;
  });
  process.on('message', ({ type, connections }: ShedOrder) => {
    if (type === 'shed') toClose = performance.eventLoopUtilization(before).utilization < busyMin ? 0 : connections;
  });
}

/** The parent's side: orders workers with more connections than their share to close the excess. */
export function balanceConnections(): void {
  const counts = new Map<Worker, number>();
  let isDue = false;
  const balance = (): void => {
    isDue = false;
    const share = [...counts.values()].reduce((sum, count) => sum + count, 0) / counts.size;
    for (const [worker, count] of counts) {
      const connections = excessOf(count, share);
      if (connections === 0) continue;
      counts.set(worker, count - connections); // until it counts again
      worker.send({ type: 'shed', connections } satisfies ShedOrder, () => undefined); // the worker may have died
    }
  };
  cluster.on('message', (worker, message: ConnectionCount) => {
    if (message?.type !== 'connections' || worker.isDead()) return;
    counts.set(worker, message.count);
    if (!isDue) setTimeout(balance, settleMs).unref();
    isDue = true;
  });
  cluster.on('exit', (worker) => counts.delete(worker));
}

/** Connections beyond the share; 0 for a single one, or for a twentieth of the share. */
function excessOf(count: number, share: number): number {
  const excess = Math.floor(count - share);
  return excess > Math.max(1, share / 20) ? excess : 0;
}
