import { randomBytes } from 'node:crypto';
import { peakMbOf } from '../../../bench/processes.js';
import { installed, startPull } from './copy.js';
import { record, type ServedResource } from './sync-server.js';

const text = { type: 'string' };
const filling = (length: number): string => randomBytes(Math.ceil((length * 3) / 4)).toString('base64');

export function wideRecords(count: number, columns: number): ServedResource {
  const names = Array.from({ length: columns }, (_, i) => `c${i}`);
  const records = Array.from({ length: count }, (_, i): [string, string] => {
    const members = names.map((name) => `"${name}":"${filling(40)}"`);
    return [`r${i}`, record(`r${i}`, members.join(','))];
  });
  const properties = Object.fromEntries(['id', ...names].map((name) => [name, text]));
  return { schema: { type: 'object', properties }, records: new Map(records) };
}

export function largeRecords(count: number, length: number): ServedResource {
  const records = Array.from({ length: count }, (_, i): [string, string] => [
    `r${i}`,
    record(`r${i}`, `"tekst":"${filling(length / 2)}","vrij":{"a":["${filling(length / 2)}"]}`),
  ]);
  return { schema: { type: 'object', properties: { id: text, tekst: text, vrij: {} } }, records: new Map(records) };
}

export interface MeasuredRun {
  readonly code: number | null;
  readonly stderr: string;
  readonly seconds: number;
  readonly peakMb: number;
}

export async function measuredPull(args: readonly string[]): Promise<MeasuredRun> {
  const startedMs = performance.now();
  const { child, ended } = startPull(args, installed);
  let peakMb = 0;
  const timer = setInterval(() => {
    try {
      peakMb = Math.max(peakMb, peakMbOf(child.pid as number) || 0);
    } catch {} // it has just ended
  }, 20);
  const { code, stderr } = await ended;
  clearInterval(timer);
  return { code, stderr, seconds: Math.round(performance.now() - startedMs) / 1000, peakMb: Math.round(peakMb) };
}
