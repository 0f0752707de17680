import type { WordSource } from '../../postgres/row.js';
import type { JsonBytes } from './json-bytes.js';

export type ScalarAppender = (from: WordSource, start: number, end: number, json: JsonBytes) => void;

/** Offsets before 1937 have seconds. */
const printed = /^"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:Z|([+-])(\d\d)(?::?(\d\d))?(?::?(\d\d))?)?"$/;

/** Turns text of to_json into RFC 3339 in UTC with milliseconds. A value without a zone is UTC; infinite and other values become null. */
export const appendJsonInstant: ScalarAppender = ({ bytes }, start, end, json) => {
  const parts = printed.exec(bytes.toString('latin1', start, end));
  const [, day, time, fraction = '', sign, hours = '0', minutes = '0', seconds = '0'] = parts ?? [];
  const offset = (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * (sign === '-' ? -1000 : 1000);
  const moment = new Date(Date.parse(`${day}T${time}.${fraction.slice(0, 3).padEnd(3, '0')}Z`) - offset);
  const year = parts === null ? 0 : moment.getUTCFullYear(); // NaN for an invalid date
  json.appendText(year >= 1 && year <= 9999 ? `"${moment.toISOString()}"` : 'null');
};
