import type { CodecOptions } from './codec.js';
import type { RedactDiff } from './redact.js';

/** Dependencies of the projection, made once at start-up. */
export interface ProjectionOptions extends CodecOptions {
  readonly redactDiff: RedactDiff;
}
