import {
  explanationSchema,
  type GuardView,
  type LiveObject,
  type RunList,
} from "@konverge/contracts";
import { KEY_PHASES, type ObjectKey } from "@konverge/core";
import type { AnnouncedWorker } from "@konverge/queue";
import { ATTEMPT_OUTCOMES, HINT_CODES, type AttemptRecord } from "@konverge/records";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { explainObject } from "./explain-object.ts";
import type { Cause, ObjectFacts } from "./object-facts.ts";

const NOW = Date.parse("2026-11-22T08:00:00Z");
const AT = "2026-11-22T07:59:00.000Z";
const KEY: ObjectKey = {
  controller: "pool",
  cluster: "default",
  resource: "pools",
  group: "demo.dev",
  namespace: "demo",
  name: "blue",
};
const TEXT = "pool/default/pools.demo.dev/demo/blue";
type State = NonNullable<ObjectFacts["state"]>;

const worker = (rest: Partial<AnnouncedWorker> = {}, leads: readonly string[] = ["pool"]) =>
  ({
    workerId: "w-1",
    controllers: ["pool"],
    role: "all",
    startedAt: AT,
    load: { slots: { pool: { running: 1, limit: 16 } }, leads, calls: { waiting: {} } },
    ...rest,
  }) as unknown as AnnouncedWorker;
const attempt = (outcome: AttemptRecord["outcome"], rest: Partial<AttemptRecord> = {}) =>
  ({
    id: `${TEXT}#17`,
    key: TEXT,
    epoch: 17,
    worker: "w-1",
    finishedAt: AT,
    outcome,
    writes: [],
    conflicts: [],
    ...rest,
  }) as unknown as AttemptRecord;
const state = (phase: State["phase"], rest: Partial<State> = {}): State => ({
  key: TEXT,
  phase,
  failures: 0,
  conflicts: 0,
  ...rest,
});
const guard = (breaker: Partial<GuardView["breaker"]>) =>
  ({
    cluster: "default",
    breaker: { state: "closed", ...breaker },
    rate: { current: 100 },
  }) as GuardView;
const OUTAGE = guard({
  state: "open",
  outage: { since: AT, lastError: "HTTP 503", failingWorkers: 1, liveWorkers: 1 },
});
const run = (status: RunList["items"][number]["status"], rest = {}) =>
  ({
    id: "rollout/default/web-1",
    workflow: "rollout",
    cluster: "default",
    status,
    createdAt: AT,
    ...rest,
  }) as RunList["items"][number];
const found = (object: object, children: readonly object[] = []) =>
  ({ kind: "found", readAt: AT, object, children }) as unknown as LiveObject;

const FINE: ObjectFacts = {
  nowMs: NOW,
  key: KEY,
  state: state("idle", { lastOutcome: "done" }),
  attempts: [attempt("done")],
  contention: { resource: "pools.demo.dev", name: "blue", competingWriters: [] },
  workers: [worker()],
  queue: { waiting: 0, active: 0, delayed: 0 },
  guard: guard({}),
  restore: { held: [], progressMs: undefined },
  sources: [],
  runs: [],
  live: found({ metadata: { generation: 1 } }),
};
const explain = (facts: Partial<ObjectFacts>) => explainObject({ ...FINE, ...facts });
const codesOf = (facts: Partial<ObjectFacts>) => explain(facts).causes.map(({ code }) => code);

const FAILED = attempt("retry", {
  error: { code: "handler_error", message: "quota exceeded" },
  hints: [{ code: "not_found_as_failure", message: "a 404" }],
});
const BACKOFF = state("backoff", { failures: 3, nextAt: "2026-11-22T08:00:30.000Z" });
const FLIP = {
  kind: "takeover",
  manager: "argocd",
  path: "spec.size",
  count: 8,
  inEpisode: 8,
  firstAt: AT,
  lastAt: AT,
} as const;
const PAUSE = { scope: { kind: "controller" }, by: "ada", reason: "migration", since: AT } as const;

test("nothing is wrong with an object whose last attempt ended well", () => {
  expect(explain({})).toEqual({
    key: TEXT,
    at: new Date(NOW).toISOString(),
    verdict: "ok",
    phase: "idle",
    summary: `Nothing is wrong. The last attempt ended with done at ${AT}.`,
    causes: [],
  });
});

test("a failing handler is the first cause, with its error, its hint and the next attempt", () => {
  const { causes, summary, verdict } = explain({ state: BACKOFF, attempts: [FAILED] });
  expect(verdict).toBe("blocked");
  expect(summary).toBe("Attempt 17 failed with handler_error: quota exceeded.");
  expect(causes.map(({ code }) => code)).toEqual(["attempt_failed", "retry_scheduled"]);
  expect(causes[0]).toMatchObject({
    docs: "docs/hints.md#not_found_as_failure",
    evidence: [{ kind: "attempt", name: `${TEXT}#17`, at: AT }, { kind: "hint" }],
  });
});

test.each<readonly [string, Partial<ObjectFacts>, readonly Cause["code"][]]>([
  [
    "an outage precedes the failure that it causes",
    { state: BACKOFF, attempts: [FAILED], guard: OUTAGE },
    ["api_server_outage", "attempt_failed", "retry_scheduled"],
  ],
  [
    "a deferral by an open breaker is expected",
    { state: BACKOFF, attempts: [attempt("deferred")], guard: OUTAGE },
    ["api_server_outage", "attempt_deferred", "retry_scheduled"],
  ],
  ["a pause", { state: state("paused", { paused: PAUSE }) }, ["paused"]],
  [
    "the last error precedes the dead letter",
    { state: state("deadLettered", { failures: 5 }), attempts: [FAILED] },
    ["attempt_failed", "dead_lettered"],
  ],
  ["no worker", { state: state("waiting"), workers: [] }, ["no_workers"]],
  [
    "no worker of the controller",
    { state: state("waiting"), workers: [worker({ controllers: ["other"] })] },
    ["unserved"],
  ],
  ["no leader", { workers: [worker({}, [])] }, ["no_leader"]],
  [
    "a competing manager, although each attempt succeeds",
    { contention: { ...FINE.contention, competingWriters: [FLIP] } },
    ["contention"],
  ],
  ["a waiting run", { runs: [run("waiting")] }, ["run_open"]],
  ["a blocked run", { runs: [run("blocked")] }, ["run_blocked"]],
  ["an ended run", { runs: [run("done")] }, []],
  ["a waiting request", { state: state("waiting") }, ["queued"]],
  [
    "a lost worker",
    { state: state("waiting"), attempts: [attempt("lost")] },
    ["worker_lost", "queued"],
  ],
  [
    "a child that is not ready",
    {
      live: found({ metadata: {} }, [{ kind: "Pod", name: "a", status: "inProgress" }]),
    },
    ["child_not_ready"],
  ],
  [
    "a generation that no attempt has seen",
    {
      attempts: [attempt("done", { generation: 1 })],
      live: found({ metadata: { generation: 2 } }),
    },
    ["outdated"],
  ],
  ["an object without requests", { state: undefined, attempts: [] }, ["never_requested"]],
])("explains %s", (_title, facts, codes) => {
  expect(codesOf(facts)).toEqual(codes);
});

/** Causes of which at most one is true of an object. */
const EXCLUSIVE: readonly (readonly Cause["code"][])[] = [
  [
    "paused",
    "dead_lettered",
    "running",
    "queued",
    "retry_scheduled",
    "requeue_scheduled",
    "never_requested",
  ],
  ["no_workers", "unserved", "queued"],
  ["no_workers", "no_leader"],
  ["api_server_isolated", "api_server_outage", "calls_wait"],
  ["conflict", "worker_lost", "attempt_failed", "attempt_deferred", "attempt_cancelled"],
  ["object_missing", "child_not_ready"],
  ["object_missing", "terminating", "condition"],
  ["object_missing", "terminating", "outdated"],
];

const iso = fc
  .integer({ min: NOW - 7_200_000, max: NOW + 7_200_000 })
  .map((ms) => new Date(ms).toISOString());
const randomState = fc.record(
  {
    key: fc.constant(TEXT),
    phase: fc.constantFrom(...KEY_PHASES),
    failures: fc.nat(9),
    conflicts: fc.nat(9),
    pending: fc.constant("r-1"),
    nextAt: iso,
    paused: fc.constant(PAUSE),
    deadLetter: fc.record({ since: iso, error: fc.constant({ code: "e", message: "m" }) }),
  },
  { requiredKeys: ["key", "phase", "failures", "conflicts"] },
);
const randomAttempt = fc
  .record({
    outcome: fc.constantFrom(...ATTEMPT_OUTCOMES),
    error: fc.option(fc.record({ code: fc.string(), message: fc.string({ maxLength: 2_000 }) }), {
      nil: undefined,
    }),
    cause: fc.option(fc.constantFrom("loop", "throttled"), { nil: undefined }),
    generation: fc.option(fc.nat(3), { nil: undefined }),
    hints: fc.array(fc.record({ code: fc.constantFrom(...HINT_CODES), message: fc.string() }), {
      maxLength: 2,
    }),
  })
  .map(({ outcome, ...rest }) => attempt(outcome, rest));
const randomWorker = fc
  .record({
    controllers: fc.subarray(["pool", "other"]),
    role: fc.constantFrom("watch" as const, "work" as const, "all" as const),
    leads: fc.subarray(["pool", "other"]),
  })
  .map(({ leads, ...rest }) => worker(rest, leads));
const randomLoop = fc.record({
  kind: fc.constantFrom("selfTriggered" as const, "requeue" as const, "ownershipFlip" as const),
  count: fc.nat(),
  step: fc.nat(),
  sinceMs: fc.constant(NOW),
  untilMs: fc.constant(NOW),
  paths: fc.array(fc.string(), { maxLength: 2 }),
  managers: fc.array(fc.string(), { maxLength: 2 }),
  worker: fc.constant("w-1"),
  protection: fc.constantFrom("throttle" as const, "report" as const),
});
const randomWriter = fc.record({
  kind: fc.constantFrom("conflict" as const, "takeover" as const),
  manager: fc.string(),
  path: fc.string(),
  count: fc.nat(),
  inEpisode: fc.nat(9),
  firstAt: iso,
  lastAt: iso,
});
const randomLive = fc.oneof(
  fc.constantFrom<LiveObject>(
    { kind: "missing", readAt: AT },
    { kind: "unavailable", code: "no_worker", message: "none" },
  ),
  fc
    .record({
      object: fc.oneof(
        fc.dictionary(fc.constantFrom("metadata", "status", "spec"), fc.jsonValue()),
        fc.record({
          metadata: fc.record(
            { generation: fc.nat(3), deletionTimestamp: iso, finalizers: fc.array(fc.string()) },
            { requiredKeys: [] },
          ),
          status: fc.record({
            conditions: fc.array(
              fc.record({
                type: fc.constantFrom("Ready", "Stalled", "Synced"),
                status: fc.constantFrom("True", "False", "Unknown"),
                message: fc.string(),
              }),
              { maxLength: 3 },
            ),
          }),
        }),
      ),
      children: fc.array(
        fc.record({
          kind: fc.constant("Pod"),
          name: fc.string(),
          status: fc.constantFrom("current", "inProgress", "failed", undefined),
        }),
        { maxLength: 3 },
      ),
    })
    .map(({ object, children }) => found(object, children)),
);
const randomFacts: fc.Arbitrary<ObjectFacts> = fc.record({
  nowMs: fc.constant(NOW),
  key: fc.constant(KEY),
  state: fc.option(randomState, { nil: undefined }),
  attempts: fc.array(randomAttempt, { maxLength: 3 }),
  contention: fc
    .record({
      competingWriters: fc.array(randomWriter, { maxLength: 3 }),
      loop: fc.option(randomLoop, { nil: undefined }),
    })
    .map((rest) => ({ ...FINE.contention, ...rest })),
  workers: fc.array(randomWorker, { maxLength: 3 }),
  queue: fc.record({ waiting: fc.nat(), active: fc.nat(), delayed: fc.nat() }),
  guard: fc.constantFrom(
    undefined,
    guard({}),
    OUTAGE,
    guard({ state: "isolated", isolated: { by: "ada", reason: "test", at: AT } }),
    { ...guard({}), rate: { current: 1, pausedUntil: "2026-11-22T08:01:00Z" } } as GuardView,
  ),
  restore: fc.constantFrom(
    { held: [], progressMs: undefined },
    {
      held: ["keys" as const],
      last: { detectedAtMs: NOW, by: "w-1", lostFromMs: NOW, lostToMs: NOW },
      progressMs: NOW,
    },
  ),
  sources: fc.constant([]),
  runs: fc.array(
    fc
      .constantFrom("queued", "waiting", "blocked", "failed", "done")
      .map((each) => run(each as "done")),
    { maxLength: 2 },
  ),
  live: randomLive,
});

test("every state has causes that do not contradict each other, or nothing is wrong", () => {
  fc.assert(
    fc.property(randomFacts, (facts) => {
      const explanation = explainObject(facts);
      expect(explanationSchema.parse(explanation)).toEqual(explanation);
      const { causes, verdict, summary } = explanation;
      const codes = causes.map(({ code }) => code);
      expect(verdict === "ok").toBe(codes.length === 0);
      expect(summary.startsWith("Nothing is wrong")).toBe(verdict === "ok");
      expect(verdict === "blocked").toBe(causes.some(({ level }) => level !== "info"));
      if (facts.state?.phase !== "idle") expect(codes.length).toBeGreaterThan(0);
      for (const group of EXCLUSIVE) {
        expect(group.filter((code) => codes.includes(code)).length, codes.join()).toBeLessThan(2);
      }
      for (const { message, action, evidence } of causes) {
        expect(message).not.toBe("");
        expect(message.length).toBeLessThan(500);
        expect(action !== undefined || evidence.length > 0).toBe(true);
      }
      expect(explainObject(facts)).toEqual(explanation);
    }),
  );
});
