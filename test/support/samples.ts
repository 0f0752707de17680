/** The text of each sample of a language on the documentation page, by the id of its operation. */
export function samplesOf(page: string, language: string): Map<string, string> {
  const articles = [...page.matchAll(/<article id="(\w+)"[\s\S]*?<\/article>/g)];
  const pattern = new RegExp(`data-language="${language}"><code>([\\s\\S]*?)</code>`);
  return new Map(
    articles.flatMap(([article, id]) => {
      const [, sample] = pattern.exec(article) ?? [];
      return sample === undefined ? [] : [[id as string, unescaped(sample)] as const];
    }),
  );
}

function unescaped(markup: string): string {
  return markup.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));
}
