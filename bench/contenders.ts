import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../demo/cluster/ports.js';
import { type Child, startChild } from './child.js';
import { barePeer, otherPeers, type Peer } from './peers.js';
import type { Stage } from './stage.js';

/** A running process that answers the same requests over HTTP. */
export interface Contender extends Omit<Peer, 'launch'> {
  readonly pid: number;
  readonly origin: string;
}

export interface Contenders {
  readonly gateway: Contender;
  readonly bare: Contender;
  /** Those of the others that could be started. */
  readonly others: readonly Contender[];
  readonly skipped: readonly string[];
  stop(): Promise<void>;
}

const answersMsMax = 60_000;

/** Starts every contender in a process of its own. A contender that does not start is skipped, except the bare server. */
export async function startContenders(stage: Stage): Promise<Contenders> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-bench-peers-'));
  const children: Child[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(children.map((child) => child.stop()));
    rmSync(folder, { recursive: true, force: true });
  };
  const start = async (peer: Peer): Promise<Contender> => {
    process.stderr.write(`Starting ${peer.name} …\n`);
    const port = await freePort();
    const { program, args = [], env = {} } = peer.launch(port, folder);
    const child = startChild(program, args, { NODE_ENV: 'production', PORT: String(port), ...env });
    children.push(child);
    const contender = { ...peer, pid: child.pid, origin: `http://127.0.0.1:${port}` };
    await answers(contender, child);
    return contender;
  };
  const others: Contender[] = [];
  const skipped: string[] = [];
  try {
    const bare = await start(barePeer(stage));
    for (const peer of otherPeers(stage)) {
      try {
        others.push(await start(peer));
      } catch (error) {
        skipped.push(`${peer.name} did not take part: ${(error as Error).message}`);
      }
    }
    return { gateway: gatewayOf(stage), bare, others, skipped, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function gatewayOf({ gatewayPid, origin, token }: Stage): Contender {
  return {
    name: 'gateway',
    pid: gatewayPid,
    origin,
    headers: { authorization: `Bearer ${token}` },
    detail: (id) => `/api/v1/installaties/${id}`,
    list: { installaties: '/api/v1/installaties?perPage=100', werkbonnen: '/api/v1/werkbonnen?perPage=100' },
  };
}

/** Resolves when it gives the list in full. */
async function answers({ origin, list, headers }: Contender, child: Child): Promise<void> {
  let last = 'it does not listen';
  for (const deadline = Date.now() + answersMsMax; Date.now() < deadline; await sleep(200)) {
    if (!child.running) throw new Error('it ended before it served');
    try {
      const response = await fetch(origin + list.installaties, { headers });
      if (response.ok) return void (await response.arrayBuffer());
      last = `it answers ${response.status}: ${(await response.text()).slice(0, 200)}`;
    } catch {
      // not yet
    }
  }
  throw new Error(last);
}
