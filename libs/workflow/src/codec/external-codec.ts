import { createHash } from "node:crypto";
import { defined, type CodecContext, type PayloadCodec } from "@konverge/core";

/** A store of objects by name, for example a bucket. */
export interface ExternalStore {
  /** Stores an object. The same name always has the same bytes. */
  put(name: string, bytes: Uint8Array): Promise<void>;
  /** Returns undefined if the object is missing. */
  get(name: string): Promise<Uint8Array | undefined>;
}

/** The options of {@link externalCodec}. */
export interface ExternalCodecOptions {
  /** The store of large values. */
  readonly store: ExternalStore;
  /** Larger values are stored outside. Default 16 KiB; too low costs a call per value, too high fills Redis. */
  readonly aboveBytes?: number;
  /** Encodes values before they are stored in either place. Default: none. */
  readonly codec?: PayloadCodec;
  /** Stored with each value. Default `external`. */
  readonly name?: string;
}

const DEFAULT_ABOVE_BYTES = 16_384;
const INSIDE = 0;
const OUTSIDE = 1;

/**
 * Returns a codec that keeps large values in another store, and a reference in Redis: `<workflow>/<SHA-256 of the bytes>`. Konverge never
 * deletes an object. Let the store expire objects that are older than the longest run plus the retention.
 */
export function externalCodec({
  store,
  aboveBytes = DEFAULT_ABOVE_BYTES,
  codec,
  name = "external",
}: ExternalCodecOptions): PayloadCodec {
  const fingerprint =
    codec === undefined
      ? // Anyone who reads Redis reads small values, and the digests of large ones in their names.
        (bytes: Uint8Array) => `sha256.${digestOf(bytes)}`
      : codec.fingerprint?.bind(codec);
  return {
    name,
    ...defined({ fingerprint }),
    async encode(bytes, context) {
      const encoded = codec === undefined ? bytes : await codec.encode(bytes, context);
      if (encoded.length <= aboveBytes) return Buffer.concat([Buffer.of(INSIDE), encoded]);
      const object = nameOf(encoded, context);
      await store.put(object, encoded);
      return Buffer.concat([Buffer.of(OUTSIDE), Buffer.from(object)]);
    },
    async decode(bytes, context) {
      const [place] = bytes;
      const rest = bytes.subarray(1);
      const encoded = place === OUTSIDE ? await read(store, Buffer.from(rest).toString()) : rest;
      return codec === undefined ? encoded : await codec.decode(encoded, context);
    },
  };
}

async function read(store: ExternalStore, object: string): Promise<Uint8Array> {
  const bytes = await store.get(object);
  if (bytes === undefined) throw new Error(`object "${object}" is missing from the external store`);
  if (object.endsWith(`/${digestOf(bytes)}`)) return bytes;
  throw new Error(`object "${object}" of the external store has been changed`);
}

function nameOf(bytes: Uint8Array, { workflow }: CodecContext): string {
  return `${encodeURIComponent(workflow)}/${digestOf(bytes)}`;
}

function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
