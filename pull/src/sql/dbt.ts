import { stripControls } from '../api.js';
import { type Column, type Resource, statusTable } from '../document.js';
import { quoteLiteral, quoteName } from './dialect.js';
import { getIdColumn, planTables, type WholeTable } from './tables.js';

/** Writes the tables of a copy as sources of dbt: YAML whose values are JSON. */
export function composeDbtSources(resources: readonly Resource[], schema: string, hasWorkspace: boolean): string {
  const source = schema === 'main' ? 'workspace_data' : schema;
  const lines = [
    '# Written by workspace-data-pull --dbt: the next run replaces it.',
    'version: 2',
    'sources:',
    `  - name: ${JSON.stringify(source)}`,
    `    schema: ${JSON.stringify(schema)}`,
    '    description: "Copy of a workspace, kept by workspace-data-pull."',
    '    quoting: {schema: true, identifier: true}',
    '    tables:',
  ];
  for (const resource of resources) {
    // A query, because an empty table has no newest row. A copy whose age is unknown counts as very old.
    const status = `select coalesce(max(data_as_of), timestamptz '2000-01-01 00:00:00+00') from ${quoteName(schema)}.${statusTable} where resource = ${quoteLiteral(resource.name)}`;
    for (const table of planTables(resource, hasWorkspace))
      lines.push(
        `      - name: ${JSON.stringify(table.name)}`,
        `        description: ${quoteYaml(table.comment)}`,
        '        config:',
        `          loaded_at_query: ${JSON.stringify(status)}`,
        '          freshness: {warn_after: {count: 2, period: hour}, error_after: {count: 24, period: hour}}',
        '        columns:',
        ...table.shown.flatMap((column) =>
          listColumnLines(column, listTests(column, table, resource, resources, source)),
        ),
      );
  }
  return `${lines.join('\n')}\n`;
}

function listColumnLines(column: Column, tests: readonly string[]): string[] {
  return [
    `          - name: ${JSON.stringify(column.name)}`,
    '            quote: true',
    `            description: ${quoteYaml(column.comment)}`,
    ...(tests.length === 0 ? [] : ['            data_tests:', ...tests.map((test) => `              - ${test}`)]),
  ];
}

/** Removes control characters, which YAML refuses, and braces of Jinja, which dbt runs. */
const quoteYaml = (text: string): string => JSON.stringify(stripControls(text, 10_000).replace(/\{(?=[{%#])/g, '{ '));

/** Lists tests of a column, as the document promises. A reference to a record that the gateway hides is a warning. */
function listTests(
  column: Column,
  table: WholeTable,
  resource: Resource,
  resources: readonly Resource[],
  source: string,
): string[] {
  const makeRelation = (target: Resource, severity: string): string => {
    const field = JSON.stringify(quoteName(getIdColumn(target)));
    return `relationships: {to: "source('${source}', '${target.table.name}')", field: ${field}, config: {severity: ${severity}}}`;
  };
  const isOfRecord = table.owner === null;
  const { references = [] } = isOfRecord ? resource : (resource.parts.find(({ name }) => name === table.name) ?? {});
  const reference = references.find((each) => each.column === column.name);
  const target = resources.find(({ name }) => name === reference?.resource);
  return [
    ...(isOfRecord && table.key[0] === column.name ? ['unique'] : []),
    ...(column.isRequired ? ['not_null'] : []),
    ...(target === undefined ? [] : [makeRelation(target, 'warn')]),
    ...(table.owner === column.name ? [makeRelation(resource, 'error')] : []),
  ];
}
