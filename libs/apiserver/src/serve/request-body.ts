import type { IncomingMessage } from "node:http";
import { badRequest, tooLargeEntity } from "../errors/status-error.ts";
import { decodeProtobuf } from "../schema/decode-protobuf.ts";
import { ProtobufError } from "../schema/protobuf-reader.ts";
import type { Call } from "../verbs/call.ts";

const LIMIT_BYTES = 3 * 1024 * 1024;
const PROTOBUF = "application/vnd.kubernetes.protobuf";

/**
 * Reads the body of a call. Protobuf, which clients of built-in kinds send, becomes JSON.
 * @throws StatusError 413 above 3 MiB, 400 for invalid protobuf
 */
export async function readBody(
  request: IncomingMessage,
  {
    kind,
    contentType,
  }: { readonly kind: { readonly isCustom: boolean }; readonly contentType: string },
): Promise<Pick<Call, "body" | "contentType">> {
  const bytes = await readBytes(request);
  if (contentType !== PROTOBUF || kind.isCustom) return { body: bytes.toString(), contentType };
  const body = bytes.length === 0 ? "" : JSON.stringify(decode(bytes));
  return { body, contentType: "application/json" };
}

function decode(bytes: Buffer): ReturnType<typeof decodeProtobuf> {
  try {
    return decodeProtobuf(bytes);
  } catch (error) {
    if (!(error instanceof ProtobufError)) throw error;
    throw badRequest(`the object provided is unrecognized: ${error.message}`);
  }
}

async function readBytes(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > LIMIT_BYTES) throw tooLargeEntity(`limit is ${LIMIT_BYTES}`);
    chunks.push(chunk);
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
}
