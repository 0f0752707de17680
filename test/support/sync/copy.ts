import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

interface SyncRow {
  readonly id: string;
  readonly syncVersion?: string;
  readonly omschrijving?: string | null;
  readonly adres?: { readonly land: string | null };
}

interface Envelope<T> {
  readonly data: readonly T[];
  readonly pagination: { readonly nextCursor: string | null; readonly since: string | null };
}

export class SyncCopy {
  readonly rows = new Map<string, SyncRow>();
  readonly faults: string[] = [];
  passes = 0;
  startedOver = 0;
  #since: string | null = null;
  #turn = 0;
  readonly #serials = new Map<string, number>();
  readonly #resource: string;
  /** Bodies come uncompressed: the gateway runs in the same process. */
  readonly #headers: Readonly<Record<string, string>>;
  readonly #gateways: readonly string[];

  constructor(resource: string, token: string, gateways: readonly string[]) {
    this.#resource = resource;
    this.#headers = { authorization: `Bearer ${token}`, 'accept-encoding': 'identity' };
    this.#gateways = gateways;
  }

  async pass(): Promise<void> {
    const perPage = 1 + Math.floor(Math.random() * 60);
    let query: string = this.#since === null ? '' : `&since=${this.#since}`;
    for (;;) {
      const page = await this.#get<SyncRow>(`?perPage=${perPage}${query}`);
      if (page === null) return this.#startOver();
      for (const row of page.data) this.#take(row);
      const { nextCursor, since } = page.pagination;
      if (nextCursor === null) {
        this.#since = since;
        break;
      }
      query = `&cursor=${nextCursor}`;
    }
    this.passes++;
    await this.#delete();
  }

  /** Compares the copy with the list, which must have so many records and change no more: all that is lost, old or extra. */
  async differences(count: number): Promise<string[]> {
    const reply = await fetch(`${this.#gateways[0]}/api/v1/${this.#resource}?perPage=100000`, {
      headers: this.#headers,
    });
    const { data } = (await reply.json()) as { data: SyncRow[] };
    const found = data.length === count ? [] : [`the list has ${data.length} of ${count} records`];
    const present = new Set(data.map(({ id }) => id));
    for (const row of data) {
      const copied = this.rows.get(row.id);
      if (copied === undefined) found.push(`${row.id} is lost`);
      else if (JSON.stringify({ ...copied, syncVersion: undefined }) !== JSON.stringify(row))
        found.push(`${row.id} is an older version`);
    }
    for (const id of this.rows.keys()) if (!present.has(id)) found.push(`${id} is extra`);
    return found.map((each) => `${this.#resource}: ${each}`);
  }

  /** Each version of a record has a larger number in `omschrijving`, or in the country of a customer, than the version before. */
  #take(row: SyncRow): void {
    const serial = Number(row.omschrijving ?? row.adres?.land ?? 0);
    const before = this.#serials.get(row.id) ?? 0;
    if (serial < before) this.faults.push(`${row.id} came as ${serial} after ${before}`);
    this.#serials.set(row.id, serial);
    this.rows.set(row.id, row);
  }

  async #delete(): Promise<void> {
    const since = `since=${this.#since}`;
    const digest = await this.#get<{ prefix: string; count: number; hash: string }>(`/digest?depth=1&${since}`);
    if (digest === null) return this.#startOver();
    const theirs = new Map(digest.data.map(({ prefix, count, hash }) => [prefix, `${count} ${hash}`]));
    for (const [prefix, mine] of this.#groups()) {
      if (theirs.get(prefix) === mine.digest) continue;
      const ids = await this.#get<SyncRow>(`/ids?prefix=${prefix}&${since}`);
      if (ids === null) return this.#startOver();
      const present = new Map(ids.data.map(({ id, syncVersion }) => [id, syncVersion]));
      for (const id of mine.ids) if (!present.has(id)) this.rows.delete(id);
      if ([...present].every(([id, version]) => this.rows.get(id)?.syncVersion === version)) continue;
      for (let query = `prefix=${prefix}&${since}`; query !== ''; ) {
        const page = await this.#get<SyncRow>(`?perPage=50&${query}`);
        if (page === null) return this.#startOver();
        // Another replica may show a record in an older state in the next pass, which a later pass corrects.
        for (const row of page.data) this.rows.set(row.id, row);
        const { nextCursor } = page.pagination;
        query = nextCursor === null ? '' : `prefix=${prefix}&cursor=${nextCursor}`;
      }
    }
  }

  #groups(): Map<string, { ids: string[]; digest: string }> {
    const groups = new Map<string, { ids: string[]; hash: bigint }>();
    for (const [id, { syncVersion }] of this.rows) {
      const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');
      const hash = hashOf(id);
      const group = groups.get(hash.slice(0, 1)) ?? { ids: [], hash: 0n };
      group.ids.push(id);
      group.hash ^= BigInt(`0x${hashOf(`${id}\n${syncVersion}`).slice(0, 16)}`);
      groups.set(hash.slice(0, 1), group);
    }
    const digestOf = (count: number, hash: bigint): string => `${count} ${hash.toString(16).padStart(16, '0')}`;
    return new Map([...groups].map(([prefix, { ids, hash }]) => [prefix, { ids, digest: digestOf(ids.length, hash) }]));
  }

  #startOver(): void {
    this.startedOver++;
    this.#since = null;
    this.rows.clear();
    this.#serials.clear();
  }

  async #get<T>(path: string): Promise<Envelope<T> | null> {
    for (let attempt = 0; attempt < 600; attempt++) {
      const gateway = this.#gateways[this.#turn++ % this.#gateways.length];
      try {
        const reply = await fetch(`${gateway}/api/v1/sync/${this.#resource}${path}`, {
          headers: this.#headers,
        });
        if (reply.status === 410) return null;
        if (reply.status === 200) return (await reply.json()) as Envelope<T>;
        const text = await reply.text();
        if (reply.status !== 503) this.faults.push(`${path}: ${reply.status} ${text}`);
      } catch (error) {
        if (error instanceof SyntaxError) this.faults.push(`${path}: a body that is not whole ended cleanly`);
      }
      await sleep(100);
    }
    throw new Error(`${path}: no answer in 60 s`);
  }
}
