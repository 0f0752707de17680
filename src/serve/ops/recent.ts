import type { Event, Observe } from '../../base/events.js';
import { own } from '../../base/own.js';

// Faults of the last minute, as sentences of the status: the alerts see them later.

export interface RecentCount {
  readonly kind: RecentKind;
  /** Route, resource or server. */
  readonly about: string;
  readonly count: number;
  readonly workspaces: Readonly<Record<string, number>>;
}

type Level = 'failing' | 'degraded';
type KindRow = readonly [level: Level, remedy: string, sentence: (about: string, count: number) => string];

const s = (count: number, noun: string, were = ''): string =>
  `${count} ${noun}${count === 1 ? '' : 's'}${were && (count === 1 ? ' was' : ' were')}`;
const answered = (level: Level, remedy: string, code: string): KindRow => [
  level,
  remedy,
  (about, count) => `${s(count, 'request', 'were')} answered ${code}: ${about}`,
];

/** The gravest first, with the row of its remedy; an error code counts the requests answered so. */
const kinds = {
  internal: answered('failing', 'internal', '500 internal'),
  replica_unavailable: answered('failing', 'reads-refused', '503 replica_unavailable'),
  primary_unavailable: answered('failing', 'writes-refused', '503 primary_unavailable'),
  query_timeout: answered('failing', 'too-slow', '504 query_timeout'),
  overloaded: answered('degraded', 'overloaded', '503 overloaded'),
  decode_failed: ['degraded', 'undecodable', (about, count) => `${s(count, 'value')} could not be decoded: ${about}`],
  page_broken: ['degraded', 'pages-break', (about, count) => `${s(count, 'page')} broke: ${about}`],
  upkeep_failed: ['degraded', 'upkeep', (about, count) => `the primary refused ${about}: ${s(count, 'time')}`],
  look_failed: ['degraded', 'looks-fail', (about) => `${about} could not be asked whether it still fits`],
  log_line_dropped: [
    'degraded',
    'log-lost',
    (_, count) => `${s(count, 'line', 'were')} lost from the log: stdout is not read`,
  ],
} satisfies Readonly<Record<string, KindRow>>;

type RecentKind = keyof typeof kinds;

const [slots, slotMs] = [12, 5000];
/** Further ones are counted as others, or by no workspace. */
const [keysMax, workspacesMax] = [200, 50];
const shareNamed = 0.9;

export class Recent {
  readonly #slots: Map<string, RecentCount>[] = [new Map()];
  #begunMs = performance.now();

  readonly observe: Observe = (event) => {
    const kind = event.type === 'request_finished' ? event.code : event.type;
    if (kind === null || !Object.hasOwn(kinds, kind)) return;
    const slot = this.#slot();
    const [subject, workspace = null] = subjectOf(event);
    const about = slot.size < keysMax || slot.has(`${kind} ${subject}`) ? subject : 'others';
    const before = slot.get(`${kind} ${about}`) ?? { kind: kind as RecentKind, about, count: 0, workspaces: {} };
    const isNamed =
      workspace !== null &&
      (Object.hasOwn(before.workspaces, workspace) || Object.keys(before.workspaces).length < workspacesMax);
    const more = isNamed ? { [workspace]: 1 } : {};
    slot.set(`${kind} ${about}`, added(before, { ...before, count: 1, workspaces: more }));
  };

  counts(): RecentCount[] {
    this.#slot();
    return sumOfCounts(this.#slots.flatMap((slot) => [...slot.values()]));
  }

  #slot(): Map<string, RecentCount> {
    const passed = Math.floor((performance.now() - this.#begunMs) / slotMs);
    this.#begunMs += passed * slotMs;
    for (let i = 0; i < Math.min(passed, slots); i++) this.#slots.push(new Map());
    this.#slots.splice(0, this.#slots.length - slots);
    return this.#slots.at(-1) as Map<string, RecentCount>;
  }
}

function subjectOf(event: Event): [about: string, workspace?: string | null] {
  if (event.type === 'request_finished') return [`${event.method} ${event.route}`, event.workspace];
  if (event.type === 'decode_failed') return [`${event.resource} ${event.pointer} (${event.reason})`];
  if (event.type === 'upkeep_failed') return [`${event.statement} (${event.code})`];
  return ['server' in event ? event.server : 'reason' in event ? event.reason : ''];
}

function added(a: RecentCount, b: RecentCount): RecentCount {
  const workspaces = { ...a.workspaces };
  for (const [workspace, count] of Object.entries(b.workspaces))
    workspaces[workspace] = (own(workspaces, workspace) ?? 0) + count;
  return { ...a, count: a.count + b.count, workspaces };
}

export function sumOfCounts(all: readonly RecentCount[]): RecentCount[] {
  const sums = new Map<string, RecentCount>();
  for (const each of all) {
    const key = `${each.kind} ${each.about}`;
    const sum = sums.get(key);
    sums.set(key, sum === undefined ? each : added(sum, each));
  }
  return [...sums.values()];
}

/** The gravest first. */
export function recentFaults(counts: readonly RecentCount[]): { level: Level; sentence: string; remedy: string }[] {
  const order = Object.keys(kinds);
  const sorted = [...counts].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || b.count - a.count);
  return sorted.map(({ kind, about, count, workspaces }) => {
    const [level, remedy, sentence]: KindRow = kinds[kind];
    const [[name, most] = ['', 0]] = Object.entries(workspaces).sort(([, a], [, b]) => b - a);
    const cause = most >= count * shareNamed ? `, ${most === count ? 'all' : 'most'} of workspace ${name}` : '';
    return { level, remedy, sentence: `In the last minute, ${sentence(about, count)}${cause}.` };
  });
}
