/**
 * Runs in its own process, started before the first server. The parent writes to its standard input which servers it
 * starts, one JSON message a line. When that input ends, because the parent stopped, crashed or was killed, the reaper ends
 * every server that still runs and removes the temporary folders. No other sign of the parent's end survives kill -9.
 */
import { rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { endAll, listProcesses, type ReaperMessage } from './processes.js';

const servers = new Set<string>();
const temporary = new Set<string>();

// Ignore group signals: this process must outlive its parent to stop the servers.
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => undefined);

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line) as ReaperMessage;
  if ('started' in message) servers.add(message.started);
  if ('stopped' in message) servers.delete(message.stopped);
  if ('temporary' in message) temporary.add(message.temporary);
}

await Promise.all([...servers].map(end));
await Promise.all([...temporary].map((folder) => rm(folder, { recursive: true, force: true, maxRetries: 20 })));

async function end(dir: string): Promise<void> {
  // Several rounds: a parent that died between fork and exec leaves a server that appears late.
  for (let round = 0; round < 3; round++) {
    await endAll(dir, 4500);
    await sleep(50);
    if (round > 0 && listProcesses(dir).length === 0) return;
  }
}
