import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { toolsFolder } from '../support/client-tools.js';
import { faultCluster } from '../support/fault-cluster.js';
import { differences, generators, largeGenerators } from '../support/generators.js';
import { serveProcess } from '../support/serve-process.js';
import type { Figures } from './figures.js';

const scopes = ['read:klanten', 'read:installaties', 'read:werkbonnen', 'read:logboeken', 'write:installaties'];
const largeTools = join(toolsFolder, 'generators');

/** Clients of every generator read and write through a gateway. Their packages: `npm install --prefix test/tools[/generators]`. */
export async function soakGenerators(): Promise<Figures> {
  for (const folder of [toolsFolder, largeTools])
    if (!existsSync(join(folder, 'node_modules'))) throw new Error(`Run npm install --prefix ${folder} before.`);
  const setUp = await faultCluster({ replicas: 1 });
  try {
    const serving = await serveProcess(setUp.settings({ logLevel: 'warn' }));
    try {
      const env = { BASE: `${serving.url}/api/v1`, TOKEN: await setUp.token({ scopes }) };
      const document = await (await fetch(`${env.BASE}/openapi.json`)).text();
      const figures: Record<string, number> = {};
      for (const [name, generator] of Object.entries({ ...generators, ...largeGenerators })) {
        const found = await differences(generator, document, env, name in largeGenerators ? largeTools : toolsFolder);
        for (const what of found) console.error(`${name}: ${what} differs`);
        figures[`${name}: differences`] = found.length;
      }
      return { ok: Object.values(figures).every((count) => count === 0), figures };
    } finally {
      await serving.stop();
    }
  } finally {
    await setUp.stop();
  }
}
