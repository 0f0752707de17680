import type { JsonSchema, Resource } from '../resource.js';

const text: JsonSchema = { type: ['string', 'null'] };
const time: JsonSchema = { type: 'string', pattern: '^[0-9]{2}:[0-9]{2}$', description: 'Local time of day.' };

const handeling: JsonSchema = {
  type: 'object',
  required: ['id', 'code', 'omschrijving', 'resultaat', 'gegevens'],
  properties: {
    id: { type: 'string' },
    code: { type: 'string' },
    omschrijving: text,
    resultaat: text,
    gegevens: { description: 'Free-form measurements; images and signatures in it are null.' },
  },
};

const uur: JsonSchema = {
  type: 'object',
  required: ['id', 'medewerker', 'datum', 'van', 'tot', 'uren'],
  properties: {
    id: { type: 'string' },
    medewerker: { type: 'string' },
    datum: { type: 'string', format: 'date' },
    van: time,
    tot: time,
    uren: { type: 'number' },
  },
};

/** Work orders with their actions and hours. The signature column is not in the view; images elsewhere are stripped. */
export const werkbonnen: Resource = {
  name: 'werkbonnen',
  record: 'werkbon',
  description: 'Work orders.',
  view: 'gateway.werkbonnen',
  table: 'werkbonnen',
  auditEntity: 'werkbon',
  auditFields: ['installatieId', 'workspaceId', 'btwPercentage'],
  detail: true,
  order: [
    { column: 'datum', type: 'date' },
    { column: 'id', type: 'uuid' },
  ],
  filters: {
    installationId: {
      column: 'installation_id',
      kind: 'equals',
      type: 'uuid',
      description: 'Only work orders of this installation.',
    },
    from: { column: 'datum', kind: 'dateFrom', type: 'text', description: 'First date, inclusive.' },
    to: { column: 'datum', kind: 'dateTo', type: 'text', description: 'Last date, inclusive.' },
  },
  fields: {
    id: { column: 'id', type: 'uuid', description: 'Opaque identifier.' },
    installationId: { column: 'installation_id', type: 'uuid', description: 'The installation that was worked on.' },
    nummer: { column: 'nummer', type: 'text', description: 'Number of the work order.', example: 'WB-2026-000123' },
    datum: { column: 'datum', type: 'date', description: 'Date of the work.' },
    status: { column: 'status', type: 'text', description: 'State of the work order.', example: 'afgerond' },
    omschrijving: {
      column: 'omschrijving',
      type: 'text',
      nullable: true,
      clean: 'text-images',
      description: 'Description.',
    },
    handelingen: {
      column: 'handelingen',
      type: 'json',
      clean: 'json-images',
      description: 'Actions, in order.',
      schema: { type: 'array', items: handeling },
    },
    uren: { column: 'uren', type: 'json', description: 'Hours worked.', schema: { type: 'array', items: uur } },
    ondertekendOp: {
      column: 'ondertekend_op',
      type: 'timestamp',
      nullable: true,
      description: 'When the customer signed; the signature itself is never shown.',
    },
    createdAt: { column: 'created_at', type: 'timestamp', description: 'When it was created.' },
    updatedAt: { column: 'updated_at', type: 'timestamp', description: 'When it last changed.' },
  },
};
