import { defined, ensureError, isKonvergeError, KonvergeError, sleepMs } from "@konverge/core";
import type { CancelEffect } from "./cancel-effect.ts";
import type { PauseEffect } from "./pause-effect.ts";
import type { RunRef } from "./define/run-ref.ts";
import { cursorIn, placeIn, type RunCursor } from "./store/list-runs.ts";
import type { RunActions } from "./store/run-actions.ts";
import type { RunFilter, RunQueries } from "./store/run-queries.ts";
import type { CancelRequest, RunStatus } from "./store/run-record.ts";

export const BULK_ACTIONS = ["cancel", "pause", "resume", "retry", "signal", "terminate"] as const;
export type BulkAction = (typeof BULK_ACTIONS)[number];

/** Most runs of a page: of a script call, and of actions at a time. */
const PAGE = 500;
const AT_ONCE = 100;
/** Tries of a call before an outage of Redis ends the action. */
const TRIES = 4;
const RETRY_MS = 500;
/** Most failures that are returned with their reason. */
const MOST_FAILURES = 10;

const ACTIVE: readonly RunStatus[] = ["queued", "running", "waiting", "blocked", "compensating"];
const PAUSED: readonly RunStatus[] = ["pausing", "paused"];

/** Errors of runs that have ended, expired or continued since the page was read. */
const SINCE_CHANGED: ReadonlySet<string> = new Set(["run_ended", "not_found", "run_active"]);

/** The statuses of the runs that an action may change. */
const STATUSES: Readonly<Record<BulkAction, readonly RunStatus[]>> = {
  cancel: ["queued", "running", "waiting", "blocked", ...PAUSED],
  pause: ACTIVE,
  resume: PAUSED,
  retry: ["failed", "cancelled", "blocked"],
  signal: [...ACTIVE, ...PAUSED],
  terminate: [...ACTIVE, ...PAUSED],
};

export interface BulkRequest extends CancelRequest {
  readonly action: BulkAction;
  /** Default: all runs to which the action applies. `retry` needs a status. */
  readonly filter?: RunFilter;
  /** `next` of an earlier call: continue there. */
  readonly from?: RunCursor;
  /** Called once, before the first run is changed. Its error ends the action. */
  readonly onBegin?: () => Promise<void>;
  /** Begin no page after this time, in ms. Default: never stop. */
  readonly budgetMs?: number;
  /** Only with `retry`: continue the same runs after their successful steps. */
  readonly fromFailed?: boolean;
  /** Only with `retry`: versions of new runs by workflow. Default: those of the old ones. */
  readonly versions?: ReadonlyMap<string, number>;
  /** Only with `signal`, and required there. */
  readonly signal?: {
    readonly name: string;
    readonly payload?: unknown;
    /** Each run receives an ID once, so a repeated call must pass the same one. Default: a UUID. */
    readonly id?: string;
  };
}

/** The fields of a request that a count needs. */
export type CountRequest = Pick<BulkRequest, "action" | "filter" | "from" | "budgetMs">;

export interface CountResult {
  readonly matched: number;
  /** Missing once all runs were counted. Else `matched` has those before it. */
  readonly next?: RunCursor;
}

export interface BulkFailure extends RunRef {
  readonly code: string;
  readonly message: string;
}

/** The effect of an action on the runs that match. A run that changed in the meantime is unchanged. */
export interface BulkResult {
  readonly matched: number;
  readonly changed: number;
  readonly unchanged: number;
  readonly failed: number;
  /** The first 10. */
  readonly failures: readonly BulkFailure[];
  /** The newest and the oldest run of a call that were changed, by creation. */
  readonly range?: readonly [RunRef, RunRef];
  /** Missing once all runs were visited. */
  readonly next?: RunCursor;
}

/** `none`: nothing was changed. */
export interface BulkEffect {
  readonly effect: CancelEffect["effect"] | PauseEffect["effect"] | "sent";
}

export interface BulkPorts {
  readonly store: Pick<RunActions, "pause" | "resume"> & Pick<RunQueries, "places" | "count">;
  readonly wake: (ref: RunRef, reason: string) => Promise<void>;
  /** Changes one run. @throws KonvergeError if it cannot be changed */
  readonly act: (ref: RunRef, request: BulkRequest) => Promise<BulkEffect | void>;
}

/**
 * Counts the runs that the action would visit. A filter without an index reads runs, so it may take longer than `budgetMs`.
 * @throws KonvergeError `invalid_request`
 */
export async function countBulk(
  { store }: Pick<BulkPorts, "store">,
  workflows: readonly string[],
  request: CountRequest,
): Promise<CountResult> {
  const filter = filterOf(request);
  const { from, budgetMs = Infinity } = request;
  const endMs = performance.now() + budgetMs;
  const isOver = () => performance.now() > endMs;
  let matched = 0;
  for (const workflow of workflowsFrom(workflows, from)) {
    const place = from && placeIn(workflow, from);
    const { count, next } = await store.count(workflow, filter, {
      isOver,
      ...defined({ from: place }),
    });
    matched += count;
    if (next !== undefined) return { matched, next: cursorIn(workflow, next) };
  }
  return { matched };
}

/** Returns the workflows in their order, without those before the cursor. */
function workflowsFrom(
  workflows: readonly string[],
  from: RunCursor | undefined,
): readonly string[] {
  return workflows.toSorted().filter((name) => from === undefined || name >= from.workflow);
}

/**
 * Acts on all runs of the workflows that match, newest first per workflow. Runs that start later are not visited. A lost
 * connection ends it with an error; the runs visited until then are changed, and the same request continues with the others.
 * @throws KonvergeError `invalid_request`, `redis_unavailable`
 */
export async function actOnRuns(
  ports: BulkPorts,
  workflows: readonly string[],
  request: BulkRequest,
): Promise<BulkResult> {
  const filter = filterOf(request);
  const { from, budgetMs = Infinity } = request;
  const endMs = performance.now() + budgetMs;
  const tally = new Tally();
  let next = from;
  for (const workflow of workflowsFrom(workflows, from)) {
    if (next?.workflow !== workflow) next = undefined;
    do {
      if (tally.pages > 0 && performance.now() > endMs) {
        return tally.result(next ?? { workflow, createdAtMs: Number.MAX_SAFE_INTEGER, id: "" });
      }
      const place = next && placeIn(workflow, next);
      const asked = { limit: PAGE, filter, ...defined({ from: place }) };
      const page = await patiently(() => ports.store.places(workflow, asked));
      const refs = page.places.map(({ id }) => ({ workflow, id }));
      if (tally.isEmpty && refs.length > 0) await request.onBegin?.();
      tally.add(refs, await actOnPage(ports, workflow, refs, request));
      next = page.next && cursorIn(workflow, page.next);
    } while (next !== undefined);
  }
  return tally.result();
}

type Outcome = "changed" | "unchanged" | KonvergeError;

async function actOnPage(
  { store, wake, act }: BulkPorts,
  workflow: string,
  refs: readonly RunRef[],
  request: BulkRequest,
): Promise<readonly Outcome[]> {
  const ids = refs.map(({ id }) => id);
  if (ids.length === 0) return [];
  const { action, by, reason, filter } = request;
  const wanted = defined({ wanted: filter?.status });
  const awaken = async (found: readonly RunRef[]) =>
    await inParts(found, (ref) => patiently(() => wake(ref, action)));
  if (action === "pause") {
    const how = { request: defined({ by, reason }), ...wanted };
    const answers = await patiently(() => store.pause(workflow, ids, how));
    await awaken(refs.filter((_, at) => answers[at] === "pausing"));
    return answers.map((answer) =>
      answer === "paused" || answer === "pausing" ? "changed" : "unchanged",
    );
  }
  if (action === "resume") {
    const answers = await patiently(() => store.resume(workflow, ids, wanted));
    // An earlier try of the call may have resumed a run that is unchanged now.
    await awaken(refs.filter((_, at) => answers[at] === "resumed" || answers[at] === "unchanged"));
    return answers.map((answer) => (answer === "resumed" ? "changed" : "unchanged"));
  }
  return await inParts(refs, async (ref): Promise<Outcome> => {
    try {
      const effect = await patiently(() => act(ref, request));
      return effect?.effect === "none" ? "unchanged" : "changed";
    } catch (thrown) {
      const error = ensureError(thrown);
      if (!isKonvergeError(error) || error.code === "redis_unavailable") throw error;
      return SINCE_CHANGED.has(error.code) ? "unchanged" : error;
    }
  });
}

class Tally {
  pages = 0;
  #matched = 0;
  #changed = 0;
  #unchanged = 0;
  #failed = 0;
  readonly #failures: BulkFailure[] = [];
  #first: RunRef | undefined;
  #last: RunRef | undefined;

  get isEmpty(): boolean {
    return this.#matched === 0;
  }

  add(refs: readonly RunRef[], outcomes: readonly Outcome[]): void {
    this.pages += 1;
    this.#matched += refs.length;
    for (const [at, ref] of refs.entries()) {
      const outcome = outcomes[at];
      if (outcome === "changed") {
        this.#changed += 1;
        this.#first ??= ref;
        this.#last = ref;
      } else if (outcome === undefined || outcome === "unchanged") this.#unchanged += 1;
      else this.#fail(ref, outcome);
    }
  }

  result(next?: RunCursor): BulkResult {
    const range = this.#first && this.#last && ([this.#first, this.#last] as const);
    return {
      matched: this.#matched,
      changed: this.#changed,
      unchanged: this.#unchanged,
      failed: this.#failed,
      failures: this.#failures,
      ...defined({ range, next }),
    };
  }

  #fail(ref: RunRef, { code, message }: KonvergeError): void {
    this.#failed += 1;
    if (this.#failures.length < MOST_FAILURES) this.#failures.push({ ...ref, code, message });
  }
}

/** Returns the filter, narrowed to runs that the action may change. */
function filterOf({ action, filter = {} }: Pick<BulkRequest, "action" | "filter">): RunFilter {
  const statuses = STATUSES[action];
  const { status } = filter;
  if (status === undefined && action === "retry") {
    throw invalid(`retry needs a status; use one of: ${statuses.join(", ")}`);
  }
  if (status !== undefined && !statuses.includes(status)) {
    const fix = `use one of: ${statuses.join(", ")}`;
    throw invalid(`${action} does not apply to runs with the status ${status}; ${fix}`);
  }
  return status === undefined ? { ...filter, statuses } : filter;
}

function invalid(detail: string): KonvergeError {
  return new KonvergeError("invalid_request", detail, {
    issues: [{ pointer: "/filter/status", detail }],
  });
}

/** Repeats a call that Redis does not answer in time, as on a busy machine. Every call may be repeated. */
async function patiently<T>(call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await call();
    } catch (error) {
      const isOutage = isKonvergeError(error) && error.code === "redis_unavailable";
      if (!isOutage || tries >= TRIES) throw error;
      await sleepMs(RETRY_MS);
    }
  }
}

async function inParts<T, R>(items: readonly T[], call: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let start = 0; start < items.length; start += AT_ONCE) {
    results.push(...(await Promise.all(items.slice(start, start + AT_ONCE).map(call))));
  }
  return results;
}
