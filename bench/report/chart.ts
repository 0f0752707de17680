import { figure, isReached, type Verdict } from '../result.js';

const width = 860;
const labelWidth = 430;
const barWidth = 300;
const rowHeight = 30;
const top = 40;

/** Bars of ratios, each on a scale of its own goal: the line in the middle is the goal, whatever its value. */
export function chart(verdicts: readonly Verdict[]): string {
  const height = top + verdicts.length * rowHeight + 36;
  const goalX = labelWidth + barWidth / 2;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="Measured ratios against their goals">
<style>
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .quiet { fill: #59636e } .good { fill: #2f7d4f } .bad { fill: #b3541e } .goal { stroke: #59636e; stroke-dasharray: 3 3 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .quiet { fill: #9198a1 } .good { fill: #4fb477 } .bad { fill: #e08a4f } .goal { stroke: #9198a1 }
  }
</style>
<text class="quiet" x="${goalX}" y="20" text-anchor="middle">goal</text>
${verdicts.map((verdict, i) => bar(verdict, top + i * rowHeight)).join('\n')}
<line class="goal" x1="${goalX}" x2="${goalX}" y1="28" y2="${height - 34}"/>
<text class="quiet" x="${labelWidth}" y="${height - 10}">Time: left of the line is better. Requests/s: right of it is better. Brown: goal missed.</text>
</svg>
`;
}

function bar(verdict: Verdict, y: number): string {
  const { what, value, goal, bound, unit } = verdict;
  const length = Math.min(1, value / goal / 2) * barWidth;
  const kind = isReached(verdict) ? 'good' : 'bad';
  const sign = bound === 'at most' ? '≤' : '≥';
  return `<text x="${labelWidth - 10}" y="${y + 14}" text-anchor="end">${escaped(what)}</text>
<rect class="${kind}" x="${labelWidth}" y="${y}" width="${length.toFixed(1)}" height="20" rx="3"/>
<text x="${labelWidth + barWidth + 10}" y="${y + 14}">${figure(value)} ${unit} <tspan class="quiet">(${sign} ${goal})</tspan></text>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
