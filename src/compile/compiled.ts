import type { Observe } from '../ops/events.js';
import type { CodecOptions } from '../projection/codecs.js';
import { leaves, type Resource } from '../resources/definition.js';
import { compileRowWriter, type RowWriter } from './row-writer.js';
import { compileStatements, type ResourceStatements } from './statements.js';

/** A resource with all that is made of its definition at start-up; a request only picks from it. */
export interface CompiledResource {
  readonly resource: Resource;
  readonly statements: ResourceStatements;
  readonly writer: RowWriter;
  /** Position of the version column in a row; -1 without one. */
  readonly versionAt: number;
}

/** Throws an Error that names the contradiction when the definition cannot be served. */
export function compileResource(resource: Resource, codecs: CodecOptions, observe: Observe): CompiledResource {
  const columns = leaves(resource).map(({ field }) => field.column);
  const refuse = (why: string): never => {
    throw new Error(`The definition of ${resource.name} is not valid: ${why}`);
  };
  for (const column of new Set(columns)) {
    if (columns.indexOf(column) !== columns.lastIndexOf(column)) refuse(`column ${column} is used twice`);
  }
  for (const needed of ['id', ...resource.order.map(({ column }) => column), resource.version]) {
    if (needed !== undefined && !columns.includes(needed)) refuse(`no field shows column ${needed}`);
  }
  for (const [name, { column }] of Object.entries(resource.filters)) {
    if (!columns.includes(column)) refuse(`filter ${name} is on column ${column}, which no field shows`);
  }
  return {
    resource,
    statements: compileStatements(resource),
    writer: compileRowWriter(resource, codecs, observe),
    versionAt: resource.version === undefined ? -1 : columns.indexOf(resource.version),
  };
}
