import type { Field, Resource } from '../resource.js';

const encrypted = (column: string, description: string, example: string): Field => ({
  column,
  type: 'text',
  nullable: true,
  codec: 'aes-256-gcm',
  description,
  example,
});

/** Customers. Everything the app encrypts is decoded here; e-mail and telephone are not granted by the scope. */
export const klanten: Resource = {
  name: 'klanten',
  record: 'klant',
  description: 'Customers of the workspace.',
  view: 'gateway.klanten',
  table: 'klanten',
  auditEntity: 'klant',
  auditFields: [
    ...['workspaceId', 'status', 'version', 'versie', 'actief', 'active', 'gearchiveerd', 'archived'],
    ...['aangemaaktOp', 'gewijzigdOp', 'gearchiveerdOp', 'archivedAt', 'verwijderdOp', 'deletedAt'],
  ],
  detail: true,
  order: [
    { column: 'created_at', type: 'timestamp' },
    { column: 'id', type: 'uuid' },
  ],
  filters: {},
  fields: {
    id: { column: 'id', type: 'uuid', description: 'Opaque identifier.' },
    naam: encrypted('naam', 'Name of the company or person.', 'Bakkerij Jansen'),
    adres: {
      description: 'Visiting address.',
      group: {
        straat: encrypted('straat', 'Street.', 'Dorpsstraat'),
        huisnummer: encrypted('huisnummer', 'House number.', '12'),
        toevoeging: encrypted('toevoeging', 'Addition to the house number.', 'A'),
        postcode: encrypted('postcode', 'Postal code.', '1234 AB'),
        plaats: encrypted('plaats', 'Town.', 'Utrecht'),
        land: {
          column: 'land',
          type: 'text',
          nullable: true,
          codec: 'base64',
          description: 'Country.',
          example: 'Nederland',
        },
      },
    },
    kvkNummer: encrypted('kvk_nummer', 'Number in the trade register.', '12345678'),
    createdAt: { column: 'created_at', type: 'timestamp', description: 'When the customer was created.' },
    updatedAt: { column: 'updated_at', type: 'timestamp', description: 'When the customer last changed.' },
  },
};
