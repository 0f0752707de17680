const barWidth = 30;

/** Shows how far the seed is: a bar on a terminal, else a line for each step and each tenth. */
export function progressTo(stream: NodeJS.WriteStream): (done: number, what: string) => void {
  let shown = '';
  return (done, what) => {
    const percent = Math.floor(done * 100);
    const state = stream.isTTY ? `${percent} ${what}` : `${Math.floor(percent / 10)} ${what}`;
    if (state === shown) return;
    shown = state;
    if (!stream.isTTY) {
      stream.write(`Seeding ${String(percent).padStart(3)} % ${what}\n`);
      return;
    }
    const filled = Math.round(done * barWidth);
    const bar = '█'.repeat(filled) + '░'.repeat(barWidth - filled);
    stream.write(`\r\x1b[KSeeding ${bar} ${String(percent).padStart(3)} % ${what}${done >= 1 ? '\n' : ''}`);
  };
}
