import { formatApiVersion, type JsonObject } from "@konverge/core";
import { expired, StatusError } from "../errors/status-error.ts";
import type { ResourceKind } from "../kinds/resource-kind.ts";
import { StoredObject, type Change } from "../storage/stored-object.ts";
import { viewOf, type Call } from "./call.ts";
import { parseVersion, readListOptions } from "./list-options.ts";
import { prefixOf, untilVersion } from "./list.ts";
import { readSelector, type Selector } from "./selectors.ts";

/** The output of a watch. */
export interface WatchSink {
  /** Sends one event. Returns false if the reader is too slow and must be disconnected. */
  readonly send: (line: string) => boolean;
  readonly end: () => void;
}

/** A running watch. */
export interface RunningWatch {
  readonly kind: ResourceKind;
  /** Ends the stream, like a timeout. */
  readonly cut: () => void;
  /** Sends a bookmark, if the client allowed them. */
  readonly bookmark: () => void;
}

/** A validated watch request: errors up to here are an HTTP status, later ones an ERROR event. */
export interface WatchRequest {
  readonly call: Call;
  readonly selector: Selector | undefined;
  /** Undefined: the current state, then the changes. */
  readonly since: number | undefined;
  readonly bookmarks: boolean;
  /** True: a bookmark marks the end of the initial state. */
  readonly marksInitialEnd: boolean;
  readonly timeoutMs: number;
}

/** Minimum lifetime of a watch by default, in ms; the maximum is twice as long. */
const MIN_TIMEOUT_MS = 1_800_000;
/** A last bookmark is sent this long before the end, in ms, so that the client can resume from it. */
const LAST_BOOKMARK_MS = 2_000;

export async function readWatchRequest(call: Call): Promise<WatchRequest> {
  const options = readListOptions(call.query);
  const selector = readSelector(call.kind, call.query);
  const version = parseVersion(options.resourceVersion, true);
  const wantsInitial = options.sendInitialEvents === true;
  // A list-watch must not start from a state older than the client's.
  if (wantsInitial) await untilVersion(call, version ?? 0);
  const isFromNow = options.sendInitialEvents === false && !version;
  const isFromStart = !isFromNow && (wantsInitial || version === undefined || version === 0);
  return {
    call,
    selector,
    since: isFromStart ? undefined : isFromNow ? call.state.store.version : version,
    bookmarks: options.bookmarks,
    marksInitialEnd: wantsInitial && options.bookmarks,
    timeoutMs: options.timeoutMs || MIN_TIMEOUT_MS * (1 + Math.random()),
  };
}

/** Starts a watch: history or initial state first, then every change as it is written. */
export function startWatch(request: WatchRequest, sink: WatchSink): RunningWatch {
  const { call, selector, since, bookmarks, timeoutMs } = request;
  const { kind, state, table } = call;
  const prefix = prefixOf(call);
  let sentVersion = since ?? 0;
  let isOpen = true;

  const finish = () => {
    if (!isOpen) return;
    isOpen = false;
    unsubscribe();
    clearTimeout(deadline);
    clearTimeout(lastBookmark);
    clearInterval(bookmarkTimer);
    sink.end();
  };
  const send = (line: string) => {
    if (isOpen && !sink.send(line)) finish();
  };
  const sendChange = (change: Change) => {
    if (change.version <= sentVersion) return;
    sentVersion = change.version;
    if (!change.current.key.startsWith(prefix)) return;
    const line = lineOf(kind, change, selector);
    if (line !== undefined) send(line);
  };
  const bookmark = () => {
    // The newest version of the store: everything up to it has been sent.
    if (bookmarks) send(bookmarkLine(kind, state.store.version));
  };
  const unsubscribe = table.subscribe(sendChange);
  const deadline = setTimeout(finish, Math.min(timeoutMs, 2 ** 31 - 1));
  const bookmarkTimer = setInterval(bookmark, state.bookmarkEveryMs);
  const lastBookmark = setTimeout(bookmark, Math.max(0, timeoutMs - LAST_BOOKMARK_MS));
  for (const timer of [deadline, bookmarkTimer, lastBookmark]) timer.unref();

  if (since === undefined) {
    for (const stored of table.list(prefix)) {
      const view = viewOf(kind, stored);
      if (selector === undefined || selector(view.object)) send(eventLine("ADDED", view));
    }
    sentVersion = state.store.version;
    if (request.marksInitialEnd) send(bookmarkLine(kind, sentVersion, true));
  } else {
    const missed = table.history.since(since);
    if (missed === undefined) {
      const { floor } = table.history;
      send(errorLine(expired(`too old resource version: ${since} (${floor})`)));
      finish();
    } else for (const change of missed) sendChange(change);
  }
  return { kind, cut: finish, bookmark };
}

const lines: WeakMap<StoredObject, Map<string, string>> = new WeakMap();

/** One event line, created once for all watches. */
function eventLine(type: Change["type"], view: StoredObject): string {
  let known = lines.get(view);
  if (known === undefined) {
    known = new Map();
    lines.set(view, known);
  }
  let line = known.get(type);
  if (line === undefined) {
    line = `{"type":"${type}","object":${view.text}}\n`;
    known.set(type, line);
  }
  return line;
}

/** The event that a watch with this selector gets for a change; undefined for none. */
function lineOf(
  kind: ResourceKind,
  { type, current, previous }: Change,
  selector: Selector | undefined,
): string | undefined {
  const view = viewOf(kind, current);
  if (selector === undefined) return eventLine(type, view);
  const before = previous === undefined ? undefined : viewOf(kind, previous);
  const matched = before !== undefined && selector(before.object);
  if (type === "DELETED")
    return matched || selector(view.object) ? eventLine(type, view) : undefined;
  if (selector(view.object)) return eventLine(matched ? "MODIFIED" : "ADDED", view);
  if (!matched || before === undefined) return undefined;
  // It no longer matches: the previous content, with the version of the event.
  const metadata = before.object["metadata"] as JsonObject;
  const object = {
    ...before.object,
    metadata: { ...metadata, resourceVersion: String(current.version) },
  };
  return eventLine("DELETED", new StoredObject(current.key, current.version, object));
}

function bookmarkLine(kind: ResourceKind, version: number, endsInitial = false): string {
  const object: JsonObject = {
    kind: kind.kind,
    apiVersion: formatApiVersion(kind.group, kind.version),
    metadata: {
      resourceVersion: String(version),
      ...(endsInitial ? { annotations: { "k8s.io/initial-events-end": "true" } } : {}),
    },
  };
  return `${JSON.stringify({ type: "BOOKMARK", object })}\n`;
}

const errorLine = (error: StatusError): string =>
  `${JSON.stringify({ type: "ERROR", object: error.toStatus() })}\n`;
