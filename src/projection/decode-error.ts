/** Why a stored value could not be decoded. A code only: it may be logged and counted, the value may not. */
export type DecodeReason = 'bad_format' | 'unknown_key' | 'legacy_refused' | 'bad_tag' | 'bad_utf8';

/** A stored value could not be decoded. Carries the reason and nothing of the value. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
  constructor(readonly reason: DecodeReason) {
    super(reason);
  }
}
