import type { JsonSchema, Resource } from '../resource.js';

const change: JsonSchema = {
  anyOf: [
    {
      type: 'object',
      required: ['veld', 'oud', 'nieuw'],
      properties: { veld: { type: 'string' }, oud: {}, nieuw: {} },
    },
    {
      type: 'object',
      required: ['veld', 'afgeschermd'],
      properties: { veld: { type: 'string' }, afgeschermd: { const: true } },
      description:
        'A change to anything that reading the log does not grant, personal data and signatures above all: that it ' +
        'happened is shown, the values are not. `veld` is "(afgeschermd)" when it is not the name of a field.',
    },
  ],
};

/** The audit log, seven years and older. Personal data and signatures in a diff are redacted. */
export const logboeken: Resource = {
  name: 'logboeken',
  record: 'logboekregel',
  description: 'Audit log: who changed what, when.',
  view: 'gateway.logboeken',
  table: 'logboeken',
  auditFieldsOfOthers: { gebruiker: ['id', 'workspaceId', 'rol', 'status', 'actief', 'createdAt', 'updatedAt'] },
  detail: false,
  order: [
    { column: 'tijdstip', type: 'timestamp' },
    { column: 'id', type: 'bigint' },
  ],
  filters: {
    entity: {
      column: 'entity',
      kind: 'equals',
      type: 'text',
      description: 'Only this kind of entity, such as installatie.',
    },
    entityId: {
      column: 'entity_id',
      kind: 'equals',
      type: 'text',
      description: 'Only the entity with this identifier.',
    },
    from: { column: 'tijdstip', kind: 'dayFrom', type: 'text', description: 'First day, inclusive.' },
    to: { column: 'tijdstip', kind: 'dayTo', type: 'text', description: 'Last day, inclusive.' },
  },
  fields: {
    id: { column: 'id', type: 'bigint', description: 'Opaque identifier.', example: '1042' },
    entity: { column: 'entity', type: 'text', description: 'Kind of entity that changed.', example: 'installatie' },
    entityId: { column: 'entity_id', type: 'text', description: 'Identifier of the entity that changed.' },
    actie: { column: 'actie', type: 'text', description: 'What was done.', example: 'gewijzigd' },
    actor: {
      description: 'Who did it.',
      group: {
        type: { column: 'actor_type', type: 'text', description: 'Kind of actor.', example: 'gebruiker' },
        id: { column: 'actor_id', type: 'text', nullable: true, description: 'Identifier of the actor.' },
      },
    },
    tijdstip: { column: 'tijdstip', type: 'timestamp', description: 'When it was done.' },
    wijzigingen: {
      column: 'wijzigingen',
      type: 'json',
      clean: 'audit-diff',
      description: 'Fields that changed, with old and new value.',
      schema: { type: 'array', items: change },
    },
  },
};
