import type { IncomingMessage, ServerResponse } from "node:http";
import { resourceId } from "@konverge/core";
import {
  startWatch,
  type RunningWatch,
  type WatchRequest,
  type WatchSink,
} from "../verbs/watch.ts";
import type { FaultEffect } from "./fault-rules.ts";

/**
 * Unread bytes after which a slow reader is disconnected; the real server buffers about as much. The initial state or
 * history of a watch is not counted, because it is written at once, before it can be read.
 */
const BACKLOG_LIMIT_BYTES = 16 * 1024 * 1024;

/** How the lines of a watch are written. */
export interface WatchOutput {
  readonly effect: FaultEffect | undefined;
  /** Converts each line; undefined: the objects as they are. */
  readonly format: ((line: string) => string) | undefined;
}

/** All open watches. */
export class OpenWatches {
  readonly #running: Set<RunningWatch> = new Set();

  get size(): number {
    return this.#running.size;
  }

  /** Starts a watch as the response and keeps it until one side ends it. */
  open(
    request: WatchRequest,
    incoming: IncomingMessage,
    response: ServerResponse,
    { effect, format }: WatchOutput,
  ): void {
    response.writeHead(200, { "Content-Type": "application/json", "Transfer-Encoding": "chunked" });
    response.flushHeaders();
    const backlog = { limitBytes: Number.POSITIVE_INFINITY };
    const watch = startWatch(request, sinkOf(response, { effect, format }, backlog));
    backlog.limitBytes = response.writableLength + BACKLOG_LIMIT_BYTES;
    // A watch that ended while it started is not open; disconnecting it twice is harmless.
    if (response.writableEnded) return;
    this.#running.add(watch);
    const forget = () => {
      this.#running.delete(watch);
      watch.cut();
    };
    response.once("close", forget);
    incoming.once("aborted", forget);
  }

  /** Ends watches like a timeout; `resource` is `plural.group`, default all. Returns their number. */
  cut(resource?: string): number {
    const found = this.#of(resource);
    for (const watch of found) watch.cut();
    return found.length;
  }

  /** Sends a bookmark to each watch that allows them; `resource` is `plural.group`, default all. */
  bookmark(resource?: string): void {
    for (const watch of this.#of(resource)) watch.bookmark();
  }

  #of(resource: string | undefined): RunningWatch[] {
    return [...this.#running].filter(
      ({ kind }) => resource === undefined || resourceId(kind) === resource,
    );
  }
}

function sinkOf(
  response: ServerResponse,
  { effect, format }: WatchOutput,
  backlog: { readonly limitBytes: number },
): WatchSink {
  let events = 0;
  return {
    send: (line) => {
      if (effect?.kind === "cutWatch" && events >= effect.afterEvents) return false;
      if (effect?.kind === "silentWatch" && events >= effect.afterEvents) return true;
      events++;
      if (!response.writable) return false;
      response.write(format === undefined ? line : format(line));
      return response.writableLength <= backlog.limitBytes;
    },
    end: () => {
      response.end();
    },
  };
}
