import type { OpenApiDocument } from '../../src/serve/openapi/document.js';

export function samplesOf({ paths }: OpenApiDocument, language: string): Map<string, string> {
  const operations = Object.values(paths).flatMap((item) => Object.values(item));
  return new Map(
    operations.flatMap(({ operationId, 'x-codeSamples': samples }) =>
      samples.filter(({ lang }) => lang === language).map(({ source }) => [operationId, source] as const),
    ),
  );
}
