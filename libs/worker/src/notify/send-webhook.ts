import { defined } from "@konverge/core";
import type { NotificationRecord, NotificationTry } from "@konverge/queue";
import type { ResolvedWebhook, Webhook } from "./webhook.ts";

/** The result of one try. */
export interface SendResult extends Omit<NotificationTry, "atMs"> {
  /** `again`: the message may be accepted later. */
  readonly end: "sent" | "failed" | "again";
  /** The delay that the receiver asked for. */
  readonly retryAfterMs?: number;
}

const MAX_ANSWER_BYTES = 4_096;
const MAX_ANSWER_SHOWN = 200;
/** Parts of a URL that are shorter are not secret, and would be removed from words of the answer. */
const MIN_SECRET = 6;
/** Parts of a secret with this length are removed too. */
const MIN_PART = 8;
/** The same body would be rejected again. The other errors of the caller depend on the address, the headers or the time. */
const REJECTED: ReadonlySet<number> = new Set([400, 406, 411, 413, 414, 415, 422]);

/** Sends a message once. Follows no redirect. Never throws; no text of the result contains a secret of the receiver. */
export async function sendWebhook(
  webhook: Webhook,
  { id }: Pick<NotificationRecord, "id">,
  {
    body,
    env,
    signal,
  }: {
    readonly body: string;
    readonly env: NodeJS.ProcessEnv;
    /** Ends the try. */
    readonly signal: AbortSignal;
  },
): Promise<SendResult> {
  let target: ResolvedWebhook;
  try {
    target = await webhook.resolve(env);
  } catch (error) {
    return { end: "again", error: error instanceof Error ? error.message : "address not readable" };
  }
  const timeout = AbortSignal.timeout(webhook.timeoutMs);
  try {
    const response = await fetch(target.url, {
      method: "POST",
      headers: { ...target.headers, "content-type": "application/json", "idempotency-key": id },
      body,
      redirect: "manual",
      signal: AbortSignal.any([timeout, signal]),
    });
    const { status } = response;
    const answer = withoutSecrets(await readStart(response), target).slice(0, MAX_ANSWER_SHOWN);
    return { status, ...(answer === "" ? {} : { answer }), ...verdictOf(response) };
  } catch (error) {
    return { end: "again", error: timeout.aborted ? "timeout" : codeOf(error) };
  }
}

function verdictOf({
  status,
  headers,
}: Response): Pick<SendResult, "end" | "error" | "retryAfterMs"> {
  if (status >= 200 && status < 300) return { end: "sent" };
  if (status >= 300 && status < 400) return { end: "again", error: "redirect not followed" };
  const retryAfterMs = readRetryAfter(headers.get("retry-after"));
  return {
    end: REJECTED.has(status) ? "failed" : "again",
    error: `HTTP ${status}`,
    ...defined({ retryAfterMs }),
  };
}

/** Returns a delay given in seconds or as a date; undefined for another text. */
function readRetryAfter(text: string | null): number | undefined {
  if (text === null) return undefined;
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

/** Reads the first bytes of an answer, and ends the connection if there are more. */
async function readStart(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return "";
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    while (bytes < MAX_ANSWER_BYTES) {
      const { done, value } = await reader.read();
      if (done) break;
      chunks.push(value);
      bytes += value.length;
    }
    await reader.cancel();
  } catch {
    // The status decides whether the message was accepted.
  }
  return Buffer.concat(chunks).toString("utf8", 0, MAX_ANSWER_BYTES);
}

/**
 * Removes the secrets from a text that the receiver has sent, including encoded forms and parts of at least 8
 * characters. The receiver or the limit of the read may have truncated them.
 */
function withoutSecrets(text: string, { url, headers }: ResolvedWebhook): string {
  const { pathname, search, searchParams } = new URL(url);
  const ofUrl = [url, pathname, search, ...pathname.split("/"), ...searchParams.values()];
  const ofHeaders = Object.values(headers).flatMap((value) => [value, ...value.split(/\s+/)]);
  const whole = new Set([...ofUrl, ...ofHeaders].filter(({ length }) => length >= MIN_SECRET));
  const forms = [...whole].flatMap(formsOf).map(lowerCase);
  const parts = new Set<string>();
  for (const form of forms) {
    const size = Math.min(MIN_PART, form.length);
    for (let at = 0; at + size <= form.length; at += 1) parts.add(form.slice(at, at + size));
  }
  const sizes = [...new Set([...parts].map(({ length }) => length))];
  const lower = lowerCase(text);
  let rest = "";
  let endsAt = 0;
  let isRemoving = false;
  for (let at = 0; at < text.length; at += 1) {
    for (const size of sizes) {
      if (parts.has(lower.slice(at, at + size))) endsAt = Math.max(endsAt, at + size);
    }
    if (at >= endsAt) rest += text[at];
    else if (!isRemoving) rest += "[removed]";
    isRemoving = at < endsAt;
  }
  return rest;
}

/**
 * Converts only ASCII letters. The lower case of other characters may have another length, which would move positions.
 */
function lowerCase(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** The forms in which an answer may contain a secret. */
function formsOf(secret: string): string[] {
  const plain = [secret, decoded(secret)];
  const encoded = plain.flatMap((each) => [
    encodeURIComponent(each),
    JSON.stringify(each).slice(1, -1),
    JSON.stringify(each).slice(1, -1).replaceAll("/", "\\/"),
    each.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
    Buffer.from(each).toString("hex"),
    // The text before the secret determines its alignment in base64. The outer characters depend on the text around it.
    ...["", " ", "  "].flatMap((before) => {
      const text = Buffer.from(`${before}${each}`).toString("base64").replaceAll("=", "");
      const inner = text.slice(before === "" ? 0 : 4, -2);
      return [inner, inner.replaceAll("+", "-").replaceAll("/", "_")];
    }),
  ]);
  return [...plain, ...encoded].filter(({ length }) => length >= MIN_SECRET);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Texts of network errors can contain the address. Codes do not. */
function codeOf(error: unknown): string {
  const { cause, name } = error as {
    readonly cause?: { readonly code?: unknown };
    readonly name?: string;
  };
  const code = cause?.code;
  return typeof code === "string" ? code : (name ?? "request failed");
}
