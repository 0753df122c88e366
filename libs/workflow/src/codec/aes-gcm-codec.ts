import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from "node:crypto";
import { KonvergeError, TerminalError, type CodecContext, type PayloadCodec } from "@konverge/core";

/** The options of {@link aesGcmCodec}. */
export interface AesGcmCodecOptions {
  /** Keys of 32 bytes by id, as bytes or in base64. Values are decoded with the key that they were encoded with: keep old keys. */
  readonly keys: Readonly<Record<string, Uint8Array | string | undefined>>;
  /** Id of the key for new values. */
  readonly current: string;
  /** Stored with each value. Default `aes-gcm`. */
  readonly name?: string;
}

const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const MAX_ID_BYTES = 255;
const DIGEST_INFO = "konverge.dev/fingerprint";

/**
 * Returns a codec that encrypts with AES-256-GCM. A stored value names its key, so that keys can be rotated: add the new key to all
 * processes, then make it the current one. A value is bound to its workflow and use, and cannot be moved to another workflow.
 *
 * @throws KonvergeError `invalid_config`
 */
export function aesGcmCodec({ keys, current, name = "aes-gcm" }: AesGcmCodecOptions): PayloadCodec {
  const known = new Map(Object.entries(keys).map(([id, key]) => [id, bytesOf(id, key)]));
  const currentKey = known.get(current);
  if (currentKey === undefined) {
    const ids = [...known.keys()].join(", ") || "none";
    throw invalid(`current: key "${current}" is not one of keys (${ids})`);
  }
  const id = Buffer.from(current);
  const digestKey = Buffer.from(hkdfSync("sha256", currentKey, "", DIGEST_INFO, KEY_BYTES));
  return {
    name,
    encode(bytes, context) {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv("aes-256-gcm", currentKey, iv, { authTagLength: TAG_BYTES });
      cipher.setAAD(additionalData(context));
      const body = [cipher.update(bytes), cipher.final()];
      return Buffer.concat([Buffer.of(id.length), id, iv, cipher.getAuthTag(), ...body]);
    },
    decode(bytes, context) {
      const stored = Buffer.from(bytes);
      const [idLength = 0] = stored;
      let at = 1;
      const take = (length: number) => stored.subarray(at, (at += length));
      const keyId = take(idLength).toString();
      const [iv, tag] = [take(IV_BYTES), take(TAG_BYTES)];
      const key = known.get(keyId);
      if (tag.length < TAG_BYTES) throw new TerminalError("the value is too short");
      if (key === undefined)
        throw new TypeError(
          `key "${keyId.slice(0, 40)}" is missing from keys; add it to the keys of all processes`,
        );
      const decipher = createDecipheriv("aes-256-gcm", key, iv, { authTagLength: TAG_BYTES });
      decipher.setAAD(additionalData(context));
      decipher.setAuthTag(tag);
      const body = decipher.update(stored.subarray(at));
      try {
        return Buffer.concat([body, decipher.final()]);
      } catch (cause) {
        const detail = "the value was not encoded with this key for this workflow and use";
        throw new TerminalError(detail, { cause });
      }
    },
    fingerprint(bytes, scope) {
      const digest = createHmac("sha256", digestKey).update(`${scope}\n`).update(bytes);
      return `${id.toString("base64url")}.${digest.digest("base64url")}`;
    },
  };
}

function bytesOf(id: string, key: Uint8Array | string | undefined): Uint8Array {
  const length = Buffer.byteLength(id);
  if (length === 0 || length > MAX_ID_BYTES) {
    throw invalid(`keys: an id must have 1 to ${MAX_ID_BYTES} bytes (got ${length})`);
  }
  const bytes = typeof key === "string" ? Buffer.from(key, "base64") : (key ?? Buffer.alloc(0));
  if (bytes.length === KEY_BYTES) return bytes;
  const fix = "create one with openssl rand -base64 32";
  throw invalid(`keys.${id}: must be ${KEY_BYTES} bytes (got ${bytes.length}); ${fix}`);
}

/** Without the run: the input of a schedule or of a retried run is stored again for another run. */
function additionalData({ workflow, kind }: CodecContext): Buffer {
  return Buffer.from(JSON.stringify([workflow, kind]));
}

function invalid(detail: string): KonvergeError {
  return new KonvergeError("invalid_config", detail);
}
