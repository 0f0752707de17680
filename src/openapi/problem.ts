import type { JsonSchema } from '../definition/resource.js';
import { type ProblemCode, problems } from '../errors.js';
import { component } from './document.js';

/** The problem schema with only these codes, and what belongs to them. */
export function narrowedProblem(codes: readonly ProblemCode[]): JsonSchema {
  return {
    type: 'object',
    allOf: [component('schemas', 'problem')],
    properties: {
      type: { type: 'string', enum: codes.map(problemType) },
      title: { type: 'string', enum: codes.map((code) => problems[code].title) },
      status: { type: 'integer', enum: [...new Set(codes.map((code) => problems[code].status))] },
      code: { type: 'string', enum: codes },
    },
  };
}

/** Body of every error (RFC 9457). */
export function problemSchema(): JsonSchema {
  const codes = Object.keys(problems) as ProblemCode[];
  const fault = (place: string, description: string): JsonSchema => ({
    type: 'object',
    additionalProperties: false,
    required: [place, 'code', 'detail'],
    properties: { [place]: { type: 'string', description }, code: { type: 'string' }, detail: { type: 'string' } },
  });
  return {
    type: 'object',
    description: 'Problem details (RFC 9457).',
    additionalProperties: false,
    required: ['type', 'title', 'status', 'detail', 'code', 'requestId'],
    properties: {
      type: { type: 'string', enum: codes.map(problemType), description: 'Identifies the kind of problem.' },
      title: { type: 'string', description: 'The kind of problem in words; the same for every occurrence.' },
      status: { type: 'integer', minimum: 400, maximum: 599, description: 'The status of the response.' },
      detail: { type: 'string', description: 'This occurrence in words.' },
      code: { type: 'string', enum: codes, description: 'The kind of problem, for programs.' },
      requestId: { type: 'string', description: 'Value of X-Request-Id.' },
      errors: {
        type: 'array',
        minItems: 1,
        description: 'Every fault, where several things can be wrong.',
        items: {
          oneOf: [
            fault('pointer', 'Where in the body (RFC 6901).'),
            fault('parameter', 'Name of the query parameter.'),
            fault('header', 'Name of the request header.'),
          ],
        },
      },
    },
  };
}

function problemType(code: ProblemCode): string {
  return `urn:workspace-data-api:problem:${code}`;
}

/** A body as documentation shows it. */
export function problemExample(code: ProblemCode): object {
  const { status, title } = problems[code];
  return {
    type: problemType(code),
    title,
    status,
    detail: `${title}.`,
    code,
    requestId: '0b1d6f0e-7f5c-4b7e-9d5f-1f0c8f1f5d0a',
  };
}
