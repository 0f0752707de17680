import type { Subject, Survey } from './schema.js';

/** Words by which the names of tables and columns, in snake case, tell their purpose. A guess is an open point of the draft. */
export const purposes = {
  workspaces:
    /^(workspaces?|tenants?|organi[sz]ations?|organisaties?|orgs?|compan(y|ies)|accounts?|bedrij(f|ven)|firms?|agenc(y|ies)|business(es)?|administraties?)$/,
  workspaceColumn:
    /^(workspace|tenant|organi[sz]ation|organisatie|org|company|account|bedrijf|bedrijfs|firm|agency|business|administratie)(_?id)?$/,
  /** These are workspaces only where many tables refer to them. */
  groups:
    /^(teams?|projects?|shops?|stores?|sites?|clubs?|schools?|clinics?|winkels?|praktijk(en)?|vereniging(en)?|vestiging(en)?)$/,
  /** Django has the name of its app before the table's, and ASP.NET its own. */
  users:
    /^(app_)?(users?|members?|staff|employees?|people|gebruikers?|medewerkers?|accounts?|logins?)$|^(auth|accounts?|users|core|identity|asp_net)_users?$/,
  email: /^(e_?mail|e_?mail_?address|mail|email_?adres)$/,
  label: /^(name|naam|title|titel|label|display_name|company_name)$/,
  owner:
    /^((role|super|workspace|company|account|org|organi[sz]ation|tenant|team|site|system)_)?(owner|admin|administrator|boss|eigenaar|beheerder)$/,
  /** Columns that name a user in a membership, and tables of memberships. */
  member: /^(user|member|person|people|staff|employee|account|profile|agent|login|gebruiker|medewerker)$/,
  membership:
    /member|collaborator|(^|_)users?$|^(account|company|organi[sz]ation|org|team|tenant|workspace|user)_(users?|staff|roles?|access|accounts?|companies|organi[sz]ations?|orgs|teams|tenants|workspaces)$/,
  login: /^(user_?name|login(_?name)?|log_?in|gebruikersnaam)$/,
  password: /password|passwd|wachtwoord|^pwd$/,
  role: /^(role|rol|kind|type)$/,
  ownerFlag: /^(is_)?(owner|admin|boss|eigenaar|beheerder)$/,
  created:
    /^(date_?)?(created|inserted|registered|aangemaakt|made|opened|added|logged|happened|occurred|recorded|gebeurd)(_?(at|on|op|date|time|ts))?$/,
  updated: /^(date_?)?(updated|modified|changed|gewijzigd|bijgewerkt)(_?(at|on|op|date|time|ts))?$/,
  /** When what the record is about takes place, by the calendar of the business. */
  business:
    /^((start|begin)(s|ed)?|date|datum|day|dag|(begin|start|plan(ned)?|schedule[ds]?|invoice|order|issued?|entry|posting|transaction|booking|visit|event|service|delivery|payment|document|effective|accounting|work|performed|executed|factuur|boek|plan|gepland|uitvoer|uitgevoerd|bezoek)_?(date|datum|day|dag|on|at|op|time|ts)|(starts|begins|booked|posted|invoiced|ordered|delivered|visited)_?(at|on|date))$/,
  deleted:
    /^((is|was|soft|date|time)_?)*(deleted|removed|trashed|discarded|destroyed|purged|erased|verwijderd|gewist)(_?(at|on|op|date|time|ts|timestamp|flag|mark))?$|^(is_?|soft_?)?(delete|del|deletion)_?(flag|mark|at|on|date|time|ts)$|^(is|soft)_?delete$/,
  /** Rows out of use, which an app can mean as deleted. */
  setAside:
    /^((is|was|date)_?)?(active|actief|archived|hidden|voided|withdrawn|retired|obsolete|inactive|disabled|deactivated|gearchiveerd|verborgen|inactief)(_?(at|on|op|date|time|ts))?$/,
  /** Marks of users and of workspaces that the app lets in no more. */
  barred:
    /^((is|was|date)_?)?(active|actief|enabled|archived|disabled|deactivated|inactive|inactief|suspended|blocked|banned|geblokkeerd|closed)(_?(at|on|op|date|time|ts))?$/,
  version: /^((lock|row|record)_?)?(version|versie|revision)(_?(no|number|nr))?$/,
  movedVersion: /^((lock|row|record)_?(version|versie|revision)(_?(no|number|nr))?|version|versie)$/,
  status: /^(status|state|stage|toestand|kind|soort)$/,
  keyId: /(^|_)(key|sleutel|dek|kek)(_?(id|version|name))?$/,
  secret:
    /(^|_)(pwd|salt|hash|digest|passphrase|passcode|otp|totp|geheim|(api|private|access|signing|encryption|hmac|master|ssh)_?key|(recovery|backup|reset|verification|confirmation|activation|invitation|access|security)_?code|security_?stamp|connection_?string|credential|session|jwt|pin|cv[vc])(_?(hash|code))?s?\d*(_|$)|password|passwd|wachtwoord|(secret|token)(_?(hash|code))?s?\d*(_|$)/,
  contact:
    /(^|_)((e_?mail|mail|phone|telephone|mobile|tel|gsm|fax|telefoon|mobiel|whatsapp|iban|bsn|ssn|passport|social_?security|national_?(id|insurance)|driv(er|ers|ing)_?licen[cs]e|bank_?account|(credit|debit)_?card|card(?=_?(number|nr|no)(_|$)))(_?(adres|address|nummer|number|nr|no))?|bank_?rekening|rekening_?(nummer|nr)|burgerservice_?nummer|birth\w*|geboorte\w*)(s|es|sen)?\d*(_|$)|email|(cell|home|work|mobile|office|business|private|contact|customer|user|client|company|tele|smart)phone/,
  birth: /birth|geboorte|(^|_)dob(_|$)/,
  state:
    /^(old|new|before|after|previous|prior|original)_?(data|values?|rows?|records?|states?|attributes|fields|json)$|^(row|record|object)_?(data|changes|state|json)$|^(changed_fields|change_?set|object)$/,
  image: /(^|_)(signature|handtekening|photo|foto|image|afbeelding|avatar|logo|picture)(_?(image|png|svg|data))?$/,
  prose:
    /(^|_)(notes?|description|comments?|remarks?|text|body|message|details|omschrijving|opmerking(en)?|notities?|toelichting|tekst)$/,
  actorType: /(^|_)(actor|user|author|by)_?(type|kind|soort)$/,
  actorId: /(^|_)(actor|user|author|by)_?(id|ref|name)?$/,
  entity:
    /^(entity|entiteit|record|object|subject|auditable|target|item|resource|table|model)(_?(type|kind|name|soort|table))?$/,
  entityId: /^(entity|entiteit|record|object|subject|auditable|target|item|resource|row|model)_?(id|key|pk)$/,
  action: /^(action|actie|event|verb|operation|op|what|activity|change_?type)$/,
  before: /^(oud|old|before|from|old_?value|previous)$/,
  after: /^(nieuw|new|after|to|new_?value|current)$/,
  changedField: /^(veld|field|column|name|attribute|property|key)$/,
} as const satisfies Readonly<Record<string, RegExp>>;

/** Whether the name, of any spelling, is one of the purpose. */
export function isNamed(purpose: keyof typeof purposes, name: string): boolean {
  return purposes[purpose].test(snakeCase(name));
}

/** "createdAt" and "Created-At" → "created_at". */
export function snakeCase(name: string): string {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '');
  return /^[a-z]/.test(words) ? words.slice(0, 50) : `x_${words}`.slice(0, 50);
}

/** "created_at" → "createdAt". */
export function camelCase(name: string): string {
  return snakeCase(name).replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The name, with a number where it is taken; it is taken then. PostgreSQL cuts names beyond 63 characters. */
export function untaken(name: string, taken: Set<string>, mark = '_'): string {
  let free = name;
  for (let n = 2; taken.has(free); n++) free = `${name.slice(0, 59)}${mark}${n}`;
  taken.add(free);
  return free;
}

/** English and Dutch plurals and their singulars, tried in this order; some Dutch words end as English ones with another singular do. */
const plurals: readonly (readonly [RegExp, string])[] = [
  [/((install|organis|loc|administr|rel|relat|not)at?ie)s$/, '$1'],
  [/ies$/, 'y'],
  [/(ss|x|ch|sh)es$/, '$1'],
  [/([^aeious])s$/, '$1'],
  [/([eao])s$/, '$1'],
  [/([b-df-hj-np-tv-z])\1?en$/, '$1'],
];

/** "work_orders" → "work_order", "klanten" → "klant"; a name that is no plural stays. */
export function singular(name: string): string {
  const [plural, end] = plurals.find(([ending]) => ending.test(name)) ?? [/$/, ''];
  return name.replace(plural, end);
}

/** Names that the gateway uses itself: views and tables of its schema, the files of `adopt` beside those of views, paths, schemas of OpenAPI. */
const taken = {
  view: /^(tokens|token_uses|api_tokens|idempotency|applied_files|workspaces|token_owners|key_ids|logboeken_write)$/,
  name: /^(sync|self|openapi|v1)$/,
  record: /^(problem|pagination)$/,
  recordEnd: /(Page|Create|Patch|Written)$/,
};

type Names = ReturnType<typeof namesFrom>;

/** Names of the view, of the resource and of one record; a number tells tables apart whose names are the same in this form. */
export function namesOf(subject: Subject, { subjects }: Survey): Names {
  const own = namesFrom(subject.table.name);
  const earlier = subjects.slice(0, subjects.indexOf(subject)).map(({ table }) => namesFrom(table.name));
  const numbered = (key: keyof Names, mark: string): string => {
    const twins = earlier.filter((each) => each[key] === own[key]).length;
    return twins === 0 ? own[key] : `${own[key].slice(0, key === 'view' ? 47 : 36)}${mark}${twins + 1}`;
  };
  return { view: numbered('view', '_'), name: numbered('name', '-'), record: numbered('record', '') };
}

/** The names without a number. */
function namesFrom(table: string) {
  const view = snakeCase(table);
  const name = view.replaceAll('_', '-').slice(0, 36).replace(/-+$/, '');
  const record = camelCase(singular(view)).slice(0, 30);
  return {
    view: taken.view.test(view) ? `app_${view}` : view,
    name: taken.name.test(name) ? `app-${name}` : name,
    record: taken.record.test(record) ? `app${record}` : record.replace(taken.recordEnd, '$&Record'),
  };
}
