import { join } from 'node:path';
import { projectRoot } from '../../src/base/paths.js';
import { tuning } from '../../src/base/tuning.js';
import { getEnvironmentName, type Settings } from '../../src/settings.js';

const resourcesDir = join(projectRoot, 'config/resources');

/** Adds the definitions of the reference app, unless there are others. */
export function environmentOf(settings: Partial<Settings>): Record<string, string> {
  const whole = { ...settings, resourcesDir: settings.resourcesDir || resourcesDir };
  const given = Object.entries(whole).filter(([name]) => !Object.hasOwn(tuning, name));
  return Object.fromEntries(given.map(([name, value]) => [getEnvironmentName(name), String(value)]));
}

export function tuningFlags(settings: Partial<Settings>): string[] {
  const changed = Object.entries(settings).filter(
    ([name, value]) => Object.hasOwn(tuning, name) && value !== tuning[name as keyof typeof tuning],
  );
  if (changed.length === 0) return [];
  const module = new URL('../../src/base/tuning.js', import.meta.url).href;
  const text = `import { tuning } from '${module}'; Object.assign(tuning, ${JSON.stringify(Object.fromEntries(changed))});`;
  return ['--import', `data:text/javascript,${encodeURIComponent(text)}`];
}
