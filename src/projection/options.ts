import type { CodecOptions } from './codec.js';
import type { Redaction } from './redact.js';

/** Dependencies of the projection, made once at start-up. */
export interface ProjectionOptions extends CodecOptions {
  readonly redaction: Redaction;
}
