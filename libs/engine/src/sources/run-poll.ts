import { createHash } from "node:crypto";
import { isKonvergeError, sleepMs } from "@konverge/core";
import type { SourceClaim } from "@konverge/queue";
import type { PollResult, PollSource } from "../define/event-source.ts";
import {
  accepted,
  backOff,
  namesOf,
  SourceFencedError,
  submit,
  type SourceContext,
} from "./source-context.ts";
import { within } from "./within.ts";

/** Requests that are submitted together, so that a long list does not fill the memory. */
const CHUNK = 500;
const MAX_CURSOR = 4_096;

type Context = SourceContext<PollSource>;

/** Polls until the signal is aborted. @throws SourceFencedError; KonvergeError `redis_unavailable` */
export async function runPoll(context: Context, claim: SourceClaim): Promise<void> {
  const { source, store, controller, reporter, signal } = context;
  const known = await store.versions({ controller: controller.name, source: source.name });
  let { cursor } = claim;
  for (;;) {
    const startedAtMs = performance.now();
    try {
      const result = checkResult(await list(context, cursor));
      // A cursor that does not move would call `list` without a pause.
      const isMore = result.more && result.cursor !== cursor;
      if (result.cursor === undefined) {
        await requestChanged(context, claim, known, result.items);
      } else {
        await requestAll(context, claim, result);
        cursor = result.cursor;
      }
      reporter.succeeded();
      reporter.behind(0, startedAtMs);
      if (!isMore) await sleepMs(source.everyMs, signal);
    } catch (error) {
      if (signal.aborted || isOfStore(error)) throw error;
      reporter.failed(error);
      await backOff(reporter.failures, signal);
    }
  }
}

/** Redis was unavailable, or another process has taken over: the stored state must be read again. */
function isOfStore(error: unknown): boolean {
  return (
    error instanceof SourceFencedError ||
    (isKonvergeError(error) && error.code === "redis_unavailable")
  );
}

async function list(
  { source, signal }: Context,
  cursor: string | undefined,
): Promise<PollResult<unknown>> {
  const over = new AbortController();
  try {
    const call = async () =>
      await source.list({ cursor, signal: AbortSignal.any([signal, over.signal]) });
    return await within(call(), { signal, timeoutMs: source.timeoutMs, what: "list" });
  } finally {
    over.abort();
  }
}

interface CheckedResult {
  readonly items: readonly unknown[];
  readonly cursor: string | undefined;
  readonly more: boolean;
}

/** @throws TypeError */
function checkResult(result: unknown): CheckedResult {
  if (Array.isArray(result)) return { items: result, cursor: undefined, more: false };
  const { items, cursor, more = false } = (result ?? {}) as Record<string, unknown>;
  if (!Array.isArray(items)) {
    throw new TypeError("list must return a list of items, or { items, cursor }");
  }
  checkCursor(cursor, "list");
  return { items, cursor, more: more === true };
}

/** @throws TypeError */
export function checkCursor(cursor: unknown, of: string): asserts cursor is string {
  if (typeof cursor === "string" && cursor !== "" && cursor.length <= MAX_CURSOR) return;
  const got = typeof cursor === "string" ? `${cursor.length} characters` : typeof cursor;
  throw new TypeError(
    `cursor of ${of} must be text with 1 to ${MAX_CURSOR} characters (got ${got})`,
  );
}

/** Requests the objects of all changes, and then stores the cursor. */
async function requestAll(
  context: Context,
  claim: SourceClaim,
  { items, cursor = "" }: CheckedResult,
): Promise<void> {
  const { source, controller } = context;
  const names = items.flatMap((item) => namesOf(controller, source.key(item)));
  await requestNames(context, new Map(names.map((name) => [idOf(name), name])));
  await advance(context, claim, { cursor });
}

type Names = ReadonlyMap<string, ReturnType<typeof namesOf>[number]>;

/**
 * Requests the objects whose items are new, changed or missing, and then stores their versions. An item that fails does not affect
 * the others.
 */
async function requestChanged(
  context: Context,
  claim: SourceClaim,
  known: Map<string, string>,
  items: readonly unknown[],
): Promise<void> {
  const { names, versions, failure } = readItems(context, items);
  const changed = new Map<string, string | undefined>();
  for (const [id, version] of versions) if (known.get(id) !== version) changed.set(id, version);
  // The item of a missing object may be the one that failed.
  if (failure === undefined) {
    for (const id of known.keys()) if (!versions.has(id)) changed.set(id, undefined);
  }
  const wanted = new Map([...changed.keys()].map((id) => [id, names.get(id) ?? nameOf(id)]));
  await requestNames(context, wanted);
  if (changed.size > 0) await advance(context, claim, { versions: [...changed] });
  for (const [id, version] of changed) {
    if (version === undefined) known.delete(id);
    else known.set(id, version);
  }
  if (failure !== undefined) throw failure.error;
}

function readItems({ source, controller }: Context, items: readonly unknown[]) {
  const names = new Map<string, ReturnType<typeof namesOf>[number]>();
  const itemsOf = new Map<string, unknown[]>();
  let failure: { readonly error: unknown } | undefined;
  for (const item of items) {
    try {
      for (const name of namesOf(controller, source.key(item))) {
        const id = idOf(name);
        names.set(id, name);
        const all = itemsOf.get(id);
        if (all === undefined) itemsOf.set(id, [item]);
        else all.push(item);
      }
    } catch (error) {
      failure ??= { error };
    }
  }
  const versions = new Map<string, string>();
  for (const [id, all] of itemsOf) {
    try {
      versions.set(id, versionOf(source, all));
    } catch (error) {
      failure ??= { error };
    }
  }
  return { names, versions, failure };
}

/** Several items of an object can have versions such as 1 and 2 that are swapped, so their contents are compared. */
function versionOf({ version }: PollSource, items: readonly unknown[]): string {
  const [only] = items;
  if (version === undefined || items.length > 1) {
    return digest(
      items
        .map((item) => JSON.stringify(item) ?? "")
        .toSorted()
        .join("\n"),
    );
  }
  const text: unknown = version(only);
  if (typeof text === "string") return digest(text);
  throw new TypeError(`version must return text (got ${typeof text})`);
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 16);
}

/** Neither part of a name has a slash. */
function idOf({ namespace = "", name }: { readonly namespace?: string; readonly name: string }) {
  return `${namespace}/${name}`;
}

function nameOf(id: string): { readonly namespace?: string; readonly name: string } {
  const at = id.indexOf("/");
  const name = id.slice(at + 1);
  return at === 0 ? { name } : { namespace: id.slice(0, at), name };
}

async function requestNames(context: Context, names: Names): Promise<void> {
  const all = [...names.values()];
  for (let start = 0; start < all.length; start += CHUNK) {
    context.signal.throwIfAborted();
    await Promise.all(all.slice(start, start + CHUNK).map((name) => submit(context, name)));
  }
  if (all.length === 0) return;
  await accepted(context);
  context.reporter.requested(all.length);
}

async function advance(
  { store, controller, source }: Context,
  claim: SourceClaim,
  what: Parameters<Context["store"]["advance"]>[2],
): Promise<void> {
  const place = { controller: controller.name, source: source.name };
  if (!(await store.advance(place, claim, what))) throw new SourceFencedError("fenced");
}
