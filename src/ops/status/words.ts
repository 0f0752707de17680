// Numbers as a reader of the status page takes them in at a glance.

// Not a formatter made at the import: it would load the languages, 6 MB, before any page is asked for.
const whole = (number: number): string => number.toLocaleString('en');
const short = (number: number): string => number.toLocaleString('en', { maximumSignificantDigits: 3 });

/** `1 request`, `2 requests`. */
export function count(number: number, noun: string): string {
  return `${whole(number)} ${noun}${number === 1 ? '' : 's'}`;
}

/** Numbers from 1000 on are whole; smaller ones have three digits. */
export function quantity(number: number): string {
  return number >= 1000 ? whole(Math.round(number)) : short(number);
}

/** In the largest unit of which there is at least one. */
function inUnits(number: number, units: readonly (readonly [name: string, size: number])[]): string {
  const [name, size] = units.find((unit) => number >= unit[1]) ?? (units.at(-1) as readonly [string, number]);
  return `${quantity(number / size)} ${name}`;
}

/** Milliseconds below a second are whole, except durations of less than ten of them. */
export function duration(seconds: number): string {
  return inUnits(seconds, [
    ['d', 86_400],
    ['h', 3600],
    ['min', 60],
    ['s', 1],
    ['ms', 0.001],
  ]);
}

export function bytes(number: number): string {
  return inUnits(number, [
    ['GB', 1e9],
    ['MB', 1e6],
    ['kB', 1e3],
    ['B', 1],
  ]);
}
