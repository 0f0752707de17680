const text = { type: 'string' };
const orNull = (type) => ({ type: [type, 'null'] });

/** Members of a response; Fastify compiles its serializer from it. */
export const installatie = {
  type: 'object',
  properties: {
    id: text,
    customerId: text,
    naam: text,
    omschrijving: orNull('string'),
    locatie: orNull('string'),
    merk: orNull('string'),
    type: orNull('string'),
    serienummer: orNull('string'),
    bouwjaar: orNull('integer'),
    inbedrijfstelling: orNull('string'),
    koudemiddel: orNull('string'),
    koudemiddelGwp: orNull('number'),
    vullingKg: orNull('number'),
    interneNotities: orNull('string'),
    lmraVerplicht: { type: 'boolean' },
    version: { type: 'integer' },
    createdAt: { type: 'string', format: 'date-time' },
    updatedAt: { type: 'string', format: 'date-time' },
  },
};

export const list = {
  type: 'object',
  properties: {
    data: { type: 'array', items: installatie },
    pagination: {
      type: 'object',
      properties: { count: { type: 'integer' }, hasMore: { type: 'boolean' }, nextCursor: orNull('string') },
    },
  },
};

export const listQuery = {
  type: 'object',
  additionalProperties: false,
  properties: { limit: { type: 'integer', minimum: 1, maximum: 10_000, default: 100 }, cursor: text },
};
