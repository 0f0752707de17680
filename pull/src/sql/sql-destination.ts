import type { Destination, ExportFormat, Origin } from '../destination.js';
import type { Row } from '../record.js';
import { makeSqlCopy } from './copy.js';
import { type Dialect, quoteName, type Session } from './dialect.js';
import { exportRows, nameFile, replaceFile } from './exports.js';
import type { Shape } from './shape.js';
import {
  type ClaimedDestination,
  CopyState,
  claim,
  findDangling,
  noteDangling,
  noteFailure,
  prepareState,
  readNotes,
} from './state.js';
import { planTables, type WholeTable } from './tables.js';

/** Steps that a database takes by other means than its SQL. */
export interface Engine {
  readRows(query: string): AsyncIterable<readonly Row[]>;
  /** Writes a table of the copy into a new Parquet file. */
  exportParquet(table: WholeTable, shape: Shape, file: string): Promise<void>;
  close(): Promise<void>;
}

/** Selects the canonical texts of a table, for an export. */
export function composeTexts(dialect: Dialect, table: WholeTable, shape: Shape): string {
  const texts = table.shown.map((column) =>
    dialect.print(shape.getNeed(table.name, column).kind, quoteName(column.name)),
  );
  return `select ${texts.join(', ')} from ${dialect.at(table.name)}`;
}

/** Makes a destination of a database. Throws Unusable. */
export async function makeSqlDestination(
  session: Session,
  dialect: Dialect,
  hasWorkspace: boolean,
  engine: Engine,
): Promise<Destination> {
  const changeFiles = await prepareState(session, dialect);
  let claimed: ClaimedDestination | null = null;
  const requireClaimed = (): ClaimedDestination => {
    if (claimed === null) throw new Error('The destination is not claimed yet.');
    return claimed;
  };
  return {
    changeFiles,
    claim: async (origin: Origin, isReplaced) => {
      await claim(session, dialect, origin, hasWorkspace, isReplaced);
      claimed = { session, dialect, origin, hasWorkspace };
    },
    open: (resource) => makeSqlCopy(requireClaimed(), resource),
    findDangling: (resources) => findDangling(session, dialect, resources),
    readNotes: () => readNotes(session, dialect),
    noteDangling: (found) => noteDangling(session, dialect, found),
    noteFailure: (resource, failure) => noteFailure(session, dialect, resource, failure),
    export: async (resource, folder, format) => {
      const state = await new CopyState(requireClaimed(), resource).read();
      if (state === null) throw new Error(`There is no copy of ${resource.name}.`);
      for (const table of planTables(resource, hasWorkspace))
        await exportTable(engine, dialect, table, state.shape, folder, format);
    },
    close: () => engine.close(),
  };
}

async function exportTable(
  engine: Engine,
  dialect: Dialect,
  table: WholeTable,
  shape: Shape,
  folder: string,
  format: ExportFormat,
): Promise<void> {
  await replaceFile(folder, nameFile(table.name, format), async (file) => {
    if (format === 'parquet') return engine.exportParquet(table, shape, file);
    const columns = table.shown.map((column) => ({ name: column.name, kind: shape.getNeed(table.name, column).kind }));
    await exportRows(file, format, columns, engine.readRows(composeTexts(dialect, table, shape)));
  });
}
