import { constantJson } from './json-bytes.js';
import type { JsonWriter } from './shown-members.js';

const nullJson = constantJson('null');
/** Bytes of a quote, and of "2026-03-29T01:59:59". */
const [quoteBytes, secondsBytes] = [1, 19];
const [letterT, letterZ, plus, point, zero, hyphen, colon] = [0x54, 0x5a, 0x2b, 0x2e, 0x30, 0x2d, 0x3a];

/**
 * Writes a moment that PostgreSQL's to_json printed in the one form of the API, RFC 3339 in UTC with milliseconds. Without a zone it is in UTC, as it
 * is for PostgreSQL in the gateway's sessions. Infinite moments, those beyond the years 1 to 9999 and other values are null.
 */
export const instantFromJson: JsonWriter = (from, start, end, json) => {
  const { bytes } = from;
  const first = start + quoteBytes;
  const isUsual = bytes[first + 4] === hyphen && bytes[first + 10] === letterT && bytes[first + 16] === colon;
  let zone = first + secondsBytes;
  if (isUsual && bytes[zone] === point) for (zone++; isDigit(bytes[zone]); zone++);
  if (isUsual && isUtc(bytes, zone, end - quoteBytes)) json.instant(from, first, zone);
  else {
    const moment = momentOf(bytes.toString('latin1', first, end - quoteBytes));
    if (moment === null) json.constant(nullJson);
    else json.text(`"${moment}"`);
  }
};

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= zero && byte <= 0x39;
}

/** Whether bytes[zone, end) is nothing, Z, +00 or +00:00. */
function isUtc(bytes: Buffer, zone: number, end: number): boolean {
  if (zone === end) return true;
  if (bytes[zone] === letterZ) return zone + 1 === end;
  if (bytes[zone] !== plus || bytes[zone + 1] !== zero || bytes[zone + 2] !== zero) return false;
  return zone + 3 === end || (zone + 6 === end && bytes[zone + 4] === zero && bytes[zone + 5] === zero);
}

/** A date and time, with the offsets that PostgreSQL prints: before 1937 they have seconds. */
const printed = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d+)?(?:Z|([+-])(\d\d)(?::?(\d\d))?(?::?(\d\d))?)?$/;

function momentOf(text: string): string | null {
  const parts = printed.exec(text);
  if (parts === null || text.startsWith('0000')) return null;
  const [, day, time, fraction = '', sign = '+', hours = '0', minutes = '0', seconds = '0'] = parts;
  const localMs = Date.parse(`${day}T${time}.${fraction.slice(1, 4).padEnd(3, '0')}Z`);
  if (Number.isNaN(localMs)) return null;
  const offsetMs = (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000;
  const iso = new Date(sign === '-' ? localMs + offsetMs : localMs - offsetMs).toISOString();
  return /^\d{4}-/.test(iso) && !iso.startsWith('0000') ? iso : null;
}
