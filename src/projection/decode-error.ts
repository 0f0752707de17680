/** Reasons why a stored value cannot be decoded: codes, which are logged and counted, as the value must not be. */
export const decodeReasons = ['bad_format', 'unknown_key', 'legacy_refused', 'bad_tag', 'bad_utf8', 'module'] as const;
export type DecodeReason = (typeof decodeReasons)[number];

/** A stored value could not be decoded. Has the reason, and no part of the value. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
  constructor(readonly reason: DecodeReason) {
    super(reason);
  }
}
