import type { IncomingMessage } from "node:http";
import { tooLargeEntity } from "../errors/status-error.ts";

const LIMIT_BYTES = 3 * 1024 * 1024;

/** Reads a body as text. @throws StatusError 413 above 3 MiB */
export async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > LIMIT_BYTES) throw tooLargeEntity(`limit is ${LIMIT_BYTES}`);
    chunks.push(chunk);
  }
  return (
    chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)
  ).toString();
}
