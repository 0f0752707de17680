import type pg from 'pg';
import { streamOf, wireOf } from './wire/wire.js';

/**
 * Settings of a session that PostgreSQL reports at the login and at each change (PostgreSQL 55.2.7), with the values for which values
 * of rows have the text that serializers and cursors read. An hour's difference would be served as a right time.
 */
const formats: Readonly<Record<string, { readonly fits: RegExp; readonly wanted: string }>> = {
  TimeZone: { fits: /^(UTC|Etc\/UTC|GMT|Zulu|Etc\/Zulu)$/, wanted: 'UTC' },
  DateStyle: { fits: /^ISO/, wanted: 'ISO' },
};

/** Such as "TimeZone is Europe/Amsterdam, not UTC"; null for a value that fits, and for a setting that has no part in it. */
export function formatFault(setting: string, value: string): string | null {
  const format = formats[setting];
  return format === undefined || format.fits.test(value) ? null : `${setting} is ${value}, not ${format.wanted}`;
}

interface ParameterStatus {
  readonly parameterName: string;
  readonly parameterValue: string;
}

/** The session prints times in another form than the gateway reads: a setting of the role was changed. The next login may be right. */
export class SessionUnfit extends Error {
  readonly code = 'session_unfit';
}

/** Breaks the connection of a client, whose values would be wrong, at a setting of the session that does not fit, from the login on. */
export function watchFormats(client: pg.ClientBase, onUnfit?: (unfit: SessionUnfit) => void): void {
  wireOf(client).on('parameterStatus', ({ parameterName, parameterValue }: ParameterStatus) => {
    const fault = formatFault(parameterName, parameterValue);
    if (fault === null) return;
    const unfit = new SessionUnfit(`${fault}: set it for the role of the login`);
    onUnfit?.(unfit);
    streamOf(client).destroy(unfit);
  });
}
