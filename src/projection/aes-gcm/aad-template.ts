import { Row } from '../../db/row.js';
import { type EncodedRows, templatePieces } from '../codec.js';

/** Text of a piece of the template for a cell; null when it is a column that is NULL. */
type PieceText = (workspace: string, column: string, id: string, row: Row) => string | null;

/** Placeholders that have the same text in all rows of a workspace. */
const constants: Readonly<Record<string, (table: string) => PieceText>> = {
  workspace: () => (workspace) => workspace,
  table: (table) => () => table,
  column: () => (_, column) => column,
};

/**
 * The associated data of cells, from a template such as "{workspace}|{table}|{column}|{id}": per column a prefix, the same
 * for all rows of a workspace, and a suffix, which begins with the first placeholder that depends on the row.
 */
export class AadTemplate {
  /** Whether the suffix is the same for all columns of a row. */
  readonly isSuffixShared: boolean;
  readonly #prefix: readonly PieceText[];
  readonly #suffix: readonly PieceText[];

  constructor(aad: string, { table, others }: EncodedRows) {
    const pieces = templatePieces(aad);
    const texts = pieces.map((piece, i): PieceText => {
      if (i % 2 === 0) return () => piece;
      const constant = constants[piece];
      if (constant !== undefined) return constant(table);
      if (piece === 'id') return (_, __, id) => id;
      const at = others?.get(piece) as number;
      return (_, __, ___, row) => row.text(at);
    });
    const first = pieces.findIndex((piece, i) => i % 2 === 1 && constants[piece] === undefined);
    const prefixEnd = first < 0 ? pieces.length : first;
    this.#prefix = texts.slice(0, prefixEnd);
    this.#suffix = texts.slice(prefixEnd).filter((_, i) => pieces[prefixEnd + i] !== '');
    this.isSuffixShared = !pieces.some((piece, i) => i % 2 === 1 && i > prefixEnd && piece === 'column');
  }

  prefixOf(workspace: string, column: string): string {
    return this.#prefix.map((text) => text(workspace, column, '', new Row())).join('');
  }

  /** Null when a column in it is NULL. */
  suffixOf(workspace: string, column: string, id: string, row: Row): string | null {
    let suffix = '';
    for (const piece of this.#suffix) {
      const text = piece(workspace, column, id, row);
      if (text === null) return null;
      suffix += text;
    }
    return suffix;
  }
}
