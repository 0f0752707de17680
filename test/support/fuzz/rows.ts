import { randomUUID } from 'node:crypto';
import { encryptValue, type Keys } from '../../../demo/seed/encrypt.js';
import { type CanaryKind, canary } from './canaries.js';
import { pictures } from './pictures.js';

export type Rows = Readonly<Record<string, readonly Row[]>>;
type Row = Readonly<Record<string, unknown>>;

const encryptedColumns = ['naam', 'straat', 'huisnummer', 'toevoeging', 'postcode', 'plaats', 'kvk_nummer'];

interface Subject {
  readonly workspace: number;
  readonly id: string;
  readonly size: number;
  readonly hidden: readonly unknown[];
  readonly text: (kind: CanaryKind) => string;
}

const some = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n));
const at = (n: number): string => new Date(Date.UTC(2019, 0, 1) + Math.floor(n / 3) * 86_400_123).toISOString();

/** Makes all rows of a workspace, about `size` of each table; every text in them is a canary, pictures wherever JSON may hide them. */
export function rowsOf(workspace: number, id: string, size: number, keys: Keys): Rows {
  const text = (kind: CanaryKind): string => canary(workspace, kind);
  const subject = { workspace, id, size, text, hidden: pictures(workspace) };
  const klanten = customersOf(subject, keys);
  const installaties = installationsOf(subject, klanten);
  const werkbonnen = workOrdersOf(subject, installaties);
  return {
    ...{ klanten, installaties, werkbonnen },
    ...partsOf(subject, werkbonnen),
    logboeken: entriesOf(subject, { klanten, installaties, werkbonnen }),
  };
}

function customersOf({ id, size, text }: Subject, keys: Keys) {
  return some(size, (n) => {
    const row = randomUUID();
    const stored = (column: string, m: number): string | null => {
      if (m === 3 && n % 7 === 0) return null;
      if (m === 0 && n % 11 === 0) return text('never'); // not encrypted at all: cannot be decoded
      const [version, place] = n % 5 === 0 ? [1 as const, row] : [2 as const, m === 1 && n % 13 === 0 ? id : row];
      const kind = place === row ? 'customer' : 'never'; // sealed for another row
      return encryptValue(keys, `k${1 + (n % 3)}`, version, [id, 'klanten', column, place], text(kind));
    };
    return {
      id: row,
      workspace_id: id,
      ...Object.fromEntries(encryptedColumns.map((column, m) => [column, stored(column, m)])),
      land: Buffer.from(text('customer')).toString('base64'),
      email: text('never'),
      telefoon: text('never'),
      created_at: at(n),
      updated_at: at(n),
    };
  });
}

function installationsOf({ id, size, text }: Subject, klanten: readonly Row[]) {
  return some(size, (n) => ({
    id: randomUUID(),
    workspace_id: id,
    klant_id: klanten[n % klanten.length]?.id,
    naam: text('installation'),
    omschrijving: text('installation'),
    locatie: n % 4 === 0 ? null : text('installation'),
    merk: text('installation'),
    type: text('installation'),
    serienummer: text('installation'),
    bouwjaar: 1990 + (n % 30),
    inbedrijfstelling: '2001-02-03',
    koudemiddel: text('readonly'),
    koudemiddel_gwp: 675,
    vulling_kg: 1.25,
    interne_notities: text('readonly'),
    lmra_verplicht: n % 2 === 0,
    version: 1,
    created_at: at(n),
    updated_at: at(n),
  }));
}

/** The gateway knows these pictures in a text that a definition shows. */
const inTexts = [0, 1, 4, 5, 6, 7];

function workOrdersOf({ id, size, text, hidden }: Subject, installaties: readonly Row[]) {
  return some(size, (n) => ({
    id: randomUUID(),
    workspace_id: id,
    installatie_id: installaties[(n * 7) % installaties.length]?.id,
    nummer: text('workorder'),
    datum: at(n).slice(0, 10),
    status: ['gepland', 'in_uitvoering', 'afgerond', 'gefactureerd'][n % 4],
    omschrijving: n % 6 === 0 ? `${text('never')} ${hidden[inTexts[n % inTexts.length] as number]}` : text('workorder'),
    handtekening: hidden[0],
    ondertekend_op: n % 2 === 0 ? at(n) : null,
    created_at: at(n),
    updated_at: at(n),
  }));
}

function partsOf({ workspace, id, text, hidden }: Subject, werkbonnen: readonly Row[]) {
  const handelingen = werkbonnen.flatMap((order, n) =>
    some(1 + (n % 3), (volgorde) => ({
      id: randomUUID(),
      workspace_id: id,
      werkbon_id: order.id,
      volgorde,
      code: text('workorder'),
      omschrijving: text('workorder'),
      resultaat: (n + volgorde) % 9 === 0 ? hidden[6] : text('workorder'),
      gegevens: measurements(workspace, hidden[(n + volgorde) % hidden.length], n),
    })),
  );

  const uren = werkbonnen.flatMap((order, n) =>
    some(n % 3, () => ({
      id: randomUUID(),
      workspace_id: id,
      werkbon_id: order.id,
      medewerker: text('workorder'),
      datum: order.datum,
      van: '08:00',
      tot: '16:30',
      uren: 8.5,
    })),
  );
  return { werkbon_handelingen: handelingen, werkbon_uren: uren };
}

function entriesOf(
  { workspace, id, size, text, hidden }: Subject,
  of: Readonly<Record<'klanten' | 'installaties' | 'werkbonnen', readonly Row[]>>,
) {
  const { klanten, installaties, werkbonnen } = of;
  return some(size * 2, (n) => {
    const { entity, changes } = logged(workspace, n, hidden, klanten[n % klanten.length] as Row);
    const subject = entity === 'klant' ? klanten : entity === 'werkbon' ? werkbonnen : installaties;
    return {
      workspace_id: id,
      tijdstip: n % 40 === 0 ? '2009-07-01T12:00:00Z' : at(n),
      entiteit: entity,
      entiteit_id: subject[n % subject.length]?.id,
      actie: ['aangemaakt', 'gewijzigd', 'verwijderd'][n % 3],
      actor_type: n % 2 === 0 ? 'gebruiker' : 'systeem',
      actor_id: n % 5 === 0 ? null : text('log'),
      wijzigingen: changes,
    };
  });
}

function measurements(workspace: number, picture: unknown, n: number): unknown {
  const shown = canary(workspace, 'workorder');
  const secret = canary(workspace, 'never');
  return [
    { druk: 4.5, opmerking: shown },
    { foto: picture, opmerking: shown },
    { meting: [{ diep: { dieper: [picture, shown] } }] },
    { handtekening: secret, handtekeningKlant: { naam: secret }, opmerking: shown },
    { klant: { paraaf: [secret], signature: { points: [1, 2] } }, opmerking: shown },
    picture,
    shown,
    null,
  ][n % 8];
}

/** Makes an entity and diff of the log: visible values have a canary of the log, shielded values one that no token may see. */
function logged(
  workspace: number,
  n: number,
  hidden: readonly unknown[],
  customer: Row,
): { entity: string; changes: unknown } {
  const shown = canary(workspace, 'log');
  const secret = canary(workspace, 'never');
  const picture = hidden[n % hidden.length];
  const change = (veld: string, oud: unknown, nieuw: unknown): object => ({ veld, oud, nieuw });
  const cases: readonly [entity: string, changes: unknown][] = [
    ['klant', [change('naam', secret, customer.plaats), change('status', shown, shown)]],
    ['klant', [change('adres', { straat: secret, plaats: secret }, null), change('kvkNummer', secret, secret)]],
    ['klant', [change('/adres/postcode', secret, secret), change('notitie', secret, secret)]],
    ['installatie', [change('naam', shown, shown), change('locatie', null, shown)]],
    ['installatie', [change('klant_naam', secret, secret), change('klant', { naam: secret }, null)]],
    ['installatie', [change('interne_notities', shown, [{ waarde: shown }]), change('notitie', picture, shown)]],
    ['installatie', [change('overzicht', { a: [{ postcode: secret }] }, 1), change('x', customer.straat, null)]],
    ['werkbon', [change('handtekening', picture, picture), change('status', 'gepland', shown)]],
    [
      'werkbon',
      [change('gegevens', { beeld: [picture] }, { waarde: shown }), change('ondertekend_door', secret, null)],
    ],
    ['werkbon', [change('omschrijving', `tekst ${customer.plaats} tekst`, shown)]],
    ['gebruiker', [change('naam', secret, secret), change('email', secret, secret), change('rol', shown, shown)]],
    ['onbekend', [change('waarde', secret, secret)]],
    ['klant', { naam: secret }],
    ['klant', [secret, [secret], { veld: 3, oud: secret }, { oud: secret }, { veld: 'naam', secret }]],
    ['installatie', []],
  ];
  const [entity, changes] = cases[n % cases.length] as [string, unknown];
  return { entity, changes };
}
