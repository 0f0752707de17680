import type { Column, Digits, Kind } from '../document.js';
import { digitsOf } from '../values.js';

/** Needs of the values of a column beyond the document. */
export interface Need extends Digits {
  /** The kind of the document when it was noted: another one makes the need void. */
  readonly documentKind: Kind;
  readonly kind: Kind;
  readonly hasNull: boolean;
}

/** The tables of a resource with the needs of their columns, as `pull_state` keeps them. */
export class Shape {
  readonly #needs: Map<string, Map<string, Need>>;
  /** Something was noted since it was read. */
  isGrown = false;

  private constructor(needs: Map<string, Map<string, Need>>) {
    this.#needs = needs;
  }

  static read(text: string | null): Shape {
    const tables = Object.entries(JSON.parse(text ?? '{}') as Record<string, Record<string, Need>>);
    return new Shape(new Map(tables.map(([table, columns]) => [table, new Map(Object.entries(columns))])));
  }

  /** The text for `pull_state`. */
  get text(): string {
    return JSON.stringify(
      Object.fromEntries([...this.#needs].map(([table, columns]) => [table, Object.fromEntries(columns)])),
    );
  }

  get tables(): string[] {
    return [...this.#needs.keys()];
  }

  /** Knows the table from now on. */
  addTable(table: string): void {
    if (!this.#needs.has(table)) this.#needs.set(table, new Map());
  }

  of(table: string, column: Column): Need {
    const known = this.#needs.get(table)?.get(column.name);
    if (known !== undefined && known.documentKind === column.kind) return known;
    return { documentKind: column.kind, kind: column.kind, whole: 0, scale: 0, hasNull: false };
  }

  widen(table: string, column: Column, kind: Kind): void {
    this.#set(table, column, { ...this.of(table, column), kind });
  }

  /** Notes a value, in its canonical text. */
  note(table: string, column: Column, value: string | null): void {
    const need = this.of(table, column);
    if (value === null) {
      if (column.isRequired && !need.hasNull) this.#set(table, column, { ...need, hasNull: true });
    } else if (need.kind === 'integer' || need.kind === 'number') {
      const { whole, scale } = digitsOf(value);
      if (whole > need.whole || scale > need.scale)
        this.#set(table, column, {
          ...need,
          whole: Math.max(whole, need.whole),
          scale: Math.max(scale, need.scale),
        });
    }
  }

  #set(table: string, { name }: Column, need: Need): void {
    this.addTable(table);
    this.#needs.get(table)?.set(name, need);
    this.isGrown = true;
  }
}
