import { constants } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";

/** The largest kubeconfig that is read, in bytes: as much as a Secret can hold. */
const MAX_BYTES = 1_048_576;

/**
 * Reads a kubeconfig file. Opening does not block, because a FIFO without a writer would delay all later reads.
 * @throws Error for anything but a regular file of at most 1 MiB
 */
export async function readKubeconfig(path: string): Promise<string> {
  // oxlint-disable-next-line no-bitwise -- flags of open(2)
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = await file.stat();
    if (!stats.isFile()) {
      throw new Error(`${path} is not a regular file; remove it, or rename it`);
    }
    if (stats.size > MAX_BYTES) {
      throw new Error(`${path} has ${stats.size} bytes; a kubeconfig has at most ${MAX_BYTES}`);
    }
    return await readBytes(file, stats.size);
  } finally {
    await file.close();
  }
}

/** Without the bytes that are appended meanwhile; the next read has them. */
async function readBytes(file: FileHandle, size: number): Promise<string> {
  const buffer = Buffer.alloc(size);
  let length = 0;
  while (length < size) {
    const { bytesRead } = await file.read(buffer, length, size - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.toString("utf8", 0, length);
}
