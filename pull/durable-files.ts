import { type FileHandle, open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Writes all bytes at a position of the file; a full disk takes a part of them, and refuses the rest. */
export async function writeAt(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, written, bytes.length - written, position + written);
    written += bytesWritten;
  }
}

/** Gives a file another content as a whole: after a crash it has the old content or the new. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const partial = `${path}.part`;
  const file = await open(partial, 'w');
  try {
    await writeAt(file, Buffer.from(text), 0);
    await file.sync();
  } finally {
    await file.close();
  }
  await renameDurably(partial, path);
}

/** Renames within a folder; the new name is on the disk when it resolves. */
export async function renameDurably(from: string, to: string): Promise<void> {
  await rename(from, to);
  const folder = await open(dirname(to), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
