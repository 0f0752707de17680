import type pg from 'pg';
import { scanned, scribble } from './bitmap.js';
import { jpeg } from './jpeg.js';
import { png } from './png.js';
import { random } from './random.js';

/**
 * plain: base64 of 20–60 KB of a PNG whose pixels are stored uncompressed, so that PostgreSQL compresses it to some 3 KB;
 * scan: as large, but it does not compress;
 * initials and photo: PNG and JPEG of under 1 KB, for the places where signatures hide.
 */
export type SignatureKind = 'plain' | 'scan' | 'initials' | 'photo';

const poolSizes: Record<SignatureKind, number> = { plain: 40, scan: 8, initials: 16, photo: 4 };

/** Fills the session's table seed_signatures (kind, n from 0, image as base64). */
export async function loadSignatures(client: pg.Client): Promise<void> {
  const pool = (Object.keys(poolSizes) as SignatureKind[]).flatMap((kind) =>
    Array.from({ length: poolSizes[kind] }, (_, n) => ({ kind, n, image: signature(kind, n).toString('base64') })),
  );
  await client.query(
    'insert into seed_signatures (kind, n, image) select * from unnest($1::text[], $2::int[], $3::text[])',
    [pool.map((each) => each.kind), pool.map((each) => each.n), pool.map((each) => each.image)],
  );
}

function signature(kind: SignatureKind, n: number): Buffer {
  const draw = random(`handtekening/${kind}/${n}`);
  switch (kind) {
    case 'plain':
      return png(scribble(draw, 190 + draw.below(100), 110 + draw.below(40), 14), 0);
    case 'scan': {
      const paper = scribble(draw, 300 + draw.below(80), 130 + draw.below(40), 7);
      return png(scanned(draw, paper), 6);
    }
    case 'initials':
      return png(scribble(draw, 48, 24, 3), 9);
    case 'photo':
      return jpeg(scribble(draw, 96, 48, 4));
  }
}
