import {
  fingerprintOf,
  formatEncoded,
  isEncoded,
  parseEncoded,
  type CodecContext,
  type CodecValueKind,
  type EncodedValue,
  type PayloadCodec,
} from "@konverge/core";
import { ProblemError } from "./problem-error.ts";

type Kinds = Readonly<Record<string, CodecValueKind>>;

/** The kinds of the values in a response, by field. */
const KINDS: Kinds = {
  answer: "record",
  blockedReason: "message",
  frames: "message",
  input: "input",
  message: "message",
  parsedInput: "input",
  progress: "record",
  published: "published",
  result: "result",
  value: "record",
};
const LOG_KINDS: Kinds = { message: "log", encoded: "log" };
/** Values of users, which are encoded as a whole or not at all. */
const WHOLE = new Set(["answer", "input", "parsedInput", "result", "value"]);

/** Encodes the values that a client sends to runs, and decodes those in responses. */
export class RunCodec {
  readonly #codec: PayloadCodec;
  readonly #name: string;

  constructor(codec: PayloadCodec) {
    this.#codec = codec;
    this.#name = codec.name ?? "codec";
  }

  /**
   * @param scope the id of the run or the Idempotency-Key: the API then compares the value with that of a repeated request
   * @throws ProblemError `codec_failed`
   */
  async encode(value: unknown, context: CodecContext, scope?: string): Promise<unknown> {
    if (value === undefined || isEncoded(value)) return value;
    const bytes = new TextEncoder().encode(JSON.stringify(value));
    try {
      const encoded = await this.#codec.encode(bytes, context);
      const compared = scope === undefined ? context : { ...context, run: scope };
      const fingerprint = await fingerprintOf(this.#codec, value, compared);
      const data = base64Of(encoded);
      return formatEncoded({ codec: this.#name, packing: "json", data, fingerprint });
    } catch (cause) {
      const detail = `encode of codec "${this.#name}" failed; the value was not sent`;
      const title = "A codec failed";
      throw new ProblemError({ code: "codec_failed", status: 0, title, detail }, cause);
    }
  }

  /** Returns a copy with the values of a run decoded. A value that cannot be decoded stays encoded. */
  async decode<T>(response: T, run: Pick<CodecContext, "workflow" | "run">): Promise<T> {
    return (await this.#each(response, { run, kinds: KINDS })) as T;
  }

  /** Like `decode`, for log lines. */
  async decodeLog<T>(response: T, run: Pick<CodecContext, "workflow" | "run">): Promise<T> {
    return (await this.#each(response, { run, kinds: LOG_KINDS })) as T;
  }

  async #each(value: unknown, how: Search): Promise<unknown> {
    if (isEncoded(value)) return how.kind === undefined ? value : await this.#one(value, how);
    if (Array.isArray(value)) {
      const decoded = await Promise.all(value.map((each) => this.#each(each, how)));
      // Frames are encoded as one text.
      return how.field === "frames" ? decoded.flatMap((text) => String(text).split("\n")) : decoded;
    }
    if (typeof value !== "object" || value === null) return value;
    const { run, kinds, kind } = how;
    const entries = Object.entries(value).map(async ([field, child]) => {
      if (WHOLE.has(field) && !isEncoded(child)) return [field, child];
      // The fields of published values are names.
      const childKind = kind === "published" ? kind : kinds[field];
      return [field, await this.#each(child, { run, kinds, kind: childKind, field })];
    });
    return withFields(Object.fromEntries(await Promise.all(entries)) as Record<string, unknown>);
  }

  async #one(text: string, { run, kind = "record" }: Search): Promise<unknown> {
    const encoded = parseEncoded(text);
    if (encoded?.codec !== this.#name) return text;
    try {
      const bytes = await this.#codec.decode(bytesOf(encoded), { ...run, kind });
      return JSON.parse(await textOf(encoded, bytes)) as unknown;
    } catch {
      return text;
    }
  }
}

interface Search {
  readonly run: Pick<CodecContext, "workflow" | "run">;
  readonly kinds: Kinds;
  readonly kind?: CodecValueKind | undefined;
  readonly field?: string;
}

/** Returns the workflow and the bare id of a run, from its id in the API. */
export function runOf(id: string): Pick<CodecContext, "workflow" | "run"> {
  const [workflow = "", , ...rest] = id.split("/");
  return { workflow, run: rest.join("/") };
}

/** Returns a log line whose encoded fields have been decoded in place of the field that had them. */
function withFields(line: Record<string, unknown>): Record<string, unknown> {
  const { fields } = line;
  if (typeof fields !== "object" || fields === null || !("encoded" in fields)) return line;
  return isEncoded(fields.encoded) ? line : { ...line, fields: fields.encoded };
}

function base64Of(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

function bytesOf({ data }: EncodedValue): Uint8Array {
  return Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
}

/** Workers compress large values before they encode them. */
async function textOf({ packing }: EncodedValue, bytes: Uint8Array): Promise<string> {
  const body = new Response(Uint8Array.from(bytes));
  if (packing === "json" || body.body === null) return await body.text();
  const inflated = body.body.pipeThrough(new DecompressionStream("deflate-raw"));
  return await new Response(inflated).text();
}
