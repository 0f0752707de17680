import type { Observe } from '../base/events.js';
import { getCorrection, getSqlState } from '../postgres/database-errors.js';
import type { Primary } from '../postgres/primary.js';
import type { TextRow } from '../postgres/row.js';
import { prepareSql, type Statement } from '../postgres/statement.js';
import { hashFingerprint } from '../postgres/workspace-mac.js';
import type { Settings } from '../settings.js';
import { type ReadContent, ReadRegister } from './read-register.js';

const rowsPerRun = 500;
/** Pause while expired rows are left: it deletes 2,500 rows a second, more than one gateway's writes add. */
const backlogPauseMs = 200;
const tokensMax = 10_000;
const expire = prepareSql(
  'expire',
  `select greatest(gateway.expire_idempotency_keys(${rowsPerRun}), gateway.expire_reads(${rowsPerRun})),
    pg_catalog.pg_total_relation_size('gateway.idempotency')`,
  [],
);
/** Runs once a minute, so it costs the primary little. */
const note = prepareSql('upkeep.notes', 'select gateway.note_token_uses($1::uuid[]), gateway.note_reads($2::jsonb)', [
  'ids',
  'reads',
]);

const noteKey = prepareSql('wall-key.use', 'select gateway.note_wall_key_use($1)', ['fingerprint']);

/**
 * Deletes expired stored answers and reads, and stores which tokens and which key of the wall were used, and the register of reads. The
 * next round repeats a failure; lost uses are recorded again.
 */
export class Upkeep {
  readonly #usedTokens = new Set<string>();
  readonly #register = new ReadRegister();
  /** Size of the stored answers with their index; null: not asked yet. */
  answersBytes: number | null = null;
  #timer: NodeJS.Timeout | undefined;
  #usesDueMs = 0;
  #isClosed = false;

  constructor(
    private readonly primary: Primary,
    private readonly settings: Pick<Settings, 'wallKey' | 'upkeepIntervalMs'>,
    private readonly observe: Observe,
  ) {
    this.#scheduleNext(false);
  }

  noteUse(tokenId: string): void {
    if (this.#usedTokens.size < tokensMax) this.#usedTokens.add(tokenId);
  }

  noteRead(tokenId: string, content: ReadContent): void {
    this.#register.note(tokenId, content);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#storeNotes();
  }

  /** Waits between half of the interval and all of it, so that gateways do not run together. */
  #scheduleNext(isBacklog: boolean): void {
    if (this.#isClosed) return;
    const pauseMs = isBacklog ? backlogPauseMs : this.settings.upkeepIntervalMs * (0.5 + Math.random() / 2);
    this.#timer = setTimeout(() => void this.#round().then((more) => this.#scheduleNext(more)), pauseMs).unref();
  }

  /** Returns whether expired rows are left. A backlog shortens the pauses; uses are stored once an interval all the same. */
  async #round(): Promise<boolean> {
    if (performance.now() >= this.#usesDueMs) {
      this.#usesDueMs = performance.now() + this.settings.upkeepIntervalMs / 2;
      await this.#storeNotes();
      await this.#run(noteKey, { fingerprint: hashFingerprint(this.settings.wallKey) });
    }
    const [row] = (await this.#run(expire, {})) ?? [];
    if (row !== undefined) this.answersBytes = Number(row[1]);
    return Number(row?.[0]) === rowsPerRun;
  }

  async #storeNotes(): Promise<void> {
    const ids = `{${[...this.#usedTokens].join(',')}}`;
    this.#usedTokens.clear();
    if (ids === '{}' && this.#register.isEmpty) return;
    const lost = await this.#register.flush(async (reads) => (await this.#run(note, { ids, reads })) !== null);
    if (lost > 0) this.observe({ type: 'reads_unregistered', requests: lost });
  }

  /** Returns null after a failure. A failure that no repetition removes, such as a missing grant, is an event. */
  async #run(statement: Statement, values: Readonly<Record<string, string>>): Promise<readonly TextRow[] | null> {
    try {
      return await this.primary.execute(statement, values);
    } catch (error) {
      const correction = getCorrection(error);
      const code = getSqlState(error) ?? '';
      if (correction !== undefined)
        this.observe({ type: 'upkeep_failed', statement: statement.label, code, correction });
      return null;
    }
  }
}
