import { randomUUID } from 'node:crypto';
import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { hashToken, makeToken } from '../../src/serve/http/token-format.js';
import { type FaultCluster, faultCluster } from '../support/fault-cluster.js';
import { asInProduction, type ServeProcess, serveProcess } from '../support/serve-process.js';
import type { Figures } from './figures.js';

const tokens = 100_000;
const firstTokens = 20_000;
const parallel = 16;
/**
 * Longer than a window of the limits, which keep a count for each token until its end, and than V8 in Node 24 takes to give memory back.
 */
const restMs = 180_000;
const growthMbMax = 10;

/** 100,000 tokens that are seen once each: the memory of the gateway at rest is afterwards what it was before. */
export async function soakTokens(): Promise<Figures> {
  const setUp = await faultCluster({ replicas: 1 });
  try {
    const all = await insertTokens(setUp);
    const serving = await serveProcess(setUp.settings({ logLevel: 'warn' }), asInProduction);
    try {
      return await measure(serving, all);
    } finally {
      serving.child.kill('SIGTERM');
      await serving.exited;
    }
  } finally {
    await setUp.stop();
  }
}

/** Compares the memory after a rest with the memory after an earlier rest: the first tokens fill caches and compile code. */
async function measure(serving: ServeProcess, all: readonly string[]): Promise<Figures> {
  const megabytes = async (): Promise<number> => {
    const metrics = await (await fetch(`${serving.opsUrl}/metrics`)).text();
    return Number(/^process_resident_memory_bytes (\S+)$/m.exec(metrics)?.[1]) / 1e6;
  };
  const atStart = await megabytes();
  await readOnce(serving.url, all.slice(0, firstTokens));
  await sleep(restMs);
  const before = await megabytes();
  const startedMs = performance.now();
  await readOnce(serving.url, all.slice(firstTokens));
  const seconds = (performance.now() - startedMs) / 1000;
  const behind = await megabytes();
  await sleep(restMs);
  const after = await megabytes();
  return {
    ok: after - before <= growthMbMax,
    figures: {
      Node: process.version,
      'resident memory at the start (MB)': Math.round(atStart),
      [`… after ${firstTokens.toLocaleString('en')} tokens and a rest (MB)`]: Math.round(before),
      [`… right after ${tokens.toLocaleString('en')} more tokens (MB)`]: Math.round(behind),
      '… after a rest (MB)': Math.round(after),
      'tokens per second': Math.round(tokens / seconds),
    },
  };
}

async function insertTokens({ sql, workspaces, caughtUp }: FaultCluster): Promise<string[]> {
  const all = Array.from({ length: firstTokens + tokens }, makeToken);
  const { id, ownerId } = workspaces[0] as { id: string; ownerId: string };
  for (let from = 0; from < all.length; from += 10_000) {
    const some = all.slice(from, from + 10_000);
    await sql(
      `insert into app.api_tokens (id, workspace_id, created_by, naam, token_hash, scopes)
       select unnest($1::uuid[]), $2, $3, 'soak', unnest($4::bytea[]), '{read:installaties}'`,
      [some.map(() => randomUUID()), id, ownerId, some.map(hashToken)],
    );
  }
  await caughtUp();
  return all;
}

/** Reads one record with each token, on 16 connections. */
async function readOnce(origin: string, tokens: readonly string[]): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: parallel });
  const waiting = tokens.values();
  const status = (token: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}` };
      get(`${origin}/api/v1/installaties?perPage=1`, { agent, headers }, (response) => {
        response.resume().once('end', () => resolve(response.statusCode));
      }).once('error', reject);
    });
  const reader = async (): Promise<void> => {
    for (const token of waiting) {
      let answer = await status(token);
      for (let repeats = 0; answer === 503 && repeats < 30; repeats++) {
        await sleep(1000); // the machine is busy
        answer = await status(token);
      }
      if (answer !== 200) throw new Error(`A token was answered ${answer}.`);
    }
  };
  await Promise.all(Array.from({ length: parallel }, reader));
  agent.destroy();
}
