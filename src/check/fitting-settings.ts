import type { Resource } from '../definition/resource.js';
import { StartRefused } from '../errors.js';
import type { Observe, UnfitServer } from '../events.js';
import type { Settings } from '../settings.js';
import { type Finding, titleOf } from './finding.js';
import { type Inspected, inspect } from './inspect.js';

/**
 * Inspects the databases as `check` does and returns the settings that fit them: without named statements where a pooler loses these.
 * Throws StartRefused with every refused item. A server that cannot be used does not refuse the start while another can, because it
 * may become good: it is to be checked before its first use.
 */
export async function fittingSettings(
  settings: Settings,
  resources: readonly Resource[],
  observe: Observe,
): Promise<{ settings: Settings; unfit: readonly UnfitServer[] } & Omit<Inspected, 'findings'>> {
  const { findings, ...rest } = await inspect(settings, resources);
  const wrong = findings.filter(({ level }) => level === 'refused');
  if (wrong.length > 0) {
    const reasons = wrong.map((finding) => `${finding.where}: ${titleOf(finding)}: ${finding.detail}`);
    throw new StartRefused(`The gateway does not start:\n  ${reasons.join('\n  ')}`);
  }
  const failed = findings.filter(({ level }) => level === 'failed');
  for (const finding of failed) observe({ type: 'server_unfit', ...unfitOf(finding) });
  const unfit = failed.filter(({ code }) => code !== 'connection').map(unfitOf); // the states of the servers tell of those
  const losesPrepared = findings.some(({ code, level }) => code === 'pooler' && level === 'warning');
  if (!losesPrepared) return { settings, unfit, ...rest };
  observe({ type: 'named_statements_off' });
  return { settings: { ...settings, namedStatements: false }, unfit, ...rest };
}

function unfitOf(finding: Finding): UnfitServer {
  return { server: finding.where, item: titleOf(finding), detail: finding.detail };
}
