/** Reasons why a stored value cannot be decoded. Codes only: they may be logged and counted, the value must not. */
export const decodeReasons = ['bad_format', 'unknown_key', 'legacy_refused', 'bad_tag', 'bad_utf8'] as const;
export type DecodeReason = (typeof decodeReasons)[number];

/** A stored value could not be decoded. Carries the reason and nothing of the value. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
  constructor(readonly reason: DecodeReason) {
    super(reason);
  }
}
