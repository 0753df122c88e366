import { RUN_STATUSES } from "@konverge/core";
import { beforeEach, describe, expect, test } from "vitest";
import { cancelScript } from "../../../libs/workflow/src/store/scripts/cancel.ts";
import { claimScript } from "../../../libs/workflow/src/store/scripts/claim.ts";
import { commitScript } from "../../../libs/workflow/src/store/scripts/commit.ts";
import { leaveScript } from "../../../libs/workflow/src/store/scripts/leave.ts";
import { noteScript } from "../../../libs/workflow/src/store/scripts/note.ts";
import { resumeScript } from "../../../libs/workflow/src/store/scripts/resume.ts";
import { signalScript } from "../../../libs/workflow/src/store/scripts/signal.ts";
import { startScript } from "../../../libs/workflow/src/store/scripts/start.ts";
import { sweepScript } from "../../../libs/workflow/src/store/scripts/sweep.ts";
import { watchScript } from "../../../libs/workflow/src/store/scripts/watch.ts";
import { runNames, type RunNames } from "../../../libs/workflow/src/store/run-names.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";
import { runRaw } from "../../support/run-raw.ts";

const harness = useQueues();
const RETENTION_MS = 60_000;
let names: RunNames;
beforeEach(() => {
  names = runNames(harness.prefix, "c", "w");
});

const run = (id = "r") => harness.redis.hgetall(names.run(id));
const set = (fields: Record<string, string | number>, id = "r") =>
  harness.redis.hset(names.run(id), fields);
/** The next check for a lost wake-up, in units of 10 s from now. */
const wakeIn = async (id = "r") => {
  const score = await harness.redis.zscore(names.wakes, id);
  return score === null ? undefined : Math.ceil((Number(score) - Date.now()) / 10_000);
};
/** The statuses under which the index has a run, with its score. */
const indexed = async (id = "r") => {
  const found: Record<string, string> = {};
  for (const status of RUN_STATUSES) {
    const score = await harness.redis.zscore(`${names.statuses}${status}`, id);
    if (score !== null) found[status] = score;
  }
  return found;
};
const start = (
  id: string,
  {
    key = "",
    policy = "attach",
    parent = "",
    by = "",
    uid = "",
    generation = "",
    object = "",
    notify = "",
  } = {},
) =>
  runRaw(harness.redis, startScript, {
    keys: {
      run: names.run(id),
      answers: names.answers(id),
      answeredIds: names.answeredIds(id),
      logs: names.logs(id),
      wakes: names.wakes,
      index: names.index,
      endedRuns: names.ended,
      cancelling: names.cancelling,
      fences: names.fences,
      holder: names.holder(key),
      last: names.last(key),
      lastChecks: names.lastChecks,
    },
    args: {
      id,
      version: 1,
      input: '{"a":1}',
      key,
      onExisting: policy,
      maxQueued: 10,
      parentWorkflow: parent === "" ? "" : "w",
      parent,
      parentStep: parent === "" ? "" : "s",
      parentRun: names.run(parent),
      parentSteps: names.steps(parent),
      parentRound: "",
      runRoot: names.runRoot,
      statuses: names.statuses,
      by,
      retry: "",
      scheduledAt: "",
      uid,
      generation,
      object,
      notify,
      labels: "",
    },
  });
/** The epochs of the claims of a test, in order: `commit(1, ...)` is a call of the first claim. */
const epochs: string[] = [];
beforeEach(() => void epochs.splice(0));
const claim = async (lease: number, owner: string, anew = false) => {
  const [answer = []] = (await runRaw(harness.redis, claimScript, {
    each: [
      {
        run: names.run("r"),
        steps: names.steps("r"),
        signals: names.signals("r"),
        signalNames: names.signalNames("r"),
        wakes: names.wakes,
        fences: names.fences,
        codes: names.codes,
        lease,
        owner,
        anew,
        code: "",
        id: "r",
        runRoot: names.runRoot,
        statuses: names.statuses,
      },
    ],
  })) as string[][];
  if (answer[0] === "held") epochs.push(answer[1] ?? "");
  return answer;
};
const epochOf = (nth: number) => epochs[nth - 1] ?? "none";
const commit = (
  nth: number,
  step: string,
  record: string,
  { taken = "", cancels = "", warnings = "" } = {},
) =>
  runRaw(harness.redis, commitScript, {
    keys: {
      run: names.run("r"),
      steps: names.steps("r"),
      signals: names.signals("r"),
      signalNames: names.signalNames("r"),
      cancelling: names.cancelling,
      answers: names.answers("r"),
    },
    args: {
      epoch: epochOf(nth),
      step,
      record,
      taken,
      takenName: "n",
      cancels,
      cancelNumber: cancels === "" ? "" : "1",
      warnings,
      published: "",
      update: "",
      code: "",
    },
  }) as Promise<[string, string?]>;
const note = (nth: number, attempts: number, delayMs: number, keep = false, more = "") =>
  runRaw(harness.redis, noteScript, {
    keys: { run: names.run("r"), steps: names.steps("r"), silent: names.silent },
    args: {
      id: "r",
      epoch: epochOf(nth),
      step: "s",
      attempts,
      delayMs,
      keep,
      more,
      beatAtMs: "",
      silentMs: "",
    },
  }) as Promise<[string, string?]>;
const leave = async (
  nth: number,
  kind: string,
  { wakeAt = "", text = "", wakeSeq = "0", objects = "" } = {},
) => {
  const [answer = []] = (await runRaw(harness.redis, leaveScript, {
    each: [
      {
        run: names.run("r"),
        steps: names.steps("r"),
        signals: names.signals("r"),
        signalNames: names.signalNames("r"),
        seen: names.seen("r"),
        refusals: names.refusals("r"),
        wakes: names.wakes,
        endedRuns: names.ended,
        cancelling: names.cancelling,
        holder: names.holder("k"),
        index: names.index,
        waitKinds: names.waitKinds,
        rechecks: names.rechecks,
        last: names.last("k"),
        lastChecks: names.lastChecks,
        epoch: epochOf(nth),
        kind,
        untilMs: wakeAt,
        text,
        blockedError: "",
        id: "r",
        wakeSeq,
        retentionMs: RETENTION_MS,
        statuses: names.statuses,
        objects,
        awaited: "",
        member: "w/r",
        waitRoot: names.waitRoot,
        published: "",
      },
    ],
  })) as string[][];
  return answer;
};
const signal = (id: string, most = 10) =>
  runRaw(harness.redis, signalScript, {
    keys: {
      run: names.run("r"),
      signals: names.signals("r"),
      signalNames: names.signalNames("r"),
      seen: names.seen("r"),
      wakes: names.wakes,
    },
    args: {
      id: "r",
      name: "n",
      signalId: id,
      signal: `{"name":"n","id":"${id}"}`,
      most,
      mostBytes: 1_000,
    },
  });
const cancel = () =>
  runRaw(harness.redis, cancelScript, {
    keys: { run: names.run("r"), wakes: names.wakes, cancelling: names.cancelling },
    args: { id: "r", resumes: false, statuses: names.statuses, request: '{"by":"a"}' },
  });

describe("start", () => {
  test("creates a run that is requested again if it is not claimed", async () => {
    expect(await start("r", { parent: "p", by: "ann" })).toEqual(["created", ""]);
    expect(await run()).toMatchObject({
      status: "queued",
      version: "1",
      input: '{"a":1}',
      parent: "p",
      by: "ann",
      epoch: "0",
    });
    expect(await wakeIn()).toBe(1);
    expect(await start("r")).toEqual(["exists"]);
  });

  test.each([
    { policy: "attach", answer: ["attached", "a"], holder: "a" },
    { policy: "reject", answer: ["rejected", "a"], holder: "a" },
    { policy: "supersede", answer: ["created", "a"], holder: "b" },
    { policy: "queue", answer: ["created", ""], holder: "b" },
  ])("$policy while another run holds the key", async ({ policy, answer, holder }) => {
    await start("a", { key: "k" });
    expect(await start("b", { key: "k", policy })).toEqual(answer);
    expect(await harness.redis.get(names.holder("k"))).toBe(holder);
    const isSuperseded = policy === "supersede";
    const isBehind = holder === "b";
    expect((await run("a"))["next"]).toBe(isBehind ? "b" : undefined);
    expect(await harness.redis.hkeys(names.cancelling)).toEqual(isSuperseded ? ["a"] : []);
    expect((await run("b"))["after"]).toBe(isBehind ? "a" : undefined);
  });

  test.each(["done", "failed", "cancelled"])("a %s run holds no key", async (status) => {
    await start("a", { key: "k" });
    await set({ status }, "a");
    expect(await start("b", { key: "k", policy: "reject" })).toEqual(["created", ""]);
  });
});

test.each([
  { last: "2", uid: "u", generation: "1", status: "running", answer: ["attached", "a"] },
  { last: "2", uid: "u", generation: "1", status: "done", answer: ["attached", "a"] },
  { last: "2", uid: "u", generation: "2", status: "running", answer: ["created", "a"] },
  { last: "9", uid: "u", generation: "10", status: "running", answer: ["created", "a"] },
  { last: "2", uid: "v", generation: "1", status: "running", answer: ["created", "a"] },
  { last: "2", uid: "", generation: "", status: "done", answer: ["created", ""] },
])(
  "P8: a start for generation $generation of $uid after one for $last of u that is $status",
  async ({ last, uid, generation, status, answer }) => {
    await start("a", { key: "k", uid: "u", generation: last });
    await set({ status }, "a");
    expect(await start("b", { key: "k", policy: "supersede", uid, generation })).toEqual(answer);
  },
);

describe("claim", () => {
  test.each([
    {
      stored: { lease: 3, owner: "x" },
      lease: 4,
      owner: "y",
      anew: false,
      answer: "held",
      raises: true,
    },
    {
      stored: { lease: 3, owner: "x" },
      lease: 3,
      owner: "x",
      anew: false,
      answer: "held",
      raises: false,
    },
    {
      stored: { lease: 3, owner: "x" },
      lease: 3,
      owner: "y",
      anew: false,
      answer: "fenced",
      raises: false,
    },
    {
      stored: { lease: 3, owner: "x" },
      lease: 2,
      owner: "y",
      anew: false,
      answer: "fenced",
      raises: false,
    },
    {
      stored: { lease: 3, owner: "x" },
      lease: 1,
      owner: "y",
      anew: true,
      answer: "held",
      raises: true,
    },
  ])(
    "lease $lease of $owner, anew $anew: $answer",
    async ({ stored, lease, owner, anew, answer, raises }) => {
      await start("r");
      await set({ ...stored, epoch: 7 });
      const [kind, held] = await claim(lease, owner, anew);
      expect(kind).toBe(answer);
      const epoch = (await run())["epoch"];
      expect(Number(epoch) > 7).toBe(raises);
      if (kind === "held") expect(held).toBe(epoch);
      expect((await run())["status"]).toBe(kind === "held" ? "running" : "queued");
    },
  );

  test("returns the state, and whether the previous execution has left the run", async () => {
    expect(await claim(1, "x")).toEqual(["missing"]);
    await start("r");
    await signal("1");
    await claim(1, "x");
    expect((await run())["died"]).toBe("");
    await commit(1, "s", '{"kind":"step"}');
    const answer = (await claim(2, "y")) as unknown as string[][];
    expect((await run())["died"]).toBe("1");
    expect(answer[4]?.[0]).toBe("s");
    expect(answer[5]).toBe(1);
    await leave(2, "blocked");
    await claim(3, "z");
    expect((await run())["died"]).toBe("1");
    await leave(3, "waiting");
    await claim(4, "z");
    expect((await run())["died"]).toBe("");
  });

  test("a run waits for the one that it replaces; an ended run returns its followers", async () => {
    await start("a", { key: "k" });
    await start("r", { key: "k", policy: "supersede", parent: "p", notify: "key" });
    expect(await claim(1, "x")).toEqual(["waiting"]);
    await set({ status: "cancelled" }, "a");
    expect((await claim(1, "x"))[0]).toBe("held");
    await set({ status: "done", next: "n" });
    expect(await claim(2, "y")).toEqual(["ended", "w", "p", "n", "key"]);
  });

  test("P8: an execution whose claim a failover lost cannot write beside its successor", async () => {
    await start("r");
    const backup = await harness.redis.dumpBuffer(names.run("r"));
    await claim(1, "x");
    await harness.redis.restore(names.run("r"), 0, backup, "REPLACE");
    await until("the next millisecond", async () => {
      const [s, us] = await harness.redis.time();
      return Number(s) * 1_000 + Math.floor(Number(us) / 1_000) > Number(epochOf(1));
    });
    await claim(1, "y");
    expect(await commit(1, "s", '{"kind":"step"}')).toEqual(["fenced"]);
    expect(await note(1, 1, 1)).toEqual(["fenced"]);
    expect(await leave(1, "done", { text: "1" })).toEqual(["fenced"]);
    expect((await commit(2, "s", '{"kind":"step"}'))[0]).toBe("committed");
  });
});

describe("commit", () => {
  beforeEach(async () => {
    await start("r");
    await claim(1, "x");
  });

  test("the first record stays, in the order of commits", async () => {
    const [kind, text = ""] = await commit(1, "s", '{"kind":"step","value":1}');
    expect(kind).toBe("committed");
    expect(JSON.parse(text)).toMatchObject({ kind: "step", value: 1, seq: 1 });
    expect(await commit(1, "s", '{"kind":"step","value":2}')).toEqual(["exists", text]);
    expect(JSON.parse((await commit(1, "t", '{"kind":"step"}'))[1] ?? "")).toMatchObject({
      seq: 2,
    });
  });

  test("P8: an older epoch records, consumes and notes nothing", async () => {
    await signal("1");
    await claim(2, "y");
    const [taken = ""] = await harness.redis.hkeys(names.signals("r"));
    expect(await commit(1, "s", '{"kind":"signal"}', { taken })).toEqual(["fenced"]);
    expect(await note(1, 1, 1)).toEqual(["fenced"]);
    expect(await leave(1, "done", { text: "1" })).toEqual(["fenced"]);
    expect(await harness.redis.hlen(names.steps("r"))).toBe(0);
    expect(await harness.redis.hlen(names.signals("r"))).toBe(1);
    expect((await run())["status"]).toBe("running");
  });

  test("consumes a signal atomically, once", async () => {
    await signal("1");
    const [taken = ""] = await harness.redis.hkeys(names.signals("r"));
    expect((await commit(1, "s", '{"kind":"signal"}', { taken }))[0]).toBe("committed");
    expect(await harness.redis.hlen(names.signals("r"))).toBe(0);
    expect(await harness.redis.exists(names.signalNames("r"))).toBe(0);
    expect((await run())["signalBytes"]).toBe("0");
    // The call is repeated after a lost response; then another step wants the same signal.
    expect((await commit(1, "s", '{"kind":"signal"}', { taken }))[0]).toBe("exists");
    expect(await commit(1, "t", '{"kind":"signal"}', { taken })).toEqual(["taken"]);
    expect(await harness.redis.hexists(names.steps("r"), "t")).toBe(0);
  });

  test("removes progress with the record", async () => {
    await note(1, 1, 5);
    await commit(1, "s", '{"kind":"sleep"}');
    expect(await harness.redis.hkeys(names.steps("r"))).toEqual(["s"]);
  });

  test("stores warnings with the record, and keeps them until they are replaced", async () => {
    await commit(1, "a", '{"k":1}', { warnings: "[1]" });
    await commit(1, "b", '{"k":1}');
    expect(await harness.redis.hget(names.run("r"), "warnings")).toBe("[1]");
    expect((await commit(0, "c", '{"k":1}', { warnings: "[2]" }))[0]).toBe("fenced");
    expect(await harness.redis.hget(names.run("r"), "warnings")).toBe("[1]");
  });

  test("a thrown cancellation is no longer pending", async () => {
    await cancel();
    expect(await harness.redis.hkeys(names.cancelling)).toEqual(["r"]);
    await commit(1, "s", '{"kind":"step"}', { cancels: "r" });
    expect(await harness.redis.hkeys(names.cancelling)).toEqual([]);
    expect((await run())["cancelledAt"]).toBe("s");
  });
});

test("note counts attempts, and keeps the first deadline of a wait", async () => {
  await start("r");
  await claim(1, "x");
  const [, first = ""] = await note(1, 0, 1_000, true);
  expect((await note(1, 0, 9_000, true))[1]).toBe(first);
  const [, counted = ""] = await note(1, 2, 9_000);
  expect(JSON.parse(counted)).toEqual({ attempts: 2, untilMs: expect.any(Number) });
  const [, spared = ""] = await note(1, 2, 9_000, false, '{"uncounted":3,"message":"a \\"b\\""}');
  expect(JSON.parse(spared)).toMatchObject({ attempts: 2, uncounted: 3, message: 'a "b"' });
});

describe("leave", () => {
  const untilMs = Date.now() + 100_000;
  beforeEach(async () => {
    await start("r", { key: "k", parent: "p" });
    await claim(1, "x");
  });

  test.each([
    { kind: "waiting", wakeAt: "", status: "waiting", wake: undefined },
    { kind: "waiting", wakeAt: String(untilMs), status: "waiting", wake: 11 },
    { kind: "blocked", wakeAt: String(untilMs), status: "blocked", wake: 11 },
  ])("$kind wakeAt $wakeAt", async ({ kind, wakeAt, status, wake }) => {
    expect(await leave(1, kind, { wakeAt, text: "why" })).toEqual(["left", "w", "p", "", ""]);
    expect(await run()).toMatchObject({
      status,
      waitingUntil: wakeAt,
      reason: kind === "blocked" ? "why" : "",
      waits: kind === "waiting" ? "why" : "",
    });
    expect(await wakeIn()).toBe(wake);
  });

  test("events since the claim are checked immediately", async () => {
    await signal("1");
    await leave(1, "waiting");
    expect(await wakeIn()).toBeLessThanOrEqual(0);
  });

  test("a compensating run keeps its status when it waits", async () => {
    await leave(1, "compensating", { text: '{"status":"failed"}' });
    expect((await run())["status"]).toBe("compensating");
    await leave(1, "waiting");
    expect((await run())["status"]).toBe("compensating");
    await claim(2, "y");
    expect((await run())["status"]).toBe("compensating");
  });

  test.each([
    { kind: "done", field: "result" },
    { kind: "failed", field: "error" },
    { kind: "cancelled", field: "error" },
  ])(
    "$kind ends the run: it expires, has no wake-up, and a repeated call changes nothing",
    async ({ kind, field }) => {
      await cancel();
      await commit(1, "s", '{"kind":"step"}');
      expect(await leave(1, kind, { text: "7" })).toEqual(["left", "w", "p", "", "", []]);
      expect(await leave(1, "failed", { text: "8" })).toEqual(["left", "w", "p", "", ""]);
      expect(await run()).toMatchObject({ status: kind, [field]: "7" });
      for (const name of [names.run("r"), names.steps("r"), names.holder("k")]) {
        expect(await harness.redis.pttl(name)).toBeGreaterThan(RETENTION_MS / 2);
      }
      expect(await wakeIn()).toBe(undefined);
      expect(await harness.redis.hkeys(names.cancelling)).toEqual([]);
      expect(await signal("late")).toBe("ended");
      expect(await cancel()).toBe("ended");
    },
  );
});

describe("the index by status", () => {
  const createdAt = async () => (await run())["createdAt"] ?? "";
  const untilMs = String(Date.now() + 100_000);

  test.each([
    { steps: [], status: "queued" },
    { steps: ["claim"], status: "running" },
    { steps: ["claim", "claim"], status: "running" },
    { steps: ["claim", "waiting"], status: "waiting" },
    { steps: ["claim", "waiting", "claim"], status: "running" },
    { steps: ["claim", "blocked"], status: "blocked" },
    { steps: ["claim", "compensating"], status: "compensating" },
    { steps: ["claim", "compensating", "waiting", "claim"], status: "compensating" },
    { steps: ["claim", "compensating", "blocked", "claim"], status: "compensating" },
    { steps: ["claim", "done"], status: "done" },
    { steps: ["claim", "done", "failed"], status: "done" },
    { steps: ["claim", "compensating", "failed"], status: "failed" },
    { steps: ["claim", "blocked", "claim", "cancelled"], status: "cancelled" },
  ])("after $steps has the run only as $status, by its creation", async ({ steps, status }) => {
    await start("r");
    let claims = 0;
    for (const step of steps) {
      if (step === "claim") await claim(++claims, `owner ${claims}`);
      else await leave(claims, step, { wakeAt: untilMs, text: "{}" });
    }
    expect((await run())["status"]).toBe(status);
    expect(await indexed()).toEqual({ [status]: await createdAt() });
  });

  test("a rejected claim and an old epoch change nothing", async () => {
    await start("r");
    await claim(2, "x");
    expect(await claim(1, "y")).toEqual(["fenced"]);
    expect(await leave(0, "done")).toEqual(["fenced"]);
    expect(Object.keys(await indexed())).toEqual(["running"]);
  });

  test("each ending run removes two expired runs", async () => {
    const longAgo = Date.now() - 2 * RETENTION_MS;
    for (const [at, id] of ["a", "b", "c"].entries()) {
      await harness.redis.zadd(names.ended, longAgo + at, id);
      for (const name of [names.index, `${names.statuses}done`])
        await harness.redis.zadd(name, 1, id);
    }
    await start("r");
    await claim(1, "x");
    await leave(1, "done", { text: "1" });
    for (const name of [names.index, `${names.statuses}done`, names.ended]) {
      expect(await harness.redis.zrange(name, "0", "-1")).toEqual(["c", "r"]);
    }
  });
});

describe("the index of waits", () => {
  const watch = (nth: number, objects: string) =>
    runRaw(harness.redis, watchScript, {
      keys: { run: names.run("r"), waitKinds: names.waitKinds, rechecks: names.rechecks },
      args: { epoch: epochOf(nth), member: "w/r", id: "r", waitRoot: names.waitRoot, objects },
    });
  const A = "c/v1/Pod/team/a";
  const B = "c/v1/Pod/team/b";
  const C = "c/apps%2Fv1/Deployment/team/a";
  const index = async () => {
    const { redis } = harness;
    const kinds = (await redis.smembers(names.waitKinds)).toSorted();
    const entries = await Promise.all(
      kinds.map(async (kind) =>
        (await redis.zrange(names.waitRoot + kind, "0", "-1")).map((entry) => `${kind}/${entry}`),
      ),
    );
    return entries.flat();
  };
  const recheckIn = async () => {
    const score = await harness.redis.zscore(names.rechecks, "r");
    return score === null ? undefined : Math.ceil((Number(score) - Date.now()) / 10_000);
  };
  beforeEach(async () => {
    await start("r");
    await claim(1, "x");
  });

  test("has a run under each of its objects, once", async () => {
    expect(await watch(1, `${A} ${B}`)).toBe("watched");
    expect(await watch(1, `${C} ${A}`)).toBe("watched");
    expect(await index()).toEqual([`${C}/w/r`, `${A}/w/r`, `${B}/w/r`]);
    expect((await run())["watched"]).toBe(`${A} ${B} ${C}`);
    expect(await recheckIn()).toBe(3);
  });

  test("P8: an older epoch adds and removes nothing", async () => {
    await watch(1, A);
    await claim(2, "y");
    expect(await watch(1, B)).toBe("fenced");
    expect(await leave(1, "waiting")).toEqual(["fenced"]);
    expect(await index()).toEqual([`${A}/w/r`]);
  });

  test.each([
    { kind: "waiting", objects: `${A} ${C}`, left: [`${C}/w/r`, `${A}/w/r`] },
    { kind: "waiting", objects: "", left: [] },
    { kind: "blocked", objects: "", left: [] },
    { kind: "done", objects: "", left: [] },
    { kind: "failed", objects: "", left: [] },
    { kind: "cancelled", objects: "", left: [] },
    { kind: "compensating", objects: "", left: [`${C}/w/r`, `${A}/w/r`, `${B}/w/r`] },
  ])("$kind with [$objects] leaves $left", async ({ kind, objects, left }) => {
    await watch(1, `${A} ${B} ${C}`);
    await leave(1, kind, { objects, wakeAt: kind === "blocked" ? String(Date.now()) : "" });
    expect(await index()).toEqual(left);
    expect(await recheckIn()).toBe(left.length > 0 ? 3 : undefined);
    expect(await harness.redis.exists(names.waitKinds)).toBe(left.length > 0 ? 1 : 0);
  });
});

describe("resume", () => {
  const resume = (nth: number, { kept = 0, drop = [] as readonly string[] } = {}) =>
    runRaw(harness.redis, resumeScript, {
      keys: {
        run: names.run("r"),
        steps: names.steps("r"),
        signals: names.signals("r"),
        signalNames: names.signalNames("r"),
        seen: names.seen("r"),
        refusals: names.refusals("r"),
        answers: names.answers("r"),
        wakes: names.wakes,
        endedRuns: names.ended,
        holder: names.holder("k"),
        fences: names.fences,
      },
      args: {
        id: "r",
        epoch: epochOf(nth),
        runRoot: names.runRoot,
        statuses: names.statuses,
        author: '{"by":"ann"}',
        kept,
      },
      each: drop.map((field) => ({ field, update: "", signal: "" })),
    });
  beforeEach(async () => {
    await start("r", { key: "k" });
    await claim(1, "x");
  });

  test.each(["failed", "cancelled"])("a %s run resumes after the kept records", async (status) => {
    await signal("1");
    await commit(1, "a", '{"kind":"step"}');
    await commit(1, "b", '{"kind":"step","error":{}}');
    await note(1, 3, 1_000);
    await cancel();
    await leave(1, "compensating", { text: "{}" });
    await leave(1, status, { text: "{}" });
    expect(await resume(1, { kept: 1, drop: ["b", "s~"] })).toEqual(["resumed"]);
    expect(await harness.redis.hkeys(names.steps("r"))).toEqual(["a"]);
    const now = await run();
    const raised = String(Number(epochOf(1)) + 1);
    expect(now).toMatchObject({ status: "queued", seq: "1", epoch: raised, retry: '{"by":"ann"}' });
    const left = ["error", "endedAt", "cancel", "failing"].filter((field) => field in now);
    expect(left).toEqual([]);
    expect(await indexed()).toEqual({ queued: now["createdAt"] });
    expect(await harness.redis.zscore(names.ended, "r")).toBe(null);
    expect(await wakeIn()).toBe(1);
    for (const name of [names.run("r"), names.steps("r"), names.signals("r"), names.seen("r")]) {
      expect(await harness.redis.pttl(name)).toBe(-1);
    }
    expect(await harness.redis.pttl(names.holder("k"))).toBe(-1);
    expect((await claim(2, "y"))[0]).toBe("held");
    const [, text = ""] = await commit(2, "b", '{"kind":"step"}');
    expect(JSON.parse(text)).toMatchObject({ seq: 2 });
  });

  test("P8: earlier holders and outdated plans change nothing", async () => {
    await leave(1, "failed", { text: "{}" });
    expect(await resume(1)).toEqual(["resumed"]);
    expect(await commit(1, "late", '{"kind":"step"}')).toEqual(["fenced"]);
    expect(await leave(1, "done", { text: "1" })).toEqual(["fenced"]);
    expect(await resume(1)).toEqual(["changed"]);
    await claim(2, "y");
    await leave(2, "failed", { text: "{}" });
    expect(await resume(1)).toEqual(["changed"]);
    expect(await harness.redis.hlen(names.steps("r"))).toBe(0);
  });

  test.each(["queued", "running", "waiting", "blocked", "compensating", "done"])(
    "a %s run does not change",
    async (status) => {
      await set({ status });
      expect(await resume(1)).toEqual(["changed"]);
      expect((await run())["status"]).toBe(status);
    },
  );

  test("a key that another run holds stays with it until that run has ended", async () => {
    await leave(1, "failed", { text: "{}" });
    await start("b", { key: "k" });
    expect(await resume(1)).toEqual(["rejected", "b"]);
    expect((await run())["status"]).toBe("failed");
    await set({ status: "done" }, "b");
    expect(await resume(1)).toEqual(["resumed"]);
    expect(await harness.redis.get(names.holder("k"))).toBe("r");
  });
});

test("stores a signal once by id, up to the limit, and schedules a sweep", async () => {
  expect(await signal("1")).toBe("missing");
  expect(await cancel()).toBe("missing");
  await start("r");
  await claim(1, "x");
  await leave(1, "waiting");
  expect(await signal("1", 1)).toBe("stored");
  expect(await signal("1", 1)).toBe("duplicate");
  expect(await signal("2", 1)).toBe("full");
  expect(await harness.redis.hlen(names.signals("r"))).toBe(1);
  expect(await wakeIn()).toBe(1);
});

const sweep = (most: number) =>
  runRaw(harness.redis, sweepScript, {
    keys: {
      wakes: names.wakes,
      endedRuns: names.ended,
      index: names.index,
      rechecks: names.rechecks,
      recheckGap: names.recheckGap,
      lastChecks: names.lastChecks,
    },
    args: {
      most,
      retentionMs: RETENTION_MS,
      limitBytes: "",
      statuses: names.statuses,
      lastRoot: names.lastRoot,
      runRoot: names.runRoot,
    },
  });

test("the sweep returns overdue runs, not twice at once, and removes expired ones", async () => {
  const nowMs = Date.now();
  for (const [name, id, score] of [
    [names.wakes, "due", nowMs - 5_000],
    [names.wakes, "later", nowMs + 60_000],
    [names.rechecks, "waiting", nowMs - 5_000],
    [names.rechecks, "waiting later", nowMs + 60_000],
    [names.ended, "gone", nowMs - 2 * RETENTION_MS],
    [names.ended, "kept", nowMs],
    [names.index, "gone", 1],
    [names.index, "kept", 2],
    [`${names.statuses}failed`, "gone", 1],
    [`${names.statuses}failed`, "kept", 2],
  ] as const) {
    await harness.redis.zadd(name, score, id);
  }
  expect(await sweep(10)).toEqual([["due", "waiting"], [], 0, 0]);
  expect(await sweep(10)).toEqual([[], [], 0, 0]);
  expect(await harness.redis.zrange(names.index, "0", "-1")).toEqual(["kept"]);
  expect(await harness.redis.zrange(`${names.statuses}failed`, "0", "-1")).toEqual(["kept"]);
});

test("only one sweep at a time returns runs that wait for objects, so more workers make no more calls", async () => {
  for (const [at, id] of ["a", "b", "c"].entries()) {
    await harness.redis.zadd(names.rechecks, at + 1, id);
  }
  expect(await sweep(2)).toEqual([["a", "b"], [], 0, 0]);
  expect(await sweep(2)).toEqual([[], [], 0, 0]);
  expect(await harness.redis.pttl(names.recheckGap)).toBeGreaterThan(0);
  await harness.redis.del(names.recheckGap);
  expect(await sweep(2)).toEqual([["c"], [], 0, 0]);
  // A sweep without such runs does not delay the next one.
  await harness.redis.del(names.recheckGap);
  expect(await sweep(2)).toEqual([[], [], 0, 0]);
  expect(await harness.redis.exists(names.recheckGap)).toBe(0);
});
