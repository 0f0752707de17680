import { type Html, html } from '../../openapi/html.js';

/** A value, and how many seconds ago it held; null is a gap in the line. */
export type ChartPoint = readonly [secondsAgo: number, value: number | null];

interface ChartOptions {
  readonly seconds: number;
  /** The top of the chart unless a value is larger, so that small values do not look like large ones. */
  readonly top: number;
  /** The chart in words. */
  readonly label: string;
}

const [width, height] = [300, 40];

/** A line over time, the present at the right edge. Its colours come from the style sheet. */
export function chart(points: readonly ChartPoint[], { seconds, top, label }: ChartOptions): Html {
  const scale = Math.max(top, ...points.map(([, value]) => value ?? 0));
  const at = (secondsAgo: number, value: number): string =>
    `${(width * (1 - secondsAgo / seconds)).toFixed(1)},${(height - 1 - (height - 2) * (value / scale)).toFixed(1)}`;
  let path = '';
  let pen = 'M';
  for (const [secondsAgo, value] of points) {
    if (value !== null) path += `${pen}${at(secondsAgo, value)}`;
    pen = value === null ? 'M' : 'L';
  }
  return html`<svg role="img" aria-label="${label}" viewBox="0 0 ${width} ${height}" preserveAspectRatio="none"><path class="base" d="M0,${height - 1}H${width}"/><path class="line" d="${path}"/></svg>`;
}
