import type { Configurations } from './configuration.js';

const klantenColumns =
  'id, naam, straat, huisnummer, toevoeging, postcode, plaats, land, kvk_nummer, created_at, updated_at, xmin as row_xid';
const wall = ' and coalesce(workspace_id = any (array[(select gateway.workspace()::uuid)]), false)';
const klanten = (where: string, workspace = 'workspace_id'): string =>
  `create or replace view gateway.klanten as select ${workspace}, ${klantenColumns} from app.klanten where ${where}`;
const klantenAsShipped = (): string => klanten(`workspace_id = gateway.workspace()::uuid${wall}`);
const anyWorkspace = 'exists (select from app.workspaces w where w.id = (select gateway.workspace()::uuid))';
const seesWorkspaces = 'grant select (id) on app.workspaces to gateway_owner; ';

/** Values of klanten that no key opens, and the values before. */
const damage = (where: string) => (): string =>
  `create table public.kept as select id, naam from app.klanten; update app.klanten set naam = 'enc:v2:k1:AAAA' where ${where}`;
const repair = (): string =>
  'update app.klanten k set naam = kept.naam from public.kept where kept.id = k.id; drop table public.kept';

/** Wrong views and values, and lists without an index. */
export const wrongViews: Configurations = {
  'a view is missing': {
    change: () => 'alter view gateway.klanten rename to customers',
    undo: () => 'alter view gateway.customers rename to klanten',
    level: 'refused',
    code: 'view',
    detail: /it does not exist \([/]view\): run `migrate`.*the definition is config[/]resources[/]klanten[.]json/,
    also: ['privileges'],
  },
  'a view of parts is missing': {
    change: () => 'alter view gateway.werkbonnen_uren rename to hours',
    undo: () => 'alter view gateway.hours rename to werkbonnen_uren',
    level: 'refused',
    code: 'view',
    detail: /gateway\.werkbonnen_uren does not exist .*run `migrate`, or write it/,
    also: ['privileges'],
  },
  'a column has a type that does not fit': {
    change: () => 'alter view gateway.klanten rename column naam to name',
    undo: () => 'alter view gateway.klanten rename column name to naam',
    level: 'refused',
    code: 'view',
    detail:
      /column naam is missing \([/]fields[/]naam[/]column\); the definition is config[/]resources[/]klanten[.]json/,
  },
  'a view is not filtered by workspace': {
    change: () => klanten('true'),
    undo: klantenAsShipped,
    level: 'refused',
    code: 'view',
    detail: /does not call gateway.workspace\(\).*it shows rows without a workspace/,
    also: ['tenant_wall', 'scans'],
  },
  'other conditions see rows before the filter of a view': {
    change: () => klanten('workspace_id = gateway.workspace()::uuid'),
    undo: klantenAsShipped,
    level: 'refused',
    code: 'view',
    detail: /other conditions see rows of other workspaces: its filter must be the cheapest condition/,
  },
  'a value comes from a row of any workspace': {
    change: () =>
      klantenAsShipped().replace('updated_at,', '(select max(o.updated_at) from app.klanten o) as updated_at,'),
    undo: klantenAsShipped,
    level: 'refused',
    code: 'scans',
    detail: /^it reads app[.]klanten [(]o[)] without comparing workspace_id with the workspace[.]$/,
  },
  'a function of the schema gateway reads as its owner': {
    change:
      () => `create function gateway.newest() returns timestamptz language sql stable security definer as 'select max(updated_at) from app.klanten';
      ${klantenAsShipped().replace('updated_at,', 'gateway.newest() as updated_at,')}`,
    undo: () => `${klantenAsShipped()}; drop function gateway.newest`,
    level: 'refused',
    code: 'scans',
    detail: /^it calls gateway[.]newest[(][)], which reads as its owner, and whose scans no check sees[.]$/,
  },
  'a superuser owns a view': {
    change: () => 'alter view gateway.klanten owner to postgres',
    undo: () => 'alter view gateway.klanten owner to gateway_owner',
    level: 'refused',
    code: 'view',
    detail: /its owner postgres is a superuser/,
  },
  'a view shows every workspace the rows of all as its own': {
    change: () => seesWorkspaces + klanten(anyWorkspace, 'gateway.workspace()::uuid as workspace_id'),
    undo: klantenAsShipped,
    level: 'refused',
    code: 'tenant_wall',
    detail: /^two workspaces see the same rows\.$/,
    also: ['values', 'scans'],
  },
  'a view shows every workspace the rows of all': {
    change: () => seesWorkspaces + klanten(anyWorkspace),
    undo: klantenAsShipped,
    level: 'refused',
    code: 'tenant_wall',
    detail: /^in a workspace it shows rows of another one; two workspaces see the same rows\.$/,
    also: ['scans'],
  },
  'a view shows several rows with one id': {
    change: () =>
      `${klantenAsShipped()} union all select workspace_id, ${klantenColumns} from app.klanten where workspace_id = gateway.workspace()::uuid${wall}`,
    undo: klantenAsShipped,
    level: 'failed',
    code: 'ids',
    detail: /^Several rows of a workspace have one id, such as [-0-9a-f]{36}\.$/,
    also: ['plans'],
    thorough: true,
  },
  'no workspaces can be taken as a sample': {
    change: () => 'revoke execute on function gateway.sample_workspaces() from gateway_reader',
    undo: () => 'grant execute on function gateway.sample_workspaces() to gateway_reader',
    level: 'refused',
    code: 'workspaces',
    detail: /cannot be executed, so the tenant wall is not tried/,
  },
  'a value is damaged': {
    change: damage('id = (select id from app.klanten where naam is not null order by created_at, id limit 1)'),
    undo: repair,
    level: 'warning',
    code: 'values',
    detail: /[/]naam: 1 of \d+ values are stored but shown as null \(bad_format\), such as in row [-0-9a-f]{36}/,
  },
  'one of ten values is damaged': {
    change: damage(`right(id::text, 1) in ('a', 'b')`),
    undo: repair,
    level: 'failed',
    code: 'values',
    detail: /[/]naam: \d+ of \d+ values are stored but shown as null \(bad_format\)/,
  },
  'all values of a field are damaged': {
    change: damage('naam is not null'),
    undo: repair,
    level: 'refused',
    code: 'values',
    detail: /[/]naam: (\d+) of \1 values are stored but shown as null \(bad_format\)/,
  },
  'records do not fit their schema': {
    change: () => `create table public.definition as select pg_get_viewdef('gateway.werkbonnen') as text;
      do $$ begin execute 'create or replace view gateway.werkbonnen as ' ||
        regexp_replace((select text from public.definition), '\\(\\s*SELECT COALESCE\\(json_agg\\(h[.*]*\\)[^;]*?AS handelingen', '''{}''::json AS handelingen'); end $$`,
    undo: () => `do $$ begin execute 'create or replace view gateway.werkbonnen as ' || (select text from public.definition); end $$;
      drop table public.definition`,
    level: 'failed',
    code: 'schema',
    detail:
      /^Records do not fit it: [/]fields[/]handelingen \(type\); the definition is config[/]resources[/]werkbonnen[.]json\.$/,
    thorough: true,
  },
  'a list has no index': {
    change: () => 'drop index app.klanten_lijst, app.gateway_klanten_gewijzigd',
    undo: () => `create index klanten_lijst on app.klanten (workspace_id, created_at, id);
      create index gateway_klanten_gewijzigd on app.klanten (workspace_id, created_at, id, updated_at)`,
    level: 'failed',
    code: 'plans',
    detail: /^No index fits: the list sorts/,
    thorough: true,
  },
  'a filter has no index': {
    change: () => 'drop index app.gateway_werkbonnen_status',
    undo: () => 'create index gateway_werkbonnen_status on app.werkbonnen (workspace_id, status, datum, id)',
    level: 'warning',
    code: 'plans',
    detail:
      /^the list by status reads the rows of all values: create index concurrently if not exists gateway_werkbonnen_status on app\.werkbonnen \(workspace_id, status, datum, id\)\.$/,
    thorough: true,
  },
  'a filter of nearly unique values has no index': {
    change: () => 'drop index app.gateway_installaties_serienummer',
    undo: () =>
      'create index gateway_installaties_serienummer on app.installaties (workspace_id, serienummer, created_at, id)',
    level: 'failed',
    code: 'plans',
    detail: /^No index fits: the list by serienummer sorts\.$/,
    thorough: true,
  },
  'a filter that the definition says has an index of its own has none': {
    change: () => 'drop index app.gateway_werkbonnen_sinds',
    undo: () => 'create index gateway_werkbonnen_sinds on app.werkbonnen (workspace_id, updated_at, datum, id)',
    level: 'failed',
    code: 'plans',
    detail: /^No index fits: the list by updatedSince sorts\.$/,
    thorough: true,
  },
  'a filter of a partitioned table has no index': {
    change: () => 'drop index app.gateway_logboeken_soort',
    undo: () => 'create index gateway_logboeken_soort on app.logboeken (workspace_id, entiteit, tijdstip, id)',
    level: 'warning',
    code: 'plans',
    detail:
      /^the list by entity reads the rows of all values: .* on app\.logboeken \(workspace_id, entiteit, tijdstip, id\)/,
    thorough: true,
  },
  'the parts of a record have no index for sync': {
    change: () => 'drop index app.werkbon_uren_sync',
    undo: () => 'create index werkbon_uren_sync on app.werkbon_uren (workspace_id, werkbon_id, id)',
    level: 'failed',
    code: 'plans',
    detail: /^No index fits: uren by since sorts\.$/,
    thorough: true,
  },
};
