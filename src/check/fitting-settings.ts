import type { Resource } from '../definition/resource.js';
import { StartRefused } from '../errors.js';
import type { Observe } from '../events.js';
import type { Settings } from '../settings.js';
import { titleOf } from './finding.js';
import { inspect } from './inspect.js';

/**
 * Inspects the databases as `check` does and returns the settings that fit them: without named statements where a pooler loses these.
 * Throws StartRefused with every refused item. An unreachable server does not refuse the start, because it may come back.
 */
export async function fittingSettings(
  settings: Settings,
  resources: readonly Resource[],
  observe: Observe,
): Promise<Settings> {
  const findings = await inspect(settings, resources);
  const wrong = findings.filter(({ level }) => level === 'refused');
  if (wrong.length > 0) {
    const reasons = wrong.map((finding) => `${finding.where}: ${titleOf(finding)}: ${finding.detail}`);
    throw new StartRefused(`The gateway does not start:\n  ${reasons.join('\n  ')}`);
  }
  const losesPrepared = findings.some(({ code, level }) => code === 'pooler' && level === 'warning');
  if (!losesPrepared) return settings;
  observe({ type: 'named_statements_off' });
  return { ...settings, namedStatements: false };
}
