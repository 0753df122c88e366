import { invalidConfig, toMs, type Duration } from "@konverge/core";
import type { PollContext, PollResult, PollSource, RequestedObjects } from "./event-source.ts";
import { durationIssue, functionIssue, issuesOf, nameIssue } from "./source-issues.ts";

/** The options of {@link poll}. */
export interface PollOptions<Item> {
  /** Identifies the source in its controller: lower-case letters, digits and dashes. Default `poll`. */
  readonly name?: string;
  /** Time between the end of a call of `list` and the next one, at least 100 ms. */
  readonly every: Duration;
  /**
   * Returns all items, or `{ items, cursor }` with the changes since `cursor`. From a list of all items, only the objects of
   * changed, new and missing items are requested; from changes, the objects of every item.
   */
  readonly list: (context: PollContext) => Promise<PollResult<Item>> | PollResult<Item>;
  /** Returns the objects to reconcile for an item. */
  readonly key: (item: Item) => RequestedObjects;
  /**
   * Returns a value that differs whenever the item differs, such as an ETag. Default: a digest of the item as JSON. If an object
   * has several items, their digests are compared instead.
   */
  readonly version?: (item: Item) => string;
  /** Longest call of `list`. Default 60 s. */
  readonly timeout?: Duration;
}

/**
 * Defines a source that the leader of the controller polls. Redis stores its cursor and the versions of its items, so a new leader
 * continues where the last one stopped.
 * @throws KonvergeError `invalid_config`
 */
export function poll<Item>(options: PollOptions<Item>): PollSource {
  const { name = "poll", timeout = "60s", list, key, version } = options;
  const issues = issuesOf({
    name: nameIssue(name),
    every: durationIssue(options.every, "every", 100),
    list: functionIssue(list, "async ({ cursor, signal }) => items"),
    key: functionIssue(key, "(item) => ({ namespace, name })"),
    version:
      version === undefined ? undefined : functionIssue(version, "(item) => text such as an ETag"),
    timeout: durationIssue(timeout, "timeout", 1),
  });
  if (issues.length > 0) throw invalidConfig(issues, `poll "${String(name)}" is`);
  return {
    kind: "poll",
    name,
    everyMs: toMs(options.every, "every"),
    timeoutMs: toMs(timeout, "timeout"),
    list,
    // The functions receive only items of the same source.
    key: key as PollSource["key"],
    version: version as PollSource["version"],
  };
}
