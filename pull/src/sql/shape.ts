import type { Column, Digits, Kind, Table } from '../document.js';
import { countValueDigits } from '../values.js';

/** `owner` is the column with the id of the record; null: the table holds the records themselves. */
type OwnedTable = Pick<Table, 'name' | 'columns'> & { readonly owner: string | null };

/** Needs of the values of a column beyond the document. */
export interface Need extends Digits {
  /** Kind of the column in the document when the need was noted; another kind makes the need void. */
  readonly documentKind: Kind;
  readonly kind: Kind;
  readonly hasNull: boolean;
}

interface MadeTable {
  /** Column with the id of the record; null: the table holds the records themselves. */
  readonly owner: string | null;
  comments: string;
  readonly columns: Map<string, Need>;
  /** Names of columns that the document no longer has; `*`: the table itself. */
  readonly gone: Set<string>;
}

interface StoredTable extends Omit<MadeTable, 'columns' | 'gone'> {
  readonly columns: readonly (readonly [string, Need])[];
  readonly gone: readonly string[];
}

const wholeTable = '*';

/** The tables and columns that `pull` made for a resource, with the needs of their values, as `pull_state` keeps them. */
export class Shape {
  readonly #tables: Map<string, MadeTable>;
  /** True if the shape has changed since it was read. */
  isGrown = false;

  private constructor(tables: Map<string, MadeTable>) {
    this.#tables = tables;
  }

  static read(text: string | null): Shape {
    const stored = JSON.parse(text ?? '[]') as (readonly [string, StoredTable])[];
    return new Shape(
      new Map(stored.map(([name, t]) => [name, { ...t, columns: new Map(t.columns), gone: new Set(t.gone) }])),
    );
  }

  get text(): string {
    return JSON.stringify(
      [...this.#tables].map(([name, t]) => [name, { ...t, columns: [...t.columns], gone: [...t.gone] }]),
    );
  }

  get tables(): string[] {
    return [...this.#tables.keys()];
  }

  /** Names tables and columns that the document no longer has, as TABLE and TABLE.COLUMN. */
  get gone(): string[] {
    return [...this.#tables].flatMap(([table, { gone }]) =>
      gone.has(wholeTable) ? [table] : [...gone].map((column) => `${table}.${column}`),
    );
  }

  /** Tables of parts that the document no longer has; `owner` is the column of ids. */
  get goneParts(): { readonly name: string; readonly owner: string }[] {
    return [...this.#tables].flatMap(([name, { owner, gone }]) =>
      owner !== null && gone.has(wholeTable) ? [{ name, owner }] : [],
    );
  }

  has(table: string, column?: string): boolean {
    const made = this.#tables.get(table);
    return column === undefined ? made !== undefined : made?.columns.has(column) === true;
  }

  /** Notes the tables of the current document. Returns whether something is back that it had lost: its values are old. */
  follow(tables: readonly OwnedTable[]): boolean {
    let isBack = false;
    for (const [name, { columns, gone }] of this.#tables) {
      const table = tables.find((each) => each.name === name);
      const present = new Set(table?.columns.map((column) => column.name));
      const wanted = table === undefined ? [wholeTable] : [...columns.keys()].filter((column) => !present.has(column));
      if ([...gone].some((column) => !wanted.includes(column))) isBack = true;
      if (wanted.length === gone.size && !isBack) continue;
      this.isGrown = true;
      gone.clear();
      for (const column of wanted) gone.add(column);
    }
    return isBack;
  }

  /** Notes that `pull` made the table, and the column. */
  add({ name, owner }: OwnedTable, column?: Column): void {
    if (!this.has(name)) {
      this.#tables.set(name, { owner, comments: '', columns: new Map(), gone: new Set() });
      this.isGrown = true;
    }
    if (column !== undefined && !this.has(name, column.name)) this.#set(name, column, this.getNeed(name, column));
  }

  /** Notes the comments of a table. Returns whether they have changed. */
  noteComments(table: string, hash: string): boolean {
    const made = this.#tables.get(table) as MadeTable;
    if (made.comments === hash) return false;
    made.comments = hash;
    this.isGrown = true;
    return true;
  }

  getNeed(table: string, column: Column): Need {
    const known = this.#tables.get(table)?.columns.get(column.name);
    if (known !== undefined && known.documentKind === column.kind) return known;
    return { documentKind: column.kind, kind: column.kind, whole: 0, scale: 0, hasNull: false };
  }

  widen(table: string, column: Column, kind: Kind): void {
    this.#set(table, column, { ...this.getNeed(table, column), kind });
  }

  /** Notes a value, in its canonical text. */
  noteValue(table: string, column: Column, value: string | null): void {
    const need = this.getNeed(table, column);
    if (value === null) {
      if (column.isRequired && !need.hasNull) this.#set(table, column, { ...need, hasNull: true });
    } else if (need.kind === 'integer' || need.kind === 'number') {
      const { whole, scale } = countValueDigits(value);
      if (whole > need.whole || scale > need.scale)
        this.#set(table, column, { ...need, whole: Math.max(whole, need.whole), scale: Math.max(scale, need.scale) });
    }
  }

  #set(table: string, { name }: Column, need: Need): void {
    this.#tables.get(table)?.columns.set(name, need);
    this.isGrown = true;
  }
}
