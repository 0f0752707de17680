import { leaves, placeOf, type Resource } from '../definition/resource.js';
import { type Item, warning, withFile } from './finding.js';

/** The beginning of a description that marks a guess. */
export const openMark = 'OPEN: ';

/** Warns of the guesses in a definition that the operator has not decided. */
export function checkOpenPoints(resource: Resource): Item[] {
  const { description, name } = resource;
  const described = [
    ['/description', description] as const,
    ...leaves(resource).map(({ field, path }) => [`${placeOf(path)}/description`, field.description] as const),
  ];
  const points = described
    .filter(([, text]) => text.startsWith(openMark))
    .map(([at, text]) => `${at}: ${text.slice(openMark.length).replace(/[.]$/, '')}`);
  return points.length === 0 ? [] : [warning('open_points', `${withFile(points, resource).join('; ')}.`, name)];
}
