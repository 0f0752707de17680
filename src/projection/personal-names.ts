/**
 * Which fields of the audit log are personal data of a customer. The table is by entity as the app logs it
 * (logboeken.entiteit); an entity it does not have is treated as nothing but personal data.
 */
const rules: ReadonlyMap<string, (words: string) => boolean> = new Map([
  ['klant', (words) => !administrative.test(words)],
  ['gebruiker', (words) => isPersonal(words) || anyName.test(words)],
  ['installatie', isPersonal],
  ['werkbon', isPersonal],
]);

/**
 * Whether a change to `field` of `entity` is a change to personal data. Fields may be named in any of the ways the
 * app has used: kvkNummer, kvk_nummer, adres.straat, /adres/straat.
 */
export function isPersonalField(entity: string, field: string): boolean {
  return rules.get(entity)?.(wordsOf(field)) ?? true;
}

/** Whether a member of this name, inside a logged value of any entity, holds personal data of a customer. */
export function isPersonalMember(name: string): boolean {
  return isPersonal(wordsOf(name));
}

/** All that a customer's change may show: which record it is, its state and its times. Everything else is refused. */
const administrative =
  /^(?:id|workspace id|status|actief|active|gearchiveerd|archived|version|versie|(?:created|updated|archived|deleted|aangemaakt|gewijzigd|gearchiveerd|verwijderd) (?:at|op))$/;

/** Word by word where a longer word means something else (installatie, plaatsing); otherwise also within a word. */
const personal = new RegExp(
  [
    // The customer as such, though not the id by which a record points to it.
    String.raw`\b(?:klant|customer|contact|contactpersoon|eigenaar|bewoner|huurder|opdrachtgever)(?:naam)?\b(?! id$)`,
    'klant ?naam|voornaam|achternaam|tussenvoegsel|voorletter|bedrijfsnaam|(?:first|last|full|company) name',
    String.raw`adres|address|straat|street|huisn|\bhuis n|house number|\btoevoeging\b|postcode|post code|postal|\bzip\b`,
    String.raw`\bplaats\b|woonplaats|plaatsnaam|\bcity\b|e ?mail|telefoon|\btel\b|mobiel|phone|\bfax`,
    'kvk|kamer van koophandel|btw ?(?:nummer|nr|id)|vat ?(?:number|id)|iban|bankrekening|bsn|geboorte|birth',
    'ondertekend door|ondertekenaar|signed by|signatory',
  ].join('|'),
);

const anyName = /naam|name/;

function isPersonal(words: string): boolean {
  return personal.test(words);
}

/** "kvkNummer", "KVK_nummer" and "kvk.nummer" → "kvk nummer". */
function wordsOf(name: string): string {
  if (/^[a-z]+$/.test(name)) return name;
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()
    .toLowerCase();
}
