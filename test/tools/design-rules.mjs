// The NLGov REST API Design Rules 2.1 of Logius, as far as a program can check them, as rules of Spectral. Their names are
// those of the standard, after "adr-". Written from the standard: each rule looks at the document with its references resolved.

import { casing, pattern, schema, truthy } from '@stoplight/spectral-functions';
import { oas } from '@stoplight/spectral-rulesets';

const operations = '$.paths[*][?(@property.match(/^(get|put|post|patch|delete)$/))]';
const responses = `${operations}.responses`;
const problemMembers = { required: ['status', 'title', 'detail'] };
const dateMembers = '$..properties[?(@property.match(/^(date|datum)$|[a-z]D(ate|atum)$|_(date|datum)$/))]';

const rule = (given, fn, functionOptions, more = {}) => ({
  given,
  severity: 'error',
  message: '{{description}}: {{error}}',
  // biome-ignore lint/suspicious/noThenProperty: a key of Spectral's rules
  then: { function: fn, ...(functionOptions && { functionOptions }), ...more },
});

export const designRules = {
  'adr-doc-openapi': rule('$', pattern, { match: '^3\\.\\d+\\.\\d+$' }, { field: 'openapi' }),
  'adr-doc-openapi-contact': rule('$.info', schema, {
    schema: { required: ['contact'], properties: { contact: { required: ['name', 'url', 'email'] } } },
  }),
  'adr-semver': rule(
    '$.info',
    pattern,
    { match: '^\\d+\\.\\d+\\.\\d+(-[\\w.-]+)?(\\+[\\w.-]+)?$' },
    { field: 'version' },
  ),
  'adr-uri-version': rule('$.servers[*]', pattern, { match: '/v\\d+(/|$)' }, { field: 'url' }),
  'adr-transport-security': rule('$..servers[*]', pattern, { notMatch: '^http:' }, { field: 'url' }),
  'adr-no-trailing-slash': rule('$.paths[*]~', pattern, { notMatch: './$' }),
  'adr-path-segments-kebab-case': rule('$.paths[*]~', pattern, {
    match: '^(/|(/([a-z0-9]+(-[a-z0-9]+)*|_[a-z]+|\\{[^}]+\\}|openapi\\.(json|yaml)))+)$',
  }),
  'adr-query-keys-camel-case': rule("$.paths[*][*].parameters[?(@.in=='query')].name", casing, { type: 'camel' }),
  'adr-schema-names': rule('$.components.schemas[*]~', casing, { type: 'pascal' }),
  'adr-http-methods': rule('$.paths[*][*]~', pattern, {
    match: '^(get|put|post|patch|delete|parameters|summary|description|servers|\\$ref)$',
  }),
  'adr-version-header': rule(`${responses}[?(@property.match(/^[23]/))]`, truthy, undefined, {
    field: 'headers.API-Version',
  }),
  'adr-problem-details': rule(`${responses}[?(@property.match(/^[45]/))]`, schema, {
    schema: {
      required: ['content'],
      properties: { content: { required: ['application/problem+json'], maxProperties: 1 } },
    },
  }),
  'adr-problem-members': rule(`${responses}[?(@property.match(/^[45]/))].content[*].schema`, schema, {
    schema: { required: ['properties'], properties: { properties: problemMembers } },
  }),
  'adr-invalid-input': rule(`${operations}`, schema, {
    schema: {
      if: {
        anyOf: [
          { required: ['requestBody'] },
          { required: ['parameters'], properties: { parameters: { minItems: 1 } } },
        ],
      },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { properties: { responses: { required: ['400'] } } },
    },
  }),
  'adr-timezone': rule('$..properties[*].format', pattern, { notMatch: '^(time|date-time-local)$' }),
  'adr-date-omit-time-portion': rule(dateMembers, schema, {
    schema: { required: ['format'], properties: { format: { const: 'date' } } },
  }),
};

/** Spectral's own rules that it recommends for OpenAPI, and the design rules. */
export default { extends: [[oas, 'recommended']], rules: designRules };
