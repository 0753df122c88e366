import { deflateRawSync, inflateRawSync } from "node:zlib";
import {
  codecName,
  ensureError,
  fingerprintOf,
  formatEncoded,
  isEncoded,
  isKonvergeError,
  KonvergeError,
  parseEncoded,
  sleepMs,
  TerminalError,
  type CodecContext,
  type PayloadCodec,
} from "@konverge/core";
import { PACK_ABOVE_BYTES } from "../store/packed-record.ts";

/** Delays before the further tries of a codec, in ms: if a recorded value were lost, the body of its step would run again. */
const RETRY_AFTER_MS = [50, 500];

const DAMAGED = "the stored value is damaged";
const isTerminal = (error: unknown) => isKonvergeError(error) && error.code === "terminal";

export interface ValueCodec {
  /** Returns the stored form of a value; undefined stays undefined. @throws KonvergeError `codec_failed`, `invalid_result` */
  encode(value: unknown, context: CodecContext): Promise<unknown>;
  /** Returns a value from its stored form, also of one that was stored without a codec. @throws KonvergeError `codec_missing`, `codec_failed` */
  decode(value: unknown, context: CodecContext): Promise<unknown>;
}

export function isCodecError(error: unknown): error is KonvergeError {
  return (
    isKonvergeError(error) && (error.code === "codec_missing" || error.code === "codec_failed")
  );
}

/** True if the stored text is certainly no value that the codec has encoded. */
export function isForged(error: unknown): boolean {
  return isCodecError(error) && isTerminal(error.cause);
}

/** Returns why a run is blocked after the error of a codec. */
export function codecReason({ code, message }: KonvergeError): string {
  return `${code}: ${message}`;
}

export function createValueCodec(codec: PayloadCodec): ValueCodec {
  const name = codecName(codec);
  return {
    async encode(value, context) {
      if (value === undefined) return undefined;
      const json = Buffer.from(JSON.stringify(value));
      const packing = json.length > PACK_ABOVE_BYTES ? "deflate" : "json";
      const bytes = packing === "deflate" ? deflateRawSync(json) : json;
      const encoded = await call(name, "encode", () => codec.encode(bytes, context));
      const data = Buffer.from(encoded).toString("base64");
      const fingerprint =
        context.kind === "input" ? await digest(codec, value, context) : undefined;
      return formatEncoded({ codec: name, packing, data, fingerprint });
    },
    async decode(value, context) {
      if (!isEncoded(value)) return value;
      const encoded = parseEncoded(value);
      if (encoded === undefined) throw damaged(name);
      if (encoded.codec !== name) throw missing(encoded.codec, `has codec "${name}"`);
      const stored = Buffer.from(encoded.data, "base64");
      const bytes = await call(name, "decode", () => codec.decode(stored, context));
      return parse(name, encoded.packing, bytes);
    },
  };
}

/**
 * Returns the stored form of a value, for a caller that sends it to an HTTP API without the codec.
 * @throws KonvergeError `codec_failed`
 */
export async function encodeValue(
  codec: PayloadCodec,
  value: unknown,
  context: CodecContext,
): Promise<string> {
  return (await createValueCodec(codec).encode(value ?? null, context)) as string;
}

/**
 * Returns the value of a stored form. Any other value is returned as it is.
 * @throws KonvergeError `codec_missing`, `codec_failed`
 */
export async function decodeValue(
  codec: PayloadCodec,
  stored: unknown,
  context: CodecContext,
): Promise<unknown> {
  return await createValueCodec(codec).decode(stored, context);
}

/** Rejects encoded values: for a process without a codec that must read them. */
export const NO_CODEC: ValueCodec = {
  encode: async (value) => value,
  async decode(value) {
    if (!isEncoded(value)) return value;
    const encoded = parseEncoded(value);
    if (encoded === undefined) throw damaged("none");
    throw missing(encoded.codec, "has no codec");
  },
};

/**
 * For processes that start and read runs but do not execute them. A value that cannot be decoded stays encoded, and an encoded
 * value is stored as it is.
 */
export function lenient(values: ValueCodec): ValueCodec {
  return {
    encode: async (value, context) =>
      isEncoded(value) ? value : await values.encode(value, context),
    decode: async (value, context) =>
      await values.decode(value, context).catch((error: unknown) => {
        if (isCodecError(error)) return value;
        throw error;
      }),
  };
}

async function digest(
  codec: PayloadCodec,
  value: unknown,
  context: CodecContext,
): Promise<string | undefined> {
  try {
    return await fingerprintOf(codec, value, context);
  } catch (thrown) {
    const error = ensureError(thrown);
    throw failed(codecName(codec), "fingerprint", error.message, error);
  }
}

async function call(
  name: string,
  method: "encode" | "decode",
  run: () => Uint8Array | Promise<Uint8Array>,
): Promise<Uint8Array> {
  for (let tried = 0; ; tried += 1) {
    try {
      const bytes: unknown = await run();
      if (bytes instanceof Uint8Array) return bytes;
      throw new TypeError(
        `it returned ${bytes === null ? "null" : typeof bytes}, not a Uint8Array`,
      );
    } catch (thrown) {
      const error = ensureError(thrown);
      const afterMs = isTerminal(error) ? undefined : RETRY_AFTER_MS[tried];
      if (afterMs === undefined) throw failed(name, method, error.message, error);
      await sleepMs(afterMs);
    }
  }
}

/** Without the text of the error, which may quote the value. */
function parse(name: string, packing: "json" | "deflate", bytes: Uint8Array): unknown {
  try {
    const json = packing === "deflate" ? inflateRawSync(bytes) : Buffer.from(bytes);
    return JSON.parse(json.toString()) as unknown;
  } catch {
    throw failed(name, "decode", "it did not return the bytes that were encoded");
  }
}

function failed(name: string, method: string, why: string, cause?: Error): KonvergeError {
  return new KonvergeError("codec_failed", `${method} of codec "${name}" failed: ${why}`, {
    cause,
  });
}

function damaged(name: string): KonvergeError {
  return failed(name, "decode", DAMAGED, new TerminalError(DAMAGED));
}

function missing(codec: string, has: string): KonvergeError {
  return new KonvergeError(
    "codec_missing",
    `a value was encoded by codec "${codec}", and this process ${has}; configure codec "${codec}", then the run resumes`,
  );
}
