import { createRequire } from 'node:module';
import type { Ajv2020, Options } from 'ajv/dist/2020.js';

/** Loads ajv, with its formats, when it is first needed: see plain-schema.ts. */
export function newAjv(options: Options): Ajv2020 {
  const require = createRequire(import.meta.url);
  const { Ajv2020 } = require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js');
  const ajv = new Ajv2020(options);
  (require('ajv-formats') as typeof import('ajv-formats')).default(ajv);
  return ajv;
}
