import { type Event, type EventFault, events, type Observe } from '../../base/events.js';
import { minuteSlots, slotMs } from '../../base/flow/event-loop.js';
import { getOwn } from '../../base/members.js';

// Faults of the last minute, as sentences of the status: the alerts see them later.

export interface RecentCount {
  readonly kind: string;
  /** Name of a route, resource or server. */
  readonly about: string;
  readonly count: number;
  readonly workspaces: Readonly<Record<string, number>>;
}

type Fault = EventFault<Event>;

type FaultRow = { readonly faults?: Fault | Readonly<Record<string, Fault>> };

/** Faults by the type of an event, or by a code. */
const kinds: Readonly<Record<string, Fault>> = Object.fromEntries(
  Object.entries(events as Readonly<Record<string, FaultRow>>).flatMap(([type, { faults = {} }]) =>
    'sentence' in faults ? [[type, faults as Fault]] : Object.entries(faults),
  ),
);

/** Keys beyond the bound are counted as others, workspaces not at all. */
const [keysMax, workspacesMax] = [200, 50];
const fractionNamed = 0.9;

export class RecentFaults {
  readonly #slots: Map<string, RecentCount>[] = [new Map()];
  #begunMs = performance.now();

  readonly observe: Observe = (event) => {
    const hasCode = event.type === 'request_finished' || event.type === 'replica_failed';
    const kind = hasCode ? (event.code ?? '') : event.type;
    const fault = getOwn(kinds, kind);
    if (fault === undefined) return;
    const slot = this.#openSlot();
    const subject = fault.about?.(event) ?? '';
    const workspace = 'workspace' in event ? event.workspace : null;
    const about = slot.size < keysMax || slot.has(`${kind} ${subject}`) ? subject : 'others';
    const before = slot.get(`${kind} ${about}`) ?? { kind, about, count: 0, workspaces: {} };
    const isNamed =
      workspace !== null &&
      (Object.hasOwn(before.workspaces, workspace) || Object.keys(before.workspaces).length < workspacesMax);
    const more = isNamed ? { [workspace]: 1 } : {};
    slot.set(`${kind} ${about}`, addCounts(before, { ...before, count: 1, workspaces: more }));
  };

  getCounts(): RecentCount[] {
    this.#openSlot();
    return sumCounts(this.#slots.flatMap((slot) => [...slot.values()]));
  }

  #openSlot(): Map<string, RecentCount> {
    const passed = Math.floor((performance.now() - this.#begunMs) / slotMs);
    this.#begunMs += passed * slotMs;
    for (let i = 0; i < Math.min(passed, minuteSlots); i++) this.#slots.push(new Map());
    this.#slots.splice(0, this.#slots.length - minuteSlots);
    return this.#slots.at(-1) as Map<string, RecentCount>;
  }
}

function addCounts(a: RecentCount, b: RecentCount): RecentCount {
  const workspaces = { ...a.workspaces };
  for (const [workspace, count] of Object.entries(b.workspaces))
    workspaces[workspace] = (getOwn(workspaces, workspace) ?? 0) + count;
  return { ...a, count: a.count + b.count, workspaces };
}

export function sumCounts(all: readonly RecentCount[]): RecentCount[] {
  const sums = new Map<string, RecentCount>();
  for (const each of all) {
    const key = `${each.kind} ${each.about}`;
    const sum = sums.get(key);
    sums.set(key, sum === undefined ? each : addCounts(sum, each));
  }
  return [...sums.values()];
}

const namedMax = 3;

/** Makes a sentence for each kind, the gravest first. */
export function collectRecentFaults(
  counts: readonly RecentCount[],
): (Pick<Fault, 'level' | 'remedy'> & { sentence: string })[] {
  return Object.entries(kinds).flatMap(([kind, { level, remedy, sentence }]) => {
    const all = counts.filter((each) => each.kind === kind).sort((a, b) => b.count - a.count);
    if (all.length === 0) return [];
    const { count, workspaces } = all.reduce(addCounts);
    const names = all.map(({ about, count }) => (all.length === 1 ? about : `${about} (${count})`));
    const others = names.length > namedMax ? ` and ${names.length - namedMax} more` : '';
    const [[name, most] = ['', 0]] = Object.entries(workspaces).sort(([, a], [, b]) => b - a);
    const cause = most >= count * fractionNamed ? `, ${most === count ? 'all' : 'most'} of workspace ${name}` : '';
    const number = Object.keys(workspaces).length;
    const atLeast = number >= workspacesMax ? 'at least ' : '';
    const inWords = `${atLeast}${number} workspace${number === 1 ? '' : 's'}`;
    const words = sentence(names.slice(0, namedMax).join(', ') + others, count, inWords);
    return [{ level, remedy, sentence: `In the last minute, ${words}${cause}.` }];
  });
}
