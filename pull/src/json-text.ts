/** The elements of a JSON array as they stand in the text: JSON.parse would round numbers. The text begins with the array. */
export function* elements(text: string): Generator<string> {
  const marks = /["{}[\]]/g;
  let [depth, start] = [0, 0];
  for (let found = marks.exec(text); found !== null; found = marks.exec(text)) {
    const { index } = found;
    const mark = found[0];
    if (mark === '"') marks.lastIndex = endOfString(text, index);
    else if (mark === '{' || mark === '[') {
      if (++depth === 2) start = index;
    } else {
      if (depth-- === 2) yield text.slice(start, index + 1);
      if (depth === 0) return;
    }
  }
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; at++) {
    at = text.indexOf('"', at);
    let backslashes = 0;
    while (text[at - 1 - backslashes] === '\\') backslashes++;
    if (backslashes % 2 === 0) return at + 1;
  }
}
