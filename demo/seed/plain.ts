import { createRequire } from 'node:module';
import { join } from 'node:path';
import { projectRoot } from '../../src/base/paths.js';
import { type Random, random, seedId } from './random.js';

/** Words from which customers are made up; no real company or person is meant. */
interface Words {
  readonly firstNames: readonly string[];
  /** Tussenvoegsel and surname together, so that "van der Berg" stays a plausible pair. */
  readonly surnames: readonly string[];
  /** A * stands for a surname. */
  readonly companies: readonly string[];
  readonly streets: readonly string[];
  readonly additions: readonly string[];
  readonly towns: readonly Town[];
}

interface Town {
  readonly plaats: string;
  readonly provincie: string;
  /** First and last postcode number. */
  readonly postcodes: readonly [number, number];
  /** Dialling code. */
  readonly netnummer: string;
}

/** The working area of the second workspace. */
const north = ['Groningen', 'Friesland', 'Drenthe'];
/** Read from disk by the first call only: Node keeps the file's content. */
const words = (): Words => createRequire(import.meta.url)(join(projectRoot, 'sql/apps/first/seed/words.json'));

/** A customer row once decoded. The API shows `id`, `naam`, `adres` and `kvkNummer`. */
export interface CustomerPlain {
  id: string;
  naam: string;
  adres: {
    straat: string;
    huisnummer: string;
    toevoeging: string | null;
    postcode: string;
    plaats: string;
    land: string | null;
  };
  kvkNummer: string | null;
  email: string | null;
  telefoon: string | null;
}

/** Customer number n (from 1) of a workspace (from 0): the same on every run, whatever the size of the data set. */
export function customerPlain(workspaceIndex: number, n: number): CustomerPlain {
  const draw = random(`klant/${workspaceIndex}/${n}`);
  const isCompany = draw.chance(60);
  const { towns } = words();
  const town = draw.pick(workspaceIndex === 1 ? towns.filter(({ provincie }) => north.includes(provincie)) : towns);
  const naam = isCompany ? companyName(draw) : personName(draw);
  return {
    id: seedId('klant', workspaceIndex, n),
    naam,
    adres: address(draw, town),
    kvkNummer: isCompany ? kvkNumber(draw) : null,
    email: draw.chance(80) ? email(naam, n, isCompany) : null,
    telefoon: draw.chance(70) ? phone(draw, town, isCompany) : null,
  };
}

function companyName(draw: Random): string {
  const { companies, surnames } = words();
  return draw.pick(companies).replaceAll(
    '*',
    draw.pick(surnames).replace(/^./, (first) => first.toUpperCase()),
  );
}

function personName(draw: Random): string {
  const { firstNames, surnames } = words();
  const form = draw.below(3);
  if (form === 0) return `Fam. ${draw.pick(surnames)}`;
  if (form === 1) return `${draw.pick(firstNames).charAt(0)}. ${draw.pick(surnames)}`;
  return `${draw.pick(firstNames)} ${draw.pick(surnames)}`;
}

function address(draw: Random, town: Town): CustomerPlain['adres'] {
  const { streets, additions } = words();
  const [first, last] = town.postcodes;
  // The letters F, I, O, Q, U and Y are not issued in Dutch postcodes.
  const letters = 'ABCDEGHJKLMNPRSTVWXZ'.split('');
  return {
    straat: draw.pick(streets),
    huisnummer: String(1 + draw.below(draw.chance(20) ? 900 : 120)),
    toevoeging: draw.chance(20) ? draw.pick(additions) : null,
    postcode: `${first + draw.below(last - first + 1)} ${draw.pick(letters)}${draw.pick(letters)}`,
    plaats: town.plaats,
    land: draw.chance(99) ? 'Nederland' : null,
  };
}

/** Eight digits; a leading zero is common in the older ones and must survive. */
function kvkNumber(draw: Random): string {
  return String((draw.chance(15) ? 1_000_000 : 10_000_000) + draw.below(8_999_999)).padStart(8, '0');
}

function email(naam: string, n: number, isCompany: boolean): string {
  const word = naam
    .normalize('NFD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '');
  return isCompany ? `info@${word}${n}.example` : `${word}${n}@post.example`;
}

function phone(draw: Random, town: Town, isCompany: boolean): string {
  const digits = String(10_000_000 + draw.below(89_999_999));
  return isCompany ? `${town.netnummer}-${digits.slice(0, 10 - town.netnummer.length)}` : `06-${digits}`;
}
