export interface Figures {
  readonly ok: boolean;
  readonly figures: Readonly<Record<string, number | string>>;
}
