import {
  OVERVIEW_PROBLEMS,
  type ContentionEpisode,
  type GuardView,
  type OverviewController,
  type OverviewProblem,
  type OverviewWorkflow,
  type RunList,
} from "@konverge/contracts";
import type { AnnouncedWorker, NotificationRecord, RestoreState } from "@konverge/queue";
import { queueOfWorkflow } from "@konverge/workflow";
import { expect, test } from "vitest";
import { findProblems, type Findings } from "./find-problems.ts";

const NOW = Date.now();
const HALF_AN_HOUR_AGO = NOW - 1_800_000;
const AT = new Date(HALF_AN_HOUR_AGO).toISOString();
const KEY = "pool/default/pools.demo.dev/blue/a";

const CONTROLLER: OverviewController = {
  name: "pool",
  kind: "Pool",
  group: "demo.dev",
  version: "v1",
  resource: "pools",
  scope: "Namespaced",
  waiting: 0,
  active: 0,
  delayed: 0,
  workers: 1,
  deadLetters: 0,
  minutes: Array.from({ length: 60 }, () => ({ ok: 1, failed: 0, conflict: 0 })),
};
const RUNS: OverviewWorkflow["runs"] = {
  queued: 0,
  running: 0,
  waiting: 0,
  blocked: 0,
  pausing: 0,
  paused: 0,
  compensating: 0,
  done: 0,
  failed: 0,
  cancelled: 0,
};
const worker = (digest = "aaaaaaaa"): AnnouncedWorker => ({
  workerId: `w-${digest}`,
  controllers: ["pool"],
  definitions: { pool: { kind: "Pool", digest } },
  role: "all",
  version: "1.0.0",
  startedAt: AT,
  host: "here",
});
const run = (id: string, rest: Partial<RunList["items"][number]>) =>
  ({ id: `rollout/default/${id}`, workflow: "rollout", ...rest }) as RunList["items"][number];
const guard = (breaker: Partial<GuardView["breaker"]>) =>
  ({ cluster: "default", breaker: { state: "open", ...breaker } }) as GuardView;
const episode = (rest: Partial<ContentionEpisode>, name = "a"): ContentionEpisode => ({
  resource: "pools.demo.dev",
  namespace: "blue",
  name,
  controller: "pool",
  key: KEY,
  kind: "ownershipFlip",
  managers: ["argocd-controller"],
  fields: ["spec.weight"],
  since: AT,
  lastAt: new Date(NOW).toISOString(),
  wastedWrites: 400,
  perMinute: 12,
  minutes: Array.from({ length: 60 }, () => 5),
  suggestedFix: "",
  ...rest,
});
const loop = (rest: object = {}) => ({
  kind: "selfTriggered" as const,
  count: 30,
  step: 1,
  sinceMs: HALF_AN_HOUR_AGO,
  untilMs: NOW + 60_000,
  paths: ["spec.checkedAt"],
  managers: [],
  worker: "w-1",
  protection: "report" as const,
  ...rest,
});
const many = <Each>(one: (index: number) => Each) => Array.from({ length: 5 }, (_, at) => one(at));

const notification = (rest: Partial<NotificationRecord>): NotificationRecord => ({
  id: "m",
  receiver: "slack",
  subscription: "slack",
  format: "json",
  state: "waiting",
  createdAtMs: NOW,
  deadlineMs: NOW + 3_600_000,
  groups: [],
  examples: [],
  tries: 0,
  lastTries: [],
  ...rest,
});

const HEALTHY: Findings = {
  controllers: [CONTROLLER],
  workflows: [],
  runs: { blocked: [], failed: [] },
  workers: [worker()],
  guards: [],
  restore: { held: [], progressMs: undefined },
  redis: { usedBytes: 10, maxBytes: 100 },
  served: new Map([
    ["pool", { seenMs: HALF_AN_HOUR_AGO, mixedMs: HALF_AN_HOUR_AGO }],
    [queueOfWorkflow("rollout"), { seenMs: HALF_AN_HOUR_AGO }],
  ]),
  episodes: [],
  loops: new Map(),
  pauses: [],
  sources: [],
  auditTargets: [{ sink: "file", lagMs: 200_000, lost: 3, lostAtMs: NOW - 25 * 3_600_000 }],
  notifications: [
    notification({ tries: 3, createdAtMs: NOW - 200_000 }),
    notification({ createdAtMs: HALF_AN_HOUR_AGO }),
    notification({ state: "failed", tries: 9, endedAtMs: NOW - 3_700_000 }),
    notification({ state: "sent", tries: 2, createdAtMs: HALF_AN_HOUR_AGO, endedAtMs: NOW }),
  ],
  troubles: new Map(),
};
const pause = (scope: Findings["pauses"][number]["scope"]) => ({
  controller: "pool",
  scope,
  by: "mia",
  reason: "the migration",
  since: AT,
});
const waiting = { ...CONTROLLER, waiting: 3, oldestRequestAgeMs: 1_800_000 };
const failingMinutes = CONTROLLER.minutes.map((_, at) =>
  at < 30 ? { ok: 1, failed: 0, conflict: 0 } : { ok: 0, failed: 4, conflict: 0 },
);

/** For each kind of problem, situations that cause it. */
const SITUATIONS: Readonly<Record<OverviewProblem["code"], readonly Partial<Findings>[]>> = {
  restored: [
    {
      restore: {
        held: ["runs"],
        progressMs: NOW,
        last: { detectedAtMs: HALF_AN_HOUR_AGO, lostFromMs: NOW - 9e6, lostToMs: NOW - 8e6 },
      } as unknown as RestoreState,
    },
  ],
  no_workers: [{ workers: [], controllers: [{ ...waiting, workers: 0 }] }],
  redis_memory: [85, 99].map((usedBytes) => ({
    redis: { usedBytes, maxBytes: 100, highMs: HALF_AN_HOUR_AGO },
  })),
  api_server_outage: [
    guard({
      state: "closed",
      outage: { since: AT, lastError: "timeout", failingWorkers: 1, liveWorkers: 2 },
    }),
    guard({
      outage: {
        since: AT,
        lastError: "timeout",
        failingWorkers: 0,
        liveWorkers: 0,
        recoveringSince: AT,
      },
    }),
  ].map((each) => ({ guards: [each], controllers: [waiting] })),
  api_server_isolated: [
    { guards: [guard({ isolated: { by: "mia", reason: "maintenance", at: AT } })] },
  ],
  unserved: [
    { controllers: [{ ...waiting, workers: 0 }] },
    {
      workflows: [{ name: "rollout", version: 1, workers: 0, runs: { ...RUNS, waiting: 2 } }],
    },
  ],
  dead_letters: [
    {
      controllers: [{ ...CONTROLLER, deadLetters: 1 }],
      troubles: new Map([
        ["pool", { lost: 0, deadLetters: [{ since: AT, error: "no domain" }], errors: [] }],
      ]),
    },
  ],
  run_blocked: [1, 5].map((count) => ({
    runs: {
      blocked: Array.from({ length: count }, (_, at) =>
        run(`r-${at}`, { blockedAt: AT, blockedReason: "started by version 1" }),
      ),
      failed: [],
    },
  })),
  run_failed: [1, 5].map((count) => ({
    runs: {
      failed: Array.from({ length: count }, (_, at) =>
        run(`r-${at}`, { endedAt: AT, error: { code: "terminal", message: "the quota is 0" } }),
      ),
      blocked: [],
    },
  })),
  backlog: [{ controllers: [{ ...waiting, active: 4, slots: 4 }] }, { controllers: [waiting] }],
  failing: [
    { controllers: [{ ...CONTROLLER, minutes: failingMinutes }] },
    {
      controllers: [{ ...CONTROLLER, minutes: failingMinutes }],
      troubles: new Map([
        [
          "pool",
          {
            lost: 0,
            deadLetters: [],
            errors: [{ code: "handler_failed", text: "refused", atMs: 1 }],
          },
        ],
      ]),
    },
  ],
  source_failing: (["poll", "stream", "inbound"] as const).map((kind) => ({
    sources: [
      {
        cluster: "default",
        controller: "pool",
        name: "github",
        kind,
        state: "failing" as const,
        failures: 3,
        failingSince: AT,
        error: "no route",
        waiting: 2,
      },
    ],
  })),
  audit_not_delivered: [
    { auditTargets: [{ sink: "file", lagMs: 1_800_000, lost: 0 }] },
    { auditTargets: [{ sink: "http", lagMs: 0, lost: 1, lostAtMs: HALF_AN_HOUR_AGO }] },
  ],
  notification_failing: [
    {
      notifications: [
        notification({
          tries: 2,
          createdAtMs: HALF_AN_HOUR_AGO,
          lastTries: [{ atMs: NOW, status: 503 }],
        }),
      ],
    },
    {
      notifications: [
        notification({
          state: "failed",
          tries: 1,
          createdAtMs: HALF_AN_HOUR_AGO,
          endedAtMs: HALF_AN_HOUR_AGO,
          lastTries: [{ atMs: NOW, error: "no route" }],
        }),
      ],
    },
  ],
  lost: [
    {
      troubles: new Map([
        ["pool", { lost: 2, lostMs: HALF_AN_HOUR_AGO, deadLetters: [], errors: [] }],
      ]),
    },
  ],
  loop: [
    { episodes: [episode({ kind: "selfTriggered", managers: [], isThrottled: true })] },
    { loops: new Map([[KEY, loop()]]) },
    { loops: new Map([[KEY, loop({ kind: "ownershipFlip", managers: ["argocd"] })]]) },
    { loops: new Map(many((at) => [`${KEY}-${at}`, loop()] as const)) },
    { loops: new Map(many((at) => [`${KEY}-${at}`, loop({ paths: [`spec.${at}`] })] as const)) },
  ],
  contention: [
    { episodes: [episode({})] },
    { episodes: [episode({ kind: "conflict", fields: [], managers: [] })] },
    { episodes: many((at) => episode({}, `a-${at}`)) },
    { episodes: many((at) => episode({ fields: [`spec.${at}`] }, `a-${at}`)) },
  ],
  clock_skew: [-5_000, 3_600_000].map((aheadMs) => ({
    workers: [{ ...worker(), clockSkew: { aheadMs, sinceMs: HALF_AN_HOUR_AGO } }],
  })),
  version_skew: [{ workers: [worker(), worker("bbbbbbbb")] }],
  paused: [
    { pauses: [pause({ kind: "controller" })] },
    { pauses: [pause({ kind: "namespace", namespace: "blue" })] },
    { pauses: [pause({ kind: "key", key: KEY })] },
  ],
};

const CASES = OVERVIEW_PROBLEMS.flatMap((code) =>
  SITUATIONS[code].map(
    (situation, at) => [`${code}, situation ${at + 1}`, code, situation] as const,
  ),
);

test.each(CASES)(
  "%s: the problem has its start, cause, effect and next step",
  (_, code, situation) => {
    const { problems } = findProblems({ ...HEALTHY, ...situation });
    const found = problems.filter((problem) => problem.code === code);
    expect(found).not.toEqual([]);
    for (const { message, since, cause, consequence, action } of found) {
      const texts = { message, cause, consequence, action };
      for (const [field, text] of Object.entries(texts)) {
        expect(text, `${field} of "${message}"`).toMatch(/^\S.*\S$/);
        expect(text).not.toMatch(/undefined|NaN|null/);
      }
      expect(Date.parse(since ?? ""), `start of "${message}"`).toBeLessThanOrEqual(NOW);
      expect(Date.parse(since ?? "")).toBeGreaterThan(NOW - 3_600_000);
    }
  },
);

test("a full Redis is the cause of missing heartbeats, so missing workers are not reported", () => {
  const full = { usedBytes: 100, maxBytes: 100, highMs: HALF_AN_HOUR_AGO };
  const { problems } = findProblems({ ...HEALTHY, workers: [], redis: full });
  expect(problems.map(({ code }) => code)).toEqual(["redis_memory"]);
});

test("a healthy cluster has no problems", () => {
  expect(findProblems(HEALTHY).problems).toEqual([]);
});

test("undelivered audit entries, lost ones, and the notifications of a receiver are problems of their own", () => {
  const failed = { state: "failed", tries: 1, endedAtMs: NOW, lastTries: [] } as const;
  const waits = notification({
    tries: 4,
    createdAtMs: HALF_AN_HOUR_AGO,
    lastTries: [{ atMs: NOW - 5, error: "no route" }],
  });
  const { problems } = findProblems({
    ...HEALTHY,
    auditTargets: [{ sink: "http", lagMs: 600_000, lost: 2, lostAtMs: NOW }],
    notifications: [waits, notification(failed), notification({ ...failed, receiver: "pager" })],
  });
  expect(problems.map((problem) => problem.message)).toEqual([
    "The audit log is not delivered to its receiver",
    "2 entries of the audit log did not reach its receiver",
    "slack does not accept 2 notifications",
    "pager does not accept 1 notification",
  ]);
  expect(problems[2]).toMatchObject({ cause: "no route", count: 2, since: AT });
});

test("loops and other contention are ranked by their cost", () => {
  const loops = new Map([[KEY.replace("blue", "red"), loop()]]);
  const self = episode({ kind: "selfTriggered", managers: [], perMinute: 5 }, "self");
  const codes = findProblems({ ...HEALTHY, episodes: [episode({}), self], loops }).problems;
  expect(codes.map(({ code }) => code)).toEqual(["contention", "loop", "loop"]);
});

test("objects with the same writers and fields are one problem", () => {
  const same = many((at) => episode({ key: `${KEY}-${at}` }, `a-${at}`));
  const other = episode({ fields: ["spec.size"], perMinute: 1, wastedWrites: 30 }, "b");
  const { problems } = findProblems({ ...HEALTHY, episodes: [...same, other] });
  expect(problems).toMatchObject([
    {
      message:
        "argocd-controller and pool overwrite each other's spec.weight of blue/a-0 and 4 more objects: 60 times a minute",
      count: 2_000,
    },
    { message: expect.stringContaining("spec.size of blue/b: once a minute"), key: KEY },
  ]);
  expect(problems[0]?.key).toBeUndefined();
});

test("work waits for a worker from the first request after the last worker", () => {
  const since = (situation: Partial<Findings>) =>
    findProblems({ ...HEALTHY, ...situation }).problems.map((problem) => problem.since);
  const late = { ...waiting, workers: 0, oldestRequestAgeMs: NOW - Date.parse(AT) - 600_000 };
  const [began = ""] = since({ controllers: [late] });
  expect(Math.abs(Date.parse(began) - HALF_AN_HOUR_AGO - 600_000)).toBeLessThan(60_000);
  const early = { ...late, oldestRequestAgeMs: NOW - Date.parse(AT) + 600_000 };
  expect(since({ controllers: [early] })).toEqual([AT]);
});
