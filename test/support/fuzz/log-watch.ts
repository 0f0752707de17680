import { canariesIn } from './canaries.js';
import { pictureMarks } from './pictures.js';
import { tokenMark } from './properties.js';
import type { World } from './world.js';

/** Reads every line the gateway logs, as its destination, and keeps what should not be there. */
export class LogWatch {
  readonly #world: World;
  readonly faults: string[] = [];
  lines = 0;

  constructor(world: World) {
    this.#world = world;
  }

  write(line: string): void {
    this.lines++;
    const marks = [tokenMark, pictureMarks, /\benc:v\d/, /"(?:request_failed|database_unfit)"/].flatMap(
      (mark) => mark.exec(line)?.[0] ?? [],
    );
    const canaries = canariesIn(line).map(({ kind }) => `a canary ${kind}`);
    const secrets = this.#world.secrets.filter((secret) => line.includes(secret));
    for (const what of [...marks, ...canaries, ...secrets])
      if (this.faults.length < 20) this.faults.push(`a log line holds ${what}: ${line.slice(0, 1000)}`);
  }
}
