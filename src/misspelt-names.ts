import { nearestName } from './nearest-name.js';
import { environmentName, settingsSchema } from './settings.js';

/** Beginnings that only settings have; CLIENT_ or TOKEN_ may belong to another program. */
const prefixes = /^(REPLICA|PRIMARY|OPS|PER_PAGE|SHORT|LONG|CHUNK|PROBE|LARGE_PAGES)_/;
/** Kubernetes sets NAME_SERVICE_HOST, NAME_PORT, NAME_PORT_5432_TCP, … for every service. */
const ofKubernetes = /_(SERVICE|PORT)(_|$)/;

/**
 * One sentence for each environment name that is no setting but looks like one: at most two letters from a known name, one letter
 * from a name of less than nine, a known name whose end is missing, or with the beginning of settings. Such a variable is ignored, and its default is in force.
 */
export function misspeltNames(env: Readonly<Record<string, string | undefined>>): string[] {
  const settings = Object.entries(settingsSchema().properties).flatMap(([setting, { 'x-secret': secret }]) => {
    const name = environmentName(setting);
    return secret ? [name, `${name}_FILE`] : [name];
  });
  const known = ['CONFIG_FILE', ...settings];
  return Object.keys(env)
    .filter((name) => !known.includes(name) && !ofKubernetes.test(name))
    .flatMap((name) => {
      const meant = nearestName(name, known, distanceMax) ?? known.find((one) => isCut(name, one));
      if (meant) return [`Unknown setting ${name} ignored; did you mean ${meant}?`];
      return prefixes.test(name) ? [`Unknown setting ${name} ignored.`] : [];
    });
}

/** Short names, such as HOST, are near to too many others: HOME. */
function distanceMax({ length }: string): number {
  return length < 5 ? 0 : length < 9 ? 1 : 2;
}

/** Whether all but the end of a long name stands there: RATE_LIMIT_PER_MIN. */
function isCut(name: string, known: string): boolean {
  return known.startsWith(name) && name.length >= 12;
}
