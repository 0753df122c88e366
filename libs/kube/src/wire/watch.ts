import {
  isJsonObject,
  KonvergeError,
  parseJson,
  type ApiObject,
  type JsonObject,
  type ResourceType,
} from "@konverge/core";
import type { WatchEvent } from "../contract/watch-event.ts";
import type { ErrorRef } from "../errors/kube-api-error.ts";
import { fromStatus } from "../errors/parse-api-error.ts";

/**
 * A stream without data for this long is broken. A kube-apiserver sends a bookmark to a quiet watch every 60 s
 * (`defaultBookmarkFrequency`), up to a second later; half a period covers a busy server. A watch of a server without
 * bookmarks is resumed that often, for the price of a call.
 */
export const SILENT_MS = 90_000;
/** An event holds one object, which the server keeps below 3 MiB; JSON text escapes at most sixfold. */
const MAX_LINE_CHARS = 32 * 1024 * 1024;

const KINDS: Readonly<Record<string, "added" | "changed" | "deleted">> = {
  ADDED: "added",
  MODIFIED: "changed",
  DELETED: "deleted",
};

export interface WatchSource {
  readonly type: ResourceType;
  readonly ref: ErrorRef;
  readonly sensitive: boolean;
}

/**
 * Parses the events of a watch. Ends when the stream ends.
 * @throws KubeApiError for an ERROR event, which the server sends inside a stream that began with 200
 * @throws KonvergeError `kube_unreachable` for anything that is not an event
 */
export async function* readWatch<T extends ApiObject>(
  chunks: AsyncIterable<Uint8Array>,
  source: WatchSource,
): AsyncGenerator<WatchEvent<T>> {
  for await (const line of readLines(chunks)) {
    yield toEvent<T>(line, source);
  }
}

/** Splits a stream into lines; an unfinished last line is a broken stream, not an event. */
async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    const text = decoder.decode(chunk, { stream: true });
    let start = 0;
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", start)) {
      const line = rest + text.slice(start, end);
      rest = "";
      start = end + 1;
      if (line.trim() !== "") yield line;
    }
    rest += text.slice(start);
    if (rest.length > MAX_LINE_CHARS) {
      throw new KonvergeError(
        "kube_unreachable",
        `watch sent ${rest.length} characters without a newline`,
      );
    }
  }
}

function toEvent<T extends ApiObject>(
  line: string,
  { type, ref, sensitive }: WatchSource,
): WatchEvent<T> {
  const event = parseEvent(line);
  const object = isJsonObject(event?.["object"]) ? event["object"] : undefined;
  const eventType = event?.["type"];
  if (typeof eventType !== "string" || object === undefined) {
    throw new KonvergeError(
      "kube_unreachable",
      `watch ${ref.resource}: a line is not a watch event`,
    );
  }
  if (eventType === "ERROR") throw fromStatus(object, { verb: "watch", ref, sensitive });
  const metadata = isJsonObject(object["metadata"]) ? object["metadata"] : {};
  if (eventType === "BOOKMARK") {
    const version = metadata["resourceVersion"];
    return { kind: "bookmark", resourceVersion: typeof version === "string" ? version : "" };
  }
  const kind = KINDS[eventType];
  if (kind === undefined || typeof metadata["name"] !== "string") {
    throw new KonvergeError(
      "kube_unreachable",
      `watch ${ref.resource}: unknown event "${eventType}" for ${type.kind}`,
    );
  }
  return { kind, object: object as unknown as T };
}

function parseEvent(line: string): JsonObject | undefined {
  try {
    const value = parseJson(line);
    return isJsonObject(value) ? value : undefined;
  } catch (error) {
    // The text is not quoted: it may be a part of a Secret.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
