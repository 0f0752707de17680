import type { Field, Resource } from '../resource.js';

const writableText = (column: string, maxLength: number, description: string, example: string): Field => ({
  column,
  type: 'text',
  nullable: true,
  description,
  example,
  write: { schema: { maxLength } },
});

/** Installations, the one resource with writes. Refrigerant, charge, notes and LMRA are read-only: the app owns them. */
export const installaties: Resource = {
  name: 'installaties',
  record: 'installatie',
  description: 'Cooling and climate installations.',
  view: 'gateway.installaties',
  table: 'installaties',
  writeView: 'gateway.installaties_write',
  auditEntity: 'installatie',
  auditFields: ['workspaceId'],
  detail: true,
  version: 'version',
  order: [
    { column: 'created_at', type: 'timestamp' },
    { column: 'id', type: 'uuid' },
  ],
  filters: {
    customerId: {
      column: 'customer_id',
      kind: 'equals',
      type: 'uuid',
      description: 'Only installations of this customer.',
    },
  },
  fields: {
    id: { column: 'id', type: 'uuid', description: 'Opaque identifier.' },
    customerId: {
      column: 'customer_id',
      type: 'uuid',
      description: 'The customer the installation belongs to.',
      write: { required: true, references: 'gateway.klanten', auditName: 'klant_id' },
    },
    naam: {
      column: 'naam',
      type: 'text',
      description: 'Name of the installation.',
      example: 'Koelcel begane grond',
      write: { required: true, schema: { minLength: 1, maxLength: 200, pattern: '^$|\\S' } },
    },
    omschrijving: writableText('omschrijving', 4000, 'Description.', 'Koelcel met twee verdampers'),
    locatie: writableText('locatie', 200, 'Where it stands.', 'Kelder'),
    merk: writableText('merk', 100, 'Brand.', 'Daikin'),
    type: writableText('type', 100, 'Model.', 'ERQ125AV1'),
    serienummer: writableText('serienummer', 100, 'Serial number.', 'J004321'),
    bouwjaar: {
      column: 'bouwjaar',
      type: 'integer',
      nullable: true,
      description: 'Year of construction.',
      example: 2019,
      write: { schema: { minimum: 1900, maximum: 2100 } },
    },
    inbedrijfstelling: {
      column: 'inbedrijfstelling',
      type: 'date',
      nullable: true,
      description: 'Date of commissioning.',
      example: '2019-04-01',
      write: {},
    },
    koudemiddel: { column: 'koudemiddel', type: 'text', nullable: true, description: 'Refrigerant.', example: 'R32' },
    koudemiddelGwp: {
      column: 'koudemiddel_gwp',
      type: 'number',
      nullable: true,
      description: 'Global warming potential of the refrigerant (CO₂ = 1).',
      example: 675,
    },
    vullingKg: {
      column: 'vulling_kg',
      type: 'number',
      nullable: true,
      description: 'Charge in kilograms.',
      example: 2.4,
    },
    interneNotities: { column: 'interne_notities', type: 'text', nullable: true, description: 'Internal notes.' },
    lmraVerplicht: {
      column: 'lmra_verplicht',
      type: 'boolean',
      description: 'Whether a last-minute risk analysis is mandatory.',
    },
    version: { column: 'version', type: 'integer', description: 'Moves on every change; the ETag derives from it.' },
    createdAt: { column: 'created_at', type: 'timestamp', description: 'When it was created.' },
    updatedAt: { column: 'updated_at', type: 'timestamp', description: 'When it last changed.' },
  },
};
