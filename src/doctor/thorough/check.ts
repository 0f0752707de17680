import { type Seal, sealWith } from '../../postgres/seal.js';
import type { WorkspaceId } from '../../postgres/statement.js';
import { compileResource } from '../../resource/definition/compiled.js';
import type { Resource } from '../../resource/definition/resource.js';
import type { Settings } from '../../serve/settings.js';
import { type Finding, findingAt, type Item } from '../finding.js';
import { inspect, type MoreItems } from '../inspect.js';
import { checkIndexes, checkPlans } from './plans.js';
import { checkRecords } from './records.js';
import { checkReferences } from './references.js';
import { checkOpenPoints, checkRedis } from './settings.js';
import { checkUnique } from './unique.js';
import { checkIds, sampleWorkspaces } from './workspaces.js';
import { checkWrites } from './writes.js';

/** Inspects as `serve` does, and decodes records, compares them with their schema, makes plans, and tries writes that are rolled back. */
export async function checkThoroughly(settings: Settings, resources: readonly Resource[]): Promise<Finding[]> {
  const { adminUrl, wallKey } = settings;
  const { ids, items } = wallKey === '' ? { ids: [], items: [] } : await sampleWorkspaces(adminUrl);
  const { findings } = await inspect(settings, resources, thorough(ids, sealWith(wallKey)));
  if (settings.redisUrl !== '') items.push(await checkRedis(settings));
  items.push(...resources.flatMap(checkOpenPoints), ...(await checkReferences(settings.adminUrl, resources, ids)));
  return [...items.map((item) => findingAt('settings', item)), ...findings];
}

function thorough(workspaces: readonly WorkspaceId[], seal: Seal): MoreItems {
  return {
    async *replica(client, { resources, projection }, views, scans): AsyncGenerator<Item[]> {
      yield await checkIndexes(client);
      const locked = scans.filter(({ code }) => code === 'connection');
      for (const [i, resource] of resources.entries()) {
        if (views[i]?.level !== 'ok' || locked.some(({ object }) => object === resource.view)) continue;
        yield await checkIds(client, resource, workspaces, seal);
        if (projection) yield await checkRecords(client, resource, projection, workspaces, seal);
        yield await checkPlans(client, resource);
      }
    },
    async *primary(client, { resources, projection }): AsyncGenerator<Item[]> {
      if (projection === null) return;
      for (const resource of resources) {
        const { write, ...compiled } = compileResource(resource, projection, () => undefined);
        if (write === null) continue;
        yield [await checkWrites(client, { ...compiled, write }, workspaces, seal)];
        yield await checkUnique(client, resource, resource.write?.view as string);
      }
    },
  };
}
