import { crashWrites } from '../support/crash/writes.js';
import type { Figures } from './figures.js';

/** Writes that must survive: 10,000 by 12 clients. The short form of this is test/fault/crash-writes.test.ts. */
export async function soakWrites(): Promise<Figures> {
  const report = await crashWrites({ writes: 10_000, clients: 12, upMs: [300, 2500], killsMax: 1000, shareLost: 0.05 });
  for (const disagreement of report.disagreements) console.error(disagreement);
  return {
    ok: report.disagreements.length === 0 && report.kills > 0 && report.commitsLost > 0,
    figures: {
      'Writes answered 2xx': report.creates + report.updates,
      'of them creates': report.creates,
      'of them updates': report.updates,
      'Updates refused with 412': report.refused,
      'Kills of the primary (-9)': report.kills,
      'COMMIT answers lost by the proxy': report.commitsLost,
      'Requests sent': report.requests,
      'of them repeats with the same key': report.retries,
      'Outcomes told by a replay': report.replays,
      'Longest a client had to repeat (ms)': Math.round(report.longestMs),
      'Duration (s)': Math.round(report.seconds),
      'Effects missing, doubled or unaccounted for': report.disagreements.length,
    },
  };
}
