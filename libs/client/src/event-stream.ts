import { defined } from "@konverge/core";
import type { StreamEvent } from "@konverge/contracts";
import { ProblemError, unexpected } from "./problem-error.ts";
import { delayOf, type Call, type RetryOptions, type Sender } from "./send-request.ts";

/** An event of the stream. `id` resumes after it, as `lastEventId`. */
export type ClientEvent = StreamEvent & { readonly id: string };

export interface EventStreamOptions {
  readonly sender: Pick<Sender, "open">;
  readonly call: Call;
  /** Event ID to continue after. Default: now. */
  readonly lastEventId?: string | undefined;
  readonly retry: Required<RetryOptions>;
  /** Time without data, in ms, after which the connection is considered lost. */
  readonly silenceMs: number;
  readonly random: () => number;
  readonly sleep: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
}

/**
 * Follows server-sent events over `fetch`, because `EventSource` cannot send a token. Reconnects after the last yielded
 * event, so no event is missed that the server still has. Ends by `break`, by `signal`, or with a permanent problem.
 */
export async function* streamEvents(
  options: EventStreamOptions,
): AsyncGenerator<ClientEvent, never, undefined> {
  const { sender, call, random, sleep } = options;
  let retry = options.retry;
  let last = options.lastEventId;
  for (let tried = 0; ; tried++) {
    const connection = new AbortController();
    const signal =
      call.signal === undefined
        ? connection.signal
        : AbortSignal.any([call.signal, connection.signal]);
    const headers = last === undefined ? {} : { "last-event-id": last };
    const silence = setTimeout(() => connection.abort(), options.silenceMs);
    try {
      const response = await sender
        .open({ ...call, headers: { accept: "text/event-stream", ...headers }, signal })
        .finally(() => clearTimeout(silence));
      if (response.body === null) throw unexpected(response.status, "is empty");
      for await (const message of readMessages(response.body, signal, options.silenceMs)) {
        if (message.retryMs !== undefined) retry = { ...retry, baseMs: message.retryMs };
        if (message.id !== undefined) last = message.id;
        if (message.data === undefined) continue;
        tried = 0;
        const data: unknown = JSON.parse(message.data);
        yield { id: last ?? "", type: message.type, data } as ClientEvent;
      }
    } catch (error) {
      call.signal?.throwIfAborted();
      // A lost connection is not a problem: the client reconnects.
      const isFinal =
        error instanceof ProblemError && delayOf(error, 0, retry, random) === undefined;
      if (isFinal) throw error;
    } finally {
      connection.abort();
    }
    call.signal?.throwIfAborted();
    await sleep(random() * Math.min(retry.capMs, retry.baseMs * 2 ** tried), call.signal);
  }
}

interface Message {
  readonly type: string;
  readonly data?: string;
  readonly id?: string;
  readonly retryMs?: number;
}

/** Ends with the connection, with `signal`, or after silence; throws if the connection breaks. */
async function* readMessages(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  silenceMs: number,
): AsyncGenerator<Message> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  // Some implementations of fetch do not end a body with the signal of its request.
  const end = () => void reader.cancel().catch(() => undefined);
  signal.addEventListener("abort", end, { once: true });
  let rest = "";
  let lines: string[] = [];
  try {
    for (;;) {
      const silence = setTimeout(end, silenceMs);
      const { done, value } = await reader.read().finally(() => clearTimeout(silence));
      // Lines without a final empty line are not an event.
      if (done) return;
      const parts = (rest + decoder.decode(value, { stream: true })).split(/\r\n|\n|\r(?!$)/);
      rest = parts.pop() ?? "";
      for (const line of parts) {
        if (line !== "") lines.push(line);
        else if (lines.length > 0) {
          yield parseMessage(lines);
          lines = [];
        }
      }
    }
  } finally {
    signal.removeEventListener("abort", end);
    end();
  }
}

/** Parses one block of lines (HTML standard, 9.2.6). */
function parseMessage(lines: readonly string[]): Message {
  const fields = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    const before = name === "data" ? fields.get(name) : undefined;
    fields.set(name, before === undefined ? value : `${before}\n${value}`);
  }
  const [data, id, retry] = [fields.get("data"), fields.get("id"), fields.get("retry")];
  return {
    type: fields.get("event") ?? "message",
    ...defined({ data, id }),
    ...(retry !== undefined && /^\d+$/.test(retry) ? { retryMs: Number(retry) } : {}),
  };
}
