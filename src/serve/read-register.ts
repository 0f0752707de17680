/** The content of an answer, for the register of reads. */
export interface ReadContent {
  readonly resource: string;
  /** Personal fields of the answer, separated by commas; empty: none. */
  readonly personal: string;
  readonly records: number;
  /** Absent: the answer completed no step of a copy. */
  readonly copy?: CopyStep;
}

/** The end of a pass over everything or over changes, or a digest. */
export type CopyStep = 'pass' | 'changes' | 'digest';

interface ReadCount {
  readonly hour: string;
  readonly token: string;
  readonly resource: string;
  readonly fields: string;
  requests: number;
  records: number;
}

type Copy = { readonly token: string; readonly resource: string } & Partial<Record<CopyStep, string>>;

/** Bound for the rows in memory while the primary is unreachable; they take some 2 MB. */
const rowsMax = 10_000;
const hourMs = 3_600_000;

/** Gathers reads by hour, token, resource and personal fields until they are stored. */
export class ReadRegister {
  #reads = new Map<string, ReadCount>();
  #copies = new Map<string, Copy>();
  /** Number of requests that found no room. */
  #lost = 0;

  get isEmpty(): boolean {
    return this.#reads.size === 0 && this.#copies.size === 0;
  }

  note(token: string, { resource, personal, records, copy }: ReadContent, nowMs = Date.now()): void {
    if (personal !== '') {
      const hour = new Date(nowMs - (nowMs % hourMs)).toISOString();
      this.#add({ hour, token, resource, fields: personal, requests: 1, records });
    }
    if (copy === undefined) return;
    const key = `${token} ${resource}`;
    const known = this.#copies.get(key);
    if (known === undefined && this.#copies.size >= rowsMax) return;
    this.#copies.set(key, { token, resource, ...known, [copy]: new Date(nowMs).toISOString() });
  }

  #add(reads: ReadCount): void {
    const key = `${reads.hour} ${reads.token} ${reads.resource} ${reads.fields}`;
    const known = this.#reads.get(key);
    if (known === undefined && this.#reads.size >= rowsMax) this.#lost += reads.requests;
    else if (known === undefined) this.#reads.set(key, reads);
    else {
      known.requests += reads.requests;
      known.records += reads.records;
    }
  }

  /** Calls `store` with the JSON for gateway.note_reads, and keeps it if that fails. Returns how many requests found no room. */
  async flush(store: (noted: string) => Promise<boolean>): Promise<number> {
    const [reads, copies] = [this.#reads, this.#copies];
    this.#reads = new Map();
    this.#copies = new Map();
    if (!(await store(JSON.stringify({ reads: [...reads.values()], copies: [...copies.values()] })))) {
      for (const one of reads.values()) this.#add(one);
      for (const [key, copy] of copies) this.#copies.set(key, { ...copy, ...this.#copies.get(key) });
    }
    const lost = this.#lost;
    this.#lost = 0;
    return lost;
  }
}
