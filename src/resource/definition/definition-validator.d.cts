import type { ValidateFunction } from 'ajv';

/** Whether a value fits config/resource.schema.json; fills in its defaults. `npm run build` writes it (bundle/validators.ts). */
declare const validate: ValidateFunction;
export = validate;
