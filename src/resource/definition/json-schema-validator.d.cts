import type { ValidateFunction } from 'ajv';

/** Whether a value is a JSON Schema of the draft 2020-12. `npm run build` writes it (bundle/validators.ts). */
declare const validate: ValidateFunction;
export = validate;
