import { rmSync } from 'node:fs';
import { join } from 'node:path';
import suite from 'ava';
import { loadResources } from '../../src/definition/load.js';
import { openapi } from '../../src/openapi/openapi.js';
import { loadSettings } from '../../src/settings.js';
import { output, tool, toolsInstalled, toolsMissing, workFolder } from '../support/client-tools.js';

const test = toolsInstalled ? suite : suite.skip;

interface Finding {
  readonly code: string;
  readonly path: string;
  readonly message: string;
}

/** Findings that stay, each with its reason. */
const exceptions: Readonly<Record<string, string>> = {
  'oas3-operation-security-defined':
    'OpenAPI 3.1 lets an operation name the roles that a bearer token needs (§4.8.30); the rule knows scopes of OAuth only.',
};

/** The document of a gateway whose operator has set the contact and the public address. */
const document = openapi(loadResources(''), {
  version: '1.0.0',
  ...loadSettings({
    PUBLIC_URL: 'https://data.gateway.test',
    API_CONTACT: 'Help desk, api@example.com, https://example.com/help',
    PRIMARY_URLS: 'postgres://primary/app',
  }),
});

/** A small document with a fault for each design rule. */
function withFaults(): object {
  const parameters = [{ in: 'query', name: 'per_page', schema: { type: 'string' } }];
  const problem = { description: 'a', content: { 'application/problem+json': { schema: { properties: {} } } } };
  const properties = { at: { type: 'string', format: 'time' }, startDate: { type: 'string', format: 'date-time' } };
  const responses = { 200: { description: 'a' }, 404: { description: 'a' }, 500: problem };
  return {
    openapi: '3.1',
    info: { title: 'a', version: '1', contact: { name: 'a' } },
    servers: [{ url: 'http://data.gateway.test/api' }],
    paths: { '/Klanten_all/': { get: { operationId: 'a', responses, parameters }, trace: { responses } } },
    components: { schemas: { lower_case: { type: 'object', properties } } },
  };
}

interface SpectralOutput {
  /** The names of the design rules. */
  readonly rules: readonly string[];
  /** Per document. */
  readonly findings: readonly [Finding[], Finding[]];
}

async function spectral(folder: string, files: readonly string[]): Promise<SpectralOutput> {
  const paths = files.map((name) => join(folder, name));
  return JSON.parse(await output(process.execPath, ['spectral.mjs', ...paths])) as SpectralOutput;
}

let folder = '';
suite.before(() => {
  folder = workFolder({ 'openapi.json': JSON.stringify(document), 'faulty.json': JSON.stringify(withFaults()) });
});
suite.after.always(() => rmSync(folder, { recursive: true, force: true }));

test(`redocly has neither errors nor warnings by its recommended rules${toolsMissing}`, async (t) => {
  const args = ['lint', join(folder, 'openapi.json'), '--extends=recommended', '--format=json'];
  const env = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  const { totals } = JSON.parse(await output(tool('redocly'), args, { env })) as { totals: object };
  t.deepEqual(totals, { errors: 0, warnings: 0, ignored: 0 });
});

test(`Spectral finds nothing by its own rules and the NLGov API Design Rules but the exceptions${toolsMissing}`, async (t) => {
  const { rules, findings } = await spectral(folder, ['openapi.json', 'faulty.json']);
  const [found, foundInFaulty] = findings.map((each) => new Set(each.map(({ code }) => code))) as [
    Set<string>,
    Set<string>,
  ];
  t.deepEqual([...found], Object.keys(exceptions), JSON.stringify(findings[0]));
  t.deepEqual(
    rules.filter((rule) => !foundInFaulty.has(rule)),
    [],
    'each rule finds a planted fault',
  );
});
