import { invalidConfig, toMs, type Duration } from "@konverge/core";
import type { StreamSource } from "./event-source.ts";
import { durationIssue, functionIssue, issuesOf, nameIssue } from "./source-issues.ts";

/** The options of {@link stream}. */
export interface StreamOptions {
  /**
   * Longest time without an event, after which the stream is opened again. Default: none. Below 1 s, a slow stream may deliver no
   * event.
   */
  readonly idleTimeout?: Duration;
}

/**
 * Defines a source that the leader of the controller reads as an async iterable. A stream that ends or throws is opened again with a
 * backoff from 1 s to 1 min.
 * @param name identifies the source in its controller: lower-case letters, digits and dashes
 * @param open returns the events after `cursor`, which is undefined for the first call. Must end when `signal` is aborted.
 * @throws KonvergeError `invalid_config`
 */
export function stream(
  name: string,
  open: StreamSource["open"],
  { idleTimeout }: StreamOptions = {},
): StreamSource {
  const issues = issuesOf({
    name: nameIssue(name),
    open: functionIssue(open, "(cursor, signal) => async iterable of { key, cursor }"),
    idleTimeout:
      idleTimeout === undefined ? undefined : durationIssue(idleTimeout, "idleTimeout", 1_000),
  });
  if (issues.length > 0) throw invalidConfig(issues, `stream "${String(name)}" is`);
  return {
    kind: "stream",
    name,
    open,
    idleTimeoutMs: idleTimeout === undefined ? Infinity : toMs(idleTimeout, "idleTimeout"),
  };
}
