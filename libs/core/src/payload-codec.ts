/** The use of an encoded value. */
export type CodecValueKind =
  /** Input of a run, a child or a schedule. */
  | "input"
  /** Recorded value of a step, a signal, an update or a child. */
  | "record"
  | "result"
  /** Message or stack of an error, a progress or a refusal. */
  | "message"
  /** Payload of a signal or update. */
  | "payload"
  /** Published values. */
  | "published"
  /** Message and fields of a log line. */
  | "log"
  /** Response of the HTTP API, stored for a repeated request; its context has no workflow. */
  | "response";

/** The origin of an encoded value. */
export interface CodecContext {
  /** Name of the workflow. */
  readonly workflow: string;
  /**
   * Id of the run; missing for the input of a schedule. The input of a scheduled or retried run may have been encoded for the
   * schedule or for the earlier run: a key must not depend on this id alone.
   */
  readonly run?: string;
  /** Use of the value. */
  readonly kind: CodecValueKind;
}

/**
 * Encodes the values of workflow runs before they are stored, for example to encrypt them. Every process that executes the runs needs the
 * same codec. Errors are retried, then block the run until the codec works; their messages are stored, so they must not contain the value.
 */
export interface PayloadCodec {
  /**
   * Stored with each value: lower-case letters, digits, dots and dashes, at most 63. A codec that reads values of its earlier versions
   * keeps its name. Default `codec`.
   */
  readonly name?: string;
  /** Returns the bytes to store. They may differ each time. */
  encode(bytes: Uint8Array, context: CodecContext): Uint8Array | Promise<Uint8Array>;
  /**
   * Returns the bytes that `encode` received. Throw a `TerminalError` only if the codec has certainly not encoded these bytes: a
   * signal with them is dropped, and a run that has them in its records is blocked without further tries.
   */
  decode(bytes: Uint8Array, context: CodecContext): Uint8Array | Promise<Uint8Array>;
  /**
   * Returns a keyed digest of a value as `<key>.<digest>`, of letters, digits, dashes and underscores, at most 400 characters. It is
   * stored with inputs, so that a process without the codec rejects a repeated start with another input. Equal bytes of one scope must
   * have equal digests. A digest without a secret key would disclose values that can be guessed. Default: inputs are not compared.
   *
   * @param scope workflow, use and run of the value, so that digests disclose equal values only within one run
   */
  fingerprint?(bytes: Uint8Array, scope: string): string | Promise<string>;
}

/** A stored value that a codec has encoded. */
export interface EncodedValue {
  /** Name of the codec. */
  readonly codec: string;
  /** What the codec has encoded: JSON, or JSON compressed by raw DEFLATE. */
  readonly packing: "json" | "deflate";
  /** In base64. */
  readonly data: string;
  /** Of the value, if it was stored with one. */
  readonly fingerprint?: string | undefined;
}

const DEFAULT_NAME = "codec";
const NAME = /^[a-z0-9]([-.a-z0-9]{0,61}[a-z0-9])?$/;
const MARK = "konverge.dev/codec:1:";
const FORM =
  /^konverge\.dev\/codec:1:([-.a-z0-9]+):(json|deflate):([+/=A-Za-z0-9]*)(?::([-_.A-Za-z0-9]+))?$/;
const FINGERPRINT = /^[-_A-Za-z0-9]+\.[-_A-Za-z0-9]+$/;
const MAX_FINGERPRINT = 400;

export function codecName({ name = DEFAULT_NAME }: PayloadCodec): string {
  return name;
}

/** Returns what is wrong with a codec; undefined if nothing is. */
export function findCodecIssue(codec: unknown): string | undefined {
  if (typeof codec !== "object" || codec === null)
    return "must be an object with encode and decode";
  const { name = DEFAULT_NAME, encode, decode } = codec as Record<string, unknown>;
  if (typeof encode !== "function") return "encode must be a function (bytes, context) => bytes";
  if (typeof decode !== "function") return "decode must be a function (bytes, context) => bytes";
  if (typeof name === "string" && NAME.test(name)) return undefined;
  return `name must be 1 to 63 lower-case letters, digits, dots and dashes (got ${JSON.stringify(name)})`;
}

/** Returns true for the stored form of an encoded value: a text with a mark that no other value may begin with. */
export function isEncoded(value: unknown): value is string {
  return typeof value === "string" && value.startsWith(MARK);
}

export function formatEncoded({ codec, packing, data, fingerprint }: EncodedValue): string {
  const text = `${MARK}${codec}:${packing}:${data}`;
  return fingerprint === undefined ? text : `${text}:${fingerprint}`;
}

/** Returns undefined if the text is damaged. */
export function parseEncoded(text: string): EncodedValue | undefined {
  const [, codec, packing, data, fingerprint] = FORM.exec(text) ?? [];
  if (codec === undefined || packing === undefined || data === undefined) return undefined;
  return { codec, packing: packing === "json" ? "json" : "deflate", data, fingerprint };
}

/**
 * Returns the fingerprint of a value, which does not depend on the order of its fields; undefined if the codec makes none.
 * @param run the id or Idempotency-Key of the run
 * @throws TypeError for text of another form
 */
export async function fingerprintOf(
  codec: PayloadCodec,
  value: unknown,
  { workflow, kind, run }: CodecContext,
): Promise<string | undefined> {
  if (codec.fingerprint === undefined || run === undefined) return undefined;
  const bytes = new TextEncoder().encode(JSON.stringify(value, sortFields));
  const text = await codec.fingerprint(bytes, JSON.stringify([workflow, kind, run]));
  if (FINGERPRINT.test(text) && text.length <= MAX_FINGERPRINT) return text;
  throw new TypeError("fingerprint did not return <key>.<digest>");
}

/** Returns whether two encoded values are equal; undefined if their fingerprints are missing or have different keys. */
export function sameEncoded(one: string, other: string): boolean | undefined {
  const [first, second] = [parseEncoded(one)?.fingerprint, parseEncoded(other)?.fingerprint];
  if (first === undefined || second === undefined) return undefined;
  const isComparable = first.split(".")[0] === second.split(".")[0];
  return isComparable ? first === second : undefined;
}

/** A replacer for `JSON.stringify`. */
function sortFields(_field: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

const ANY_FORM =
  /konverge\.dev\/codec:1:[-.a-z0-9]+:(?:json|deflate):[+/=A-Za-z0-9]*(?::[-_A-Za-z0-9]+\.[-_A-Za-z0-9]+)?/g;

/** A text by which repetitions are found, although they may encode the same values in another way. */
export interface ComparableText {
  /** Each encoded value is replaced by its fingerprint, or by its description if it has none. */
  readonly exact: string;
  /** Each encoded value is replaced by its description. Compared if the keys differ. */
  readonly sizes: string;
  /** The keys of the fingerprints; empty for a value without one. */
  readonly keys: readonly string[];
}

export function comparableText(text: string): ComparableText {
  if (!text.includes(MARK)) return { exact: text, sizes: text, keys: [] };
  const keys: string[] = [];
  const exact = text.replaceAll(ANY_FORM, (each) => {
    const { fingerprint = "" } = parseEncoded(each) ?? {};
    keys.push(fingerprint.slice(0, fingerprint.indexOf(".") + 1));
    return fingerprint || describeEncoded(each);
  });
  return { exact, sizes: showEncoded(text), keys };
}

/** Returns a text for users in which each encoded value is replaced by its description. */
export function showEncoded(text: string): string {
  return text.includes(MARK) ? text.replaceAll(ANY_FORM, describeEncoded) : text;
}

/** Returns an encoded value as users see it without its codec. */
export function describeEncoded(text: string): string {
  const { codec, data = "" } = parseEncoded(text) ?? {};
  if (codec === undefined) return "encoded, but damaged";
  const padding = data.endsWith("==") ? 2 : data.endsWith("=") ? 1 : 0;
  return `encoded by codec ${codec}; ${(data.length / 4) * 3 - padding} bytes`;
}
