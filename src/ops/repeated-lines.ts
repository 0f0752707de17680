import { type Event, events } from '../events.js';

/** Stands for the further events of a kind in a log line. */
export interface Repetition {
  /** Events of this kind since its last line, the one in this line included. */
  readonly repeated: number;
  /** Rows that these events name, the first 20 of them. */
  readonly rows?: readonly string[];
}

/** Writes a log line; with `repetition` it stands for several events. */
export type WriteLine = (event: Event, repetition?: Repetition) => void;

/** Takes events, and limits the lines of kinds that would flood the log. */
export interface RepeatedLines {
  add(event: Event): void;
  /** Writes the counts that are due. */
  close(): void;
}

interface Kind {
  last: Event;
  repeated: number;
  readonly rows: string[];
}

const minuteMs = 60_000;
const rowsMax = 20;
/** Kinds that are told apart at a time; further ones are told apart by the type of the event only. */
const kindsMax = 1000;

/**
 * Writes the first event of a kind at once, and the further ones of a minute as one line with their number: one page under a
 * wrong key wrote 1,691 lines. The table of events says which members make a kind (`repeats`).
 */
export function repeatedLines(write: WriteLine, windowMs = minuteMs): RepeatedLines {
  const kinds = new Map<string, Kind>();
  const begin = (name: string, event: Event): void => {
    kinds.set(name, { last: event, repeated: 0, rows: [] });
    setTimeout(end, windowMs, name).unref();
  };
  const end = (name: string): void => {
    const kind = kinds.get(name);
    kinds.delete(name);
    if (kind !== undefined && writeRepeated(kind, write)) begin(name, kind.last);
  };
  return {
    add(event) {
      const { repeats } = events[event.type] as { repeats?: readonly (keyof Event)[] };
      if (repeats === undefined) return write(event);
      const full = JSON.stringify([event.type, ...repeats.map((member) => event[member])]);
      const name = kinds.has(full) || kinds.size < kindsMax ? full : event.type;
      const kind = kinds.get(name);
      if (kind === undefined) {
        write(event);
        return begin(name, event);
      }
      kind.last = event;
      kind.repeated++;
      if ('row' in event && kind.rows.length < rowsMax) kind.rows.push(event.row);
    },
    close() {
      for (const kind of kinds.values()) writeRepeated(kind, write);
      kinds.clear();
    },
  };
}

/** Writes the line of a kind's further events; false when there were none. */
function writeRepeated({ last, repeated, rows }: Kind, write: WriteLine): boolean {
  if (repeated > 0) write(last, { repeated, ...(rows.length > 0 && { rows }) });
  return repeated > 0;
}
