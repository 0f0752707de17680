import type { Figures } from './figures.js';
import { soakFlood } from './flood.js';
import { soakFuzz } from './fuzz.js';
import { soakGenerators } from './generators.js';
import { soakLocks } from './locks.js';
import { soakMigrate } from './migrate.js';
import { soakOncall } from './oncall.js';
import { soakPages } from './pages.js';
import { soakPairs } from './pairs.js';
import { soakPullDamage } from './pull-damage.js';
import { soakPullLarge } from './pull-large.js';
import { soakPullMemory } from './pull-memory.js';
import { soakPullReferences } from './pull-references.js';
import { soakSlowClients } from './slow-clients.js';
import { soakStatements } from './statements.js';
import { soakSync } from './sync.js';
import { soakTokens } from './tokens.js';
import { soakWrites } from './writes.js';

// `npm run soak -- NAME [SIZE]`: long runs against real servers, each printing a table. SIZE is that of runs of `pull`.

const soaks: Readonly<Record<string, (size?: number) => Promise<Figures>>> = {
  pages: soakPages,
  'slow-clients': soakSlowClients,
  flood: soakFlood,
  writes: soakWrites,
  fuzz: soakFuzz,
  generators: soakGenerators,
  locks: soakLocks,
  migrate: soakMigrate,
  oncall: soakOncall,
  pairs: soakPairs,
  'pull-damage': soakPullDamage,
  'pull-large': soakPullLarge,
  'pull-memory': soakPullMemory,
  'pull-references': soakPullReferences,
  statements: soakStatements,
  sync: soakSync,
  tokens: soakTokens,
};

const soak = soaks[process.argv[2] ?? ''];
if (soak === undefined) {
  console.error(`Name one of: ${Object.keys(soaks).join(', ')}.`);
  process.exitCode = process.argv[2] === '--help' ? 0 : 2;
} else {
  const { ok, figures } = await soak(process.argv[3] === undefined ? undefined : Number(process.argv[3]));
  const rows = Object.entries(figures).map(([name, value]) => `| ${name} | ${value.toLocaleString('en')} |`);
  console.log(['| | |', '|---|--:|', ...rows].join('\n'));
  if (!ok) process.exitCode = 1;
}
