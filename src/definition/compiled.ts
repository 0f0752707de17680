import type { Observe } from '../events.js';
import type { ProjectionOptions } from '../projection/options.js';
import { visibleToWriteScope } from './record-schema.js';
import { type Field, leaves, type Resource } from './resource.js';
import { compileSerializer, type RowSerializer } from './row-serializer.js';
import { compileStatements, type ResourceStatements } from './statements.js';
import { compileWriteStatements, type WriteStatements } from './write-statements.js';
import { compileWriteValidators, type WriteValidators } from './write-validators.js';

/** A resource with all that is made of its definition at start-up; a request only picks from it. */
export interface CompiledResource {
  readonly resource: Resource;
  readonly statements: ResourceStatements;
  readonly serializer: RowSerializer;
  /** Position of the version column in a row; -1 without one. */
  readonly versionAt: number;
  /** How it is written; null for what is only read. */
  readonly write: CompiledWrite | null;
}

/** All that is made for the writes of a resource. Rows are those of the reads: the same columns in the same order. */
export interface CompiledWrite {
  readonly validators: WriteValidators;
  readonly statements: WriteStatements;
  /** What the audit log calls the resource. */
  readonly entity: string;
  readonly versionAt: number;
  /** Each writable member and its position in a row. */
  readonly writableAt: readonly (readonly [string, number])[];
  readonly fullRecord: RowSerializer;
  /** For tokens without the read scope: writable members, id, version and timestamps. */
  readonly writeScopeRecord: RowSerializer;
  /** The names of those members. */
  readonly writeScopeMembers: ReadonlySet<string>;
}

/** Throws an Error that names the contradiction when the definition cannot be served. */
export function compileResource(resource: Resource, options: ProjectionOptions, observe: Observe): CompiledResource {
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
  const versionAt = resource.version === undefined ? -1 : columns.indexOf(resource.version);
  const serializer = compileSerializer(resource, options, observe);
  const { writeView, auditEntity, version } = resource;
  if (writeView !== undefined && (version === undefined || auditEntity === undefined)) {
    refuse('a written resource needs a version and the name the audit log has for it');
  }
  const write =
    writeView === undefined ? null : compileWrite({ ...resource, writeView }, options, observe, versionAt, serializer);
  return { resource, statements: compileStatements(resource), serializer, versionAt, write };
}

function compileWrite(
  resource: Resource & { writeView: string },
  options: ProjectionOptions,
  observe: Observe,
  versionAt: number,
  fullRecord: RowSerializer,
): CompiledWrite {
  const validators = compileWriteValidators(resource);
  const columns = leaves(resource).map(({ field }) => field.column);
  const inWriteScope = (field: Field): boolean => visibleToWriteScope(resource, field);
  return {
    validators,
    statements: compileWriteStatements(resource),
    entity: resource.auditEntity as string,
    versionAt,
    writableAt: validators.writable.map(({ name, column }) => [name, columns.indexOf(column)]),
    fullRecord,
    writeScopeRecord: compileSerializer(resource, options, observe, inWriteScope),
    writeScopeMembers: new Set(
      leaves(resource).flatMap(({ field, path }) => (inWriteScope(field) ? [path[0] as string] : [])),
    ),
  };
}
