import type { Resource } from '../definition/resource.js';
import { StartRefused } from '../errors.js';
import type { Observe } from '../events.js';
import type { Settings } from '../settings.js';
import { titleOf } from './finding.js';
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
): Promise<{ settings: Settings } & Omit<Inspected, 'findings'>> {
  const { findings, ...rest } = await inspect(settings, resources);
  const wrong = findings.filter(({ level }) => level === 'refused');
  if (wrong.length > 0) {
    const reasons = wrong.map((finding) => `${finding.where}: ${titleOf(finding)}: ${finding.detail}`);
    throw new StartRefused(`The gateway does not start:\n  ${reasons.join('\n  ')}`);
  }
  for (const finding of findings.filter(({ level }) => level === 'failed'))
    observe({ type: 'server_unfit', server: finding.where, item: titleOf(finding), detail: finding.detail });
  const losesPrepared = findings.some(({ code, level }) => code === 'pooler' && level === 'warning');
  if (!losesPrepared) return { settings, ...rest };
  observe({ type: 'named_statements_off' });
  return { settings: { ...settings, namedStatements: false }, ...rest };
}
