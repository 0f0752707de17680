import { encodingsOf } from '../src/http/encodings.js';
import { loadSettings } from '../src/settings.js';
import { Client } from './client.js';
import { alternate, median } from './rounds.js';
import type { Stage } from './stage.js';

/** Cost of compressing a page at a level; sizes are parts of the page's. */
export interface LevelCost {
  /** As in COMPRESSION, such as "br:1". */
  readonly level: string;
  readonly cpuMsPerMb: number;
  readonly wallMsPerMb: number;
  readonly size: number;
}

/** Lists whose first 10,000 rows are compressed, one after the other. */
const lists = ['werkbonnen', 'installaties', 'klanten', 'logboeken'];
const levels = 'zstd:1 zstd:2 zstd:3 br:0 br:1 br:2 br:3 br:4 gzip:1 gzip:2 gzip:3 gzip:4 gzip:6 gzip:9'.split(' ');
const rounds = 3;

// Process that compresses pages in pieces, as the gateway does: the stage as JSON in its argument, the costs as JSON on its stdout.
const client = new Client(JSON.parse(process.argv[2] as string) as Pick<Stage, 'origin' | 'token'>);
const { chunkBytes } = loadSettings({});
const pages: Buffer[] = [];
for (const list of lists) pages.push(Buffer.from((await client.get(`/${list}?perPage=10000`)).body));
client.close();
const megabytes = pages.reduce((sum, page) => sum + page.length, 0) / 1e6;

const offered = levels.filter((level) => encodingsOf(level).length > 0);
const costs = await alternate(offered, rounds, async (level) => {
  const startedMs = performance.now();
  const before = process.cpuUsage();
  let bytes = 0;
  for (const page of pages) bytes += await compress(level, page);
  const { user, system } = process.cpuUsage(before);
  return { cpuMs: (user + system) / 1000, wallMs: performance.now() - startedMs, bytes };
});
const results = offered.map((level, i): LevelCost => {
  const runs = costs[i] ?? [];
  const middle = (of: (run: (typeof runs)[number]) => number): number => median(runs.map(of)) / megabytes;
  return {
    level,
    cpuMsPerMb: middle(({ cpuMs }) => cpuMs),
    wallMsPerMb: middle(({ wallMs }) => wallMs),
    size: middle(({ bytes }) => bytes / 1e6),
  };
});
process.stdout.write(JSON.stringify(results));

/** The number of bytes that the page becomes. */
async function compress(level: string, page: Buffer): Promise<number> {
  const compressor = encodingsOf(level)[0]?.compressor();
  if (compressor === undefined) throw new Error(`${level} is not offered`);
  let bytes = 0;
  const ended = new Promise((resolve, reject) => {
    compressor.on('data', (piece: Buffer) => {
      bytes += piece.length;
    });
    compressor.once('end', resolve).once('error', reject);
  });
  for (let at = 0; at < page.length; at += chunkBytes)
    await new Promise((resolve) => compressor.write(page.subarray(at, at + chunkBytes), resolve));
  compressor.end();
  await ended;
  return bytes;
}
