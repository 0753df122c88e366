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
 * A reader that leaves so much unread is cut, in bytes; the real server's buffers hold about as much. What a watch begins
 * with, initial state or history, comes on top: it is written at once, before anybody could have read it.
 */
const BACKLOG_LIMIT_BYTES = 16 * 1024 * 1024;

/** All watches that are open now. */
export class OpenWatches {
  readonly #running: Set<RunningWatch> = new Set();

  get size(): number {
    return this.#running.size;
  }

  /** Answers a watch and keeps it until one side ends it. */
  open(
    request: WatchRequest,
    incoming: IncomingMessage,
    response: ServerResponse,
    effect: FaultEffect | undefined,
  ): void {
    response.writeHead(200, { "Content-Type": "application/json", "Transfer-Encoding": "chunked" });
    response.flushHeaders();
    const backlog = { limitBytes: Number.POSITIVE_INFINITY };
    const watch = startWatch(request, sinkOf(response, effect, backlog));
    backlog.limitBytes = response.writableLength + BACKLOG_LIMIT_BYTES;
    // A watch that ended while it started is not open; a cut is harmless twice.
    if (response.writableEnded) return;
    this.#running.add(watch);
    const forget = () => {
      this.#running.delete(watch);
      watch.cut();
    };
    response.once("close", forget);
    incoming.once("aborted", forget);
  }

  /** Ends watches as a timeout does; `resource` is `plural.group`, default all. Returns how many. */
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
  effect: FaultEffect | undefined,
  backlog: { readonly limitBytes: number },
): WatchSink {
  let events = 0;
  return {
    send: (line) => {
      if (effect?.kind === "cutWatch" && events >= effect.afterEvents) return false;
      if (effect?.kind === "silentWatch" && events >= effect.afterEvents) return true;
      events++;
      if (!response.writable) return false;
      response.write(line);
      return response.writableLength <= backlog.limitBytes;
    },
    end: () => {
      response.end();
    },
  };
}
