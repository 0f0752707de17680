-- The reference workspace app: stands in for the operator's own app in the demo and in the tests.
-- The gateway never creates or alters anything here; it owns only the schema `gateway` (sql/core and sql/views).
--
-- Personal data columns of klanten hold text "enc:v2:<key id>:<base64 of iv(12) ‖ ciphertext ‖ tag(16)>"
-- (AES-256-GCM, AAD "<workspace>|klanten|<column>|<row id>"), older rows "enc:v1:…" without AAD.
-- klanten.land is plain base64 of UTF-8, a leftover of the app's first importer.

create schema app;

create table app.workspaces (
  id uuid primary key,
  naam text not null,
  created_at timestamptz not null default now()
);

create table app.users (
  id uuid primary key,
  workspace_id uuid not null references app.workspaces,
  naam text not null,
  email text not null,
  rol text not null check (rol in ('owner', 'member')),
  created_at timestamptz not null default now()
);
create index on app.users (workspace_id);

-- Only the SHA-256 of a token is stored; the token has 256 bits of entropy, so no salt or stretching is needed.
create table app.api_tokens (
  id uuid primary key,
  workspace_id uuid not null references app.workspaces,
  created_by uuid not null references app.users,
  naam text not null,
  token_hash bytea not null unique check (length(token_hash) = 32),
  scopes text[] not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  rotated_from uuid references app.api_tokens
);
create index on app.api_tokens (workspace_id);
create index on app.api_tokens (rotated_from) where rotated_from is not null; -- a deletion looks for successors

create table app.klanten (
  id uuid primary key,
  workspace_id uuid not null references app.workspaces,
  naam text,
  straat text,
  huisnummer text,
  toevoeging text,
  postcode text,
  plaats text,
  land text,
  kvk_nummer text,
  email text,
  telefoon text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (workspace_id, id)
);
create index klanten_lijst on app.klanten (workspace_id, created_at, id);

create table app.installaties (
  id uuid primary key,
  workspace_id uuid not null references app.workspaces,
  klant_id uuid not null,
  naam text not null,
  omschrijving text,
  locatie text,
  merk text,
  type text,
  serienummer text,
  bouwjaar integer,
  inbedrijfstelling date,
  koudemiddel text,
  koudemiddel_gwp integer,
  vulling_kg numeric(10, 3),
  interne_notities text,
  lmra_verplicht boolean not null default false,
  version bigint not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (workspace_id, id),
  foreign key (workspace_id, klant_id) references app.klanten (workspace_id, id)
);
create index installaties_lijst on app.installaties (workspace_id, created_at, id);
create index installaties_klant on app.installaties (workspace_id, klant_id, created_at, id);

-- Optimistic locking relies on this: every change moves the version.
create function app.installaties_versie() returns trigger language plpgsql as $$
begin
  new.version := old.version + 1;
  new.updated_at := clock_timestamp();
  return new;
end $$;
create trigger installaties_versie before update on app.installaties
  for each row execute function app.installaties_versie();

create table app.werkbonnen (
  id uuid primary key,
  workspace_id uuid not null references app.workspaces,
  installatie_id uuid not null,
  nummer text not null,
  datum date not null,
  status text not null check (status in ('gepland', 'in_uitvoering', 'afgerond', 'gefactureerd')),
  omschrijving text,
  handtekening text,            -- base64 PNG, 20–60 KB; never leaves the database through the gateway
  ondertekend_op timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (workspace_id, id),
  foreign key (workspace_id, installatie_id) references app.installaties (workspace_id, id)
);
create index werkbonnen_lijst on app.werkbonnen (workspace_id, datum, id);

create table app.werkbon_handelingen (
  id uuid primary key,
  workspace_id uuid not null,
  werkbon_id uuid not null,
  volgorde integer not null,
  code text not null,
  omschrijving text,
  resultaat text,
  gegevens jsonb,               -- free form; may hide signature images at any depth
  foreign key (workspace_id, werkbon_id) references app.werkbonnen (workspace_id, id)
);
create index werkbon_handelingen_werkbon on app.werkbon_handelingen (werkbon_id, volgorde);

create table app.werkbon_uren (
  id uuid primary key,
  workspace_id uuid not null,
  werkbon_id uuid not null,
  medewerker text not null,
  datum date not null,
  van time not null,
  tot time not null,
  uren numeric(5, 2) not null,
  foreign key (workspace_id, werkbon_id) references app.werkbonnen (workspace_id, id)
);
create index werkbon_uren_werkbon on app.werkbon_uren (werkbon_id, datum, van);

-- The audit log: kept for more than seven years, one partition a year (app.logboeken_2018 …, made by the seed).
-- wijzigingen: [{"veld": …, "oud": …, "nieuw": …}], and it holds encrypted customer values and signatures as they
-- stood in the row, as audit tables made by a trigger do.
create sequence app.logboeken_id_seq;
create table app.logboeken (
  id bigint not null default nextval('app.logboeken_id_seq'),
  workspace_id uuid not null,
  tijdstip timestamptz not null default clock_timestamp(),
  entiteit text not null,
  entiteit_id text not null,
  actie text not null,
  actor_type text not null,
  actor_id text,
  wijzigingen jsonb not null default '[]',
  primary key (id, tijdstip)
) partition by range (tijdstip);
create index logboeken_lijst on app.logboeken (workspace_id, tijdstip, id);
create index logboeken_entiteit on app.logboeken (workspace_id, entiteit_id, tijdstip, id);
