import { needsLogin } from "../state/session.ts";
import { pause } from "./pause.ts";

/** A server-sent event. */
export interface StreamFrame {
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

/** The state of the connection. */
export type StreamState = "connecting" | "open" | "broken";

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 15_000;

/**
 * Follows a stream until `signal` aborts and reconnects when it breaks. Each connection continues after the last frame.
 * Uses fetch, because EventSource does not expose the response status.
 */
export async function followEvents(
  url: URL,
  {
    onFrame,
    onState,
    signal,
  }: {
    readonly onFrame: (frame: StreamFrame) => void;
    readonly onState: (state: StreamState) => void;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  let last = "";
  let waitMs = FIRST_WAIT_MS;
  while (!signal.aborted) {
    try {
      onState("connecting");
      const headers = last === "" ? {} : { "last-event-id": last };
      const response = await fetch(url, { headers, signal });
      if (response.status === 401) needsLogin.value = true;
      if (!response.ok || response.body === null) {
        // The server may have dropped that position; the next connection starts without one.
        if (response.status < 500) last = "";
        throw new Error(`status ${response.status}`);
      }
      onState("open");
      waitMs = FIRST_WAIT_MS;
      for await (const frame of framesOf(response.body)) {
        if (frame.id !== "") last = frame.id;
        if (frame.data !== "") onFrame(frame);
      }
    } catch {
      // The loop reconnects.
      if (signal.aborted) return;
      onState("broken");
    }
    await pause(waitMs * (0.5 + Math.random() / 2), signal);
    waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2);
  }
}

/** Parses frames (HTML Living Standard, "Server-sent events"). Comments keep the connection alive. */
async function* framesOf(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<StreamFrame> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) yield frameOf(block);
  }
}

function frameOf(block: string): StreamFrame {
  const fields = { id: "", event: "message", data: "" };
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") fields.data += fields.data === "" ? value : `\n${value}`;
    else if (name === "id" || name === "event") fields[name] = value;
  }
  return fields;
}
