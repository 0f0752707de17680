import { type DiffShape, usualDiff } from '../projection/audit-diff.js';
import type { Flaw } from './contradictions.js';
import type { DefinitionFile } from './load.js';
import { type LoggedAs, leaves } from './resource.js';

/**
 * Finds the shape in which each resource logs its writes, by path of the file: that of the log which `write.audit.log` names, else the one shape of all
 * logs, else the usual one. A resource for which this is not unambiguous has a flaw.
 */
export function resolveAuditLogs(files: ReadonlyMap<string, DefinitionFile>): {
  readonly resolved: ReadonlyMap<string, LoggedAs>;
  readonly flaws: readonly (readonly [path: string, flaw: Flaw])[];
} {
  const logs = [...files.values()].flatMap((file) =>
    leaves(file)
      .filter(({ field }) => field.clean === 'audit-diff')
      .map(({ field }) => ({ name: file.name, shape: field.diff ?? usualDiff })),
  );
  const resolved = new Map<string, LoggedAs>();
  const flaws: [string, Flaw][] = [];
  for (const [path, { write }] of files) {
    if (!write?.audit) continue;
    const { log, view } = write.audit;
    const [first, ...others] = logs.filter(({ name }) => log === undefined || name === log);
    const diff = first?.shape ?? usualDiff;
    const other = others.find(({ shape }) => !isSameShape(shape, diff));
    const rival = [...resolved].find(([, each]) => each.view === view && !isSameShape(each.diff, diff));
    resolved.set(path, { ...write.audit, diff });
    if (log !== undefined && first === undefined) flaws.push([path, notALog(log, logs)]);
    else if (other) flaws.push([path, ambiguous(first?.name as string, other.name, log)]);
    else if (rival) flaws.push([path, contested(view, rival[0])]);
  }
  return { resolved, flaws };
}

function notALog(log: string, logs: readonly { readonly name: string }[]): Flaw {
  const names = logs.map(({ name }) => name).join(', ');
  return {
    at: '/write/audit/log',
    wrong: `${log} is no resource with a field of clean audit-diff`,
    remedy: names === '' ? 'remove it, or define the log' : `use ${names}`,
  };
}

function ambiguous(first: string, other: string, log: string | undefined): Flaw {
  if (log !== undefined)
    return {
      at: '/write/audit/log',
      wrong: `two fields of ${log} store changes in different shapes`,
      remedy: 'give both the same diff',
    };
  return {
    at: '/write/audit',
    wrong: `${first} and ${other} store changes in different shapes, and nothing says which of them logs the writes`,
    remedy: 'name it in /write/audit/log',
  };
}

function contested(view: string, path: string): Flaw {
  return {
    at: '/write/audit',
    wrong: `${path} adds entries of another shape through ${view}`,
    remedy: 'name the same log, or set /write/audit/view to a view of its own',
  };
}

function isSameShape(one: DiffShape, other: DiffShape): boolean {
  return one.field === other.field && one.old === other.old && one.new === other.new;
}
