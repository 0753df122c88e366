import {
  actOnRunsResponseSchema,
  auditPageSchema,
  runListSchema,
  cancelRunResponseSchema,
  pauseRunResponseSchema,
  runSchema,
  runLogSchema,
  runUpdateSchema,
  startRunResponseSchema,
  type QueueList,
  type RunDetail,
} from "@konverge/contracts";
import type { Trigger } from "@konverge/core";
import { defineWorkflow, type AnyWorkflow } from "@konverge/workflow";
import { expect, test } from "vitest";
import { z } from "zod";
import { announce, openAnnounced } from "../queue/announce.ts";
import { problemIn, useApi, type Call, type Sent } from "./api-harness.ts";
import { until } from "../../support/until.ts";

const harness = useApi();
const names = {
  parse(value: unknown): { readonly name: string } {
    const { name } = value as { readonly name?: unknown };
    if (typeof name !== "string") throw new Error("name: write a text");
    return { name };
  },
};
const approved = defineWorkflow("approved", { version: 3, input: names }, async (w, { name }) => {
  const made = await w.step("make", () => `pool-${name}`);
  const { by } = await w.signal<{ readonly by: string }>("approve");
  return { made, by };
});

/** Announces and runs the workflows, as a worker process does. */
async function work(...workflows: readonly AnyWorkflow[]): Promise<void> {
  const runs = await openAnnounced(harness.queues, workflows);
  runs.work({ workflows });
}

async function start(call: Call, body: object, sent: Sent = {}) {
  const response = await call("/v1/runs", { ...sent, body: { workflow: "approved", ...body } });
  expect(response.status).toBe(202);
  const answer = startRunResponseSchema.parse(await response.json());
  const path = `/v1/runs/${encodeURIComponent(answer.id)}`;
  expect(response.headers.get("location")).toBe(path);
  return { ...answer, path };
}
const get = async (call: Call, path: string): Promise<RunDetail> =>
  runSchema.parse(await (await call(path)).json());
const inStatus = (call: Call, path: string, status: string) =>
  until(`${path} is ${status}`, async () => {
    const run = await get(call, path);
    return run.status === status && run;
  });

test("starts a run, shows its wait, accepts a signal and returns its steps", async () => {
  const call = harness.serve();
  await work(approved);
  const { id, created, path } = await start(call, { input: { name: "web" }, key: "pool/web" });
  expect([id, created]).toEqual([
    expect.stringMatching(/^approved\/default\/[-0-9a-f]{36}$/),
    true,
  ]);
  const parked = await inStatus(call, path, "waiting");
  expect(parked).toMatchObject({ version: 3, key: "pool/web", input: { name: "web" } });
  const since = expect.stringMatching(/Z$/);
  const position = expect.stringContaining("api-runs.test.ts");
  expect(parked.waits).toEqual([{ step: "approve", kind: "signal", since, position }]);
  const again = await start(call, { input: { name: "web" }, key: "pool/web" });
  expect(again).toMatchObject({ id, created: false });

  const signal = { name: "approve", payload: { by: "ann" }, by: "ann" };
  expect((await call(`${path}/signal`, { body: signal })).status).toBe(200);
  const run = await inStatus(call, path, "done");
  expect(run.result).toEqual({ made: "pool-web", by: "ann" });
  expect(run.waits).toBeUndefined();
  expect(run.steps).toMatchObject([
    { name: "make", kind: "step", attempts: 1, value: "pool-web" },
    { name: "approve", kind: "signal", by: "ann", value: { by: "ann" } },
  ]);
  expect(run.steps.at(1)?.startedAt).toBe(parked.waits?.at(0)?.since);
  const late = await call(`${path}/signal`, { body: signal });
  expect(await problemIn(late)).toMatchObject({ status: 409, code: "run_ended" });
});

test("shows the published values of a run without a worker", async () => {
  const call = harness.serve();
  const copying = defineWorkflow("approved", { version: 3 }, async (w) => {
    w.set("progress", { done: 1, of: 3 });
    await w.signal("go");
    return null;
  });
  await work(copying);
  const { path } = await start(call, {});
  const { published } = await inStatus(call, path, "waiting");
  expect(published).toEqual({ progress: { done: 1, of: 3 } });
});

test("lists runs by label, time, version and error", async () => {
  const call = harness.serve();
  await work(approved);
  const gold = { region: "eu", tier: "gold" };
  const { id, path } = await start(call, { input: { name: "web" }, labels: gold });
  const failed = await start(call, { input: { name: 7 }, labels: { region: "eu" } });
  expect((await inStatus(call, path, "waiting")).labels).toEqual(gold);
  const { createdAt } = await inStatus(call, failed.path, "failed");
  const list = async (query: string) => {
    const response = await call(`/v1/runs?${query}`);
    return runListSchema.parse(await response.json()).items.map((run) => run.id);
  };
  expect(await list("label=region%3Deu,tier%3Dgold")).toEqual([id]);
  expect(await list("label=region%3Deu&error=invalid_request&version=3")).toEqual([failed.id]);
  expect(await list(`label=region%3Deu&until=${createdAt}`)).not.toContain(failed.id);
  expect(await list(`since=${createdAt}`)).toContain(failed.id);
  const bad = await call("/v1/runs?label=region&since=monday&version=x");
  expect((await problemIn(bad)).errors?.map(({ pointer }) => pointer)).toEqual([
    "/label",
    "/since",
    "/version",
  ]);
  const wrong = { workflow: "approved", labels: { "a b": "1", b: "" } };
  const refused = await call("/v1/runs", { body: wrong });
  expect((await problemIn(refused)).errors?.map(({ pointer }) => pointer)).toEqual([
    "/labels/a b",
    "/labels/b",
  ]);
});

test("answers an update, once per ID, or refuses it with the invalid field", async () => {
  const call = harness.serve();
  const resized = defineWorkflow("approved", { version: 3 }, async (w) => {
    const schema = z.object({ size: z.int() });
    const sizes = await w.handle("resize", schema, ({ size }, { by }) => ({ size, by: by ?? "" }));
    await w.signal("go");
    return sizes;
  });
  await work(resized);
  const { path } = await start(call, {});
  const update = async (body: object) =>
    await call(`${path}/update`, {
      body: { name: "resize", by: "ann", ...body },
      headers: { prefer: "wait=60" },
    });
  const refused = await problemIn(await update({ payload: { size: "x" }, id: "u1" }));
  expect(refused).toMatchObject({ status: 422, errors: [{ pointer: "/payload/size" }] });
  expect(await problemIn(await update({ payload: { size: "x" }, id: "u1" }))).toMatchObject(
    refused.errors === undefined ? {} : { errors: refused.errors },
  );
  const accepted = { id: "u2", status: "accepted", step: "resize", answer: { size: 3, by: "ann" } };
  for (let count = 0; count < 2; count += 1) {
    const response = await update({ payload: { size: 3 }, id: "u2" });
    expect(runUpdateSchema.parse(await response.json())).toEqual(accepted);
  }
  const { steps } = await inStatus(call, path, "waiting");
  expect(steps).toMatchObject([{ name: "resize", kind: "update", by: "ann" }]);
  const pending = await call(`${path}/update`, { body: { name: "later", by: "ann", id: "u3" } });
  expect(runUpdateSchema.parse(await pending.json())).toEqual({ id: "u3", status: "pending" });
  const late = call(`${path}/update`, {
    body: { name: "later", by: "ann", id: "u4" },
    headers: { prefer: "wait=60" },
  });
  await until("the update is stored", async () => {
    const { unconsumedSignals = [] } = await get(call, path);
    return unconsumedSignals.length === 2;
  });
  await call(`${path}/signal`, { body: { name: "go", by: "ann" } });
  expect(await problemIn(await late)).toMatchObject({ status: 409, code: "run_ended" });
  await harness.access.audit.close();
  const { items } = auditPageSchema.parse(await (await call("/v1/audit")).json());
  const sent = items.filter(({ action }) => action === "run.update");
  const sum = (name: string) =>
    sent.reduce((all, { filter, count = 1 }) => all + (filter === name ? count : 0), 0);
  // Also the refused ones, and the one that the run has not answered.
  expect([sum("resize"), sum("later")]).toEqual([4, 2]);
});

test("passes the trace context of a start on to the first execution", async () => {
  const traceparent = `00-${"a".repeat(32)}-${"1".repeat(16)}-01`;
  const call = harness.serve();
  await announce(harness.queues, [], [approved]);
  const body = { workflow: "approved", id: "traced" };
  for (const headers of [{ traceparent: "no trace context" }, { traceparent }]) {
    const response = await call("/v1/runs", { body, headers });
    expect(response.status).toBe(202);
  }
  const queue = await harness.access.workflowQueue("default", "approved");
  const triggers: Trigger[] = [];
  for await (const [key] of queue.listKeys()) {
    if (key !== undefined) triggers.push(...((await queue.getKey(key))?.triggers ?? []));
  }
  expect(triggers.map((trigger) => trigger.traceparent)).toEqual([undefined, traceparent]);
});

test("returns the log of a run", async () => {
  const call = harness.serve();
  const logging = defineWorkflow("approved", { version: 3 }, async (w) => {
    w.log.info({ files: 2 }, "begin");
    await w.step("copy", ({ log }) => log.warn({}, "slow disk"));
    return null;
  });
  await work(logging);
  const { path } = await start(call, {});
  await inStatus(call, path, "done");
  const { items } = runLogSchema.parse(await (await call(`${path}/logs`)).json());
  const at = expect.stringMatching(/Z$/) as string;
  expect(items).toEqual([
    { at, level: "info", message: "begin", fields: { files: 2 } },
    { at, level: "warn", message: "slow disk", step: "copy", attempt: 1 },
  ]);
});

test("fails a run with invalid input and names the field", async () => {
  const call = harness.serve();
  await work(approved);
  const { path } = await start(call, { input: { name: 7 } });
  const { error, steps } = await inStatus(call, path, "failed");
  expect(error).toMatchObject({
    code: "invalid_request",
    message: 'the input of "approved" does not fit its schema: name: write a text',
  });
  expect(steps).toEqual([]);
});

test("records author and reason of a cancellation", async () => {
  const call = harness.serve();
  await work(approved);
  const { path } = await start(call, { input: { name: "web" } });
  await inStatus(call, path, "waiting");
  const action = { by: "ann", reason: "wrong pool" };
  expect((await call(`${path}/cancel`, { body: action })).status).toBe(200);
  expect(await inStatus(call, path, "cancelled")).toMatchObject({ cancel: action });
});

test("shows unconsumed signals with sender, without payload", async () => {
  const call = harness.serve();
  await work(approved);
  const { path } = await start(call, { input: { name: "web" } });
  expect(await inStatus(call, path, "waiting")).not.toHaveProperty("unconsumedSignals");
  for (const name of ["aprove", "approve"]) {
    const body = { name, id: `of-${name}`, payload: { by: "ann" }, by: "ann" };
    expect((await call(`${path}/signal`, { body })).status).toBe(200);
  }
  const { unconsumedSignals } = await inStatus(call, path, "done");
  const at = expect.stringMatching(/Z$/);
  expect(unconsumedSignals).toEqual([{ name: "aprove", id: "of-aprove", by: "ann", at }]);
});

test("a start with a known id needs the same input, also after the end", async () => {
  const call = harness.serve();
  await work(approved);
  const { path } = await start(call, { id: "a", input: { name: "web" } });
  const again = async (input: unknown) => {
    const response = await call("/v1/runs", { body: { workflow: "approved", id: "a", input } });
    return response.status === 202
      ? startRunResponseSchema.parse(await response.json()).created
      : await problemIn(response);
  };
  const mismatch = { status: 409, code: "input_mismatch" };
  expect(await again({ name: "web" })).toBe(false);
  expect(await again({ name: "db" })).toMatchObject(mismatch);
  const action = { by: "ann", reason: "over" };
  expect((await call(`${path}/cancel`, { body: action })).status).toBe(200);
  await inStatus(call, path, "cancelled");
  expect(await again({ name: "web" })).toBe(false);
  expect(await again(undefined)).toMatchObject(mismatch);
});

test("shows refused signals with sender and reason, without payload", async () => {
  const strict = defineWorkflow(
    "strict",
    { version: 1 },
    async (w) => await w.signal("approve", { schema: names }),
  );
  const call = harness.serve();
  await work(strict);
  const { path } = await start(call, { workflow: "strict" });
  expect(await inStatus(call, path, "waiting")).not.toHaveProperty("refusedSignals");
  for (const [id, payload] of [
    ["wrong", { name: 1 }],
    ["right", { name: "web" }],
  ] as const) {
    const body = { name: "approve", id, payload, by: "ann" };
    expect((await call(`${path}/signal`, { body })).status).toBe(200);
  }
  const { refusedSignals, steps } = await inStatus(call, path, "done");
  const refused = { name: "approve", id: "wrong", by: "ann", message: "name: write a text" };
  const at = expect.stringMatching(/Z$/);
  expect(refusedSignals).toEqual({ count: 1, last: [{ ...refused, at }] });
  expect(JSON.stringify(steps)).not.toContain("wrong");
});

test("shows the heartbeats of a running step, and waits for them if the caller asks for it", async () => {
  const next = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const copy = defineWorkflow("copy", { version: 1 }, async (w) => {
    await w.step("copy", async (ctx) => {
      ctx.heartbeat({ row: 1 });
      await next[0]?.promise;
      ctx.heartbeat({ row: 2 });
      await next[1]?.promise;
    });
  });
  const call = harness.serve();
  await work(copy);
  const { path } = await start(call, { workflow: "copy" });
  const first = await until("the first heartbeat", async () => {
    const run = await get(call, path);
    return run.progress === undefined ? undefined : run;
  });
  const at = expect.stringMatching(/Z$/) as string;
  const beat = (row: number) => ({ at, attempt: 1, progress: { row } });
  expect(first.progress).toEqual([{ step: "copy", attempts: 0, heartbeat: beat(1) }]);
  const state = `running/0~${Date.parse(first.heartbeatAt ?? "")}`;
  const news = get(call, `${path}?wait=60s&lastState=${state}`);
  next[0]?.resolve();
  expect((await news).progress).toMatchObject([{ heartbeat: beat(2) }]);
  next[1]?.resolve();
  const done = await inStatus(call, path, "done");
  expect(done).not.toHaveProperty("progress");
});

test("waits for the end of a run or for a change", async () => {
  const call = harness.serve();
  await work(approved);
  const { path } = await start(call, { input: { name: "web" } });
  const parked = await inStatus(call, path, "waiting");
  expect((await get(call, `${path}?wait=20ms`)).status).toBe("waiting");
  // The state has already changed since, so the response is immediate.
  expect((await get(call, `${path}?wait=60s&lastState=queued/0`)).status).toBe("waiting");
  const news = get(call, `${path}?wait=60s&lastState=waiting/${parked.steps.length}`);
  const end = call(path, { headers: { prefer: "wait=60" } });
  const body = { name: "approve", payload: { by: "ann" }, by: "ann" };
  expect((await call(`${path}/signal`, { body })).status).toBe(200);
  const { status, steps } = await news;
  expect(`${status}/${steps.length}`).not.toBe("waiting/1");
  expect(runSchema.parse(await (await end).json()).status).toBe("done");
  const refused = await call(`${path}?wait=61s&lastState=7`);
  expect((await problemIn(refused)).errors?.map(({ pointer }) => pointer)).toEqual([
    "/wait",
    "/lastState",
  ]);
});

test("raises the limits of a blocked run, which continues", async () => {
  const call = harness.serve();
  const limited = defineWorkflow("approved", { version: 3, limits: { steps: 2 } }, async (w) => {
    for (const name of ["a", "b", "c"]) await w.step(name, () => name);
  });
  await work(limited);
  const { path } = await start(call, { input: null, id: "r" });
  await inStatus(call, path, "blocked");
  const body = { steps: 3, by: "ann", reason: "one more" };
  const response = await call(`${path}/raise`, { body });
  expect(runSchema.parse(await response.json())).toMatchObject({ limits: { steps: 3 } });
  await inStatus(call, path, "done");
  expect((await problemIn(await call(`${path}/raise`, { body }))).code).toBe("run_ended");
  for (const [wrong, pointers] of [
    [{}, [""]],
    [{ steps: 0, bytes: 1e9 }, ["/steps", "/bytes"]],
  ] as const) {
    const refused = await call(`${path}/raise`, { body: { ...wrong, by: "ann", reason: "r" } });
    expect((await problemIn(refused)).errors?.map(({ pointer }) => pointer)).toEqual(pointers);
  }
  const audit = auditPageSchema.parse(await (await call("/v1/audit?action=run.raise")).json());
  expect(audit.items).toMatchObject([{ by: "ann", name: "r", filter: "steps=3" }]);
});

test("shows the round of a run, and returns from a wait when it changes", async () => {
  const call = harness.serve();
  const rounds = defineWorkflow(
    "approved",
    { version: 3 },
    async (w, n: number): Promise<number> => {
      await w.signal("go");
      return n === 3 ? n : await w.continueWith(n + 1);
    },
  );
  await work(rounds);
  const { path } = await start(call, { input: 1 });
  expect((await inStatus(call, path, "waiting")).round).toBeUndefined();
  for (const round of [2, 3]) {
    const before = round === 2 ? "waiting/0" : `waiting/0/${round - 1}`;
    const change = until(`round ${round}`, async () => {
      const run = await get(call, `${path}?wait=30s&lastState=${before}`);
      return run.round === round && run;
    });
    expect((await call(`${path}/signal`, { body: { name: "go", by: "ann" } })).status).toBe(200);
    expect(await change).toMatchObject({
      input: round,
      roundStartedAt: expect.stringMatching(/Z$/),
    });
  }
  await inStatus(call, path, "waiting");
  expect((await call(`${path}/signal`, { body: { name: "go", by: "ann" } })).status).toBe(200);
  expect(await inStatus(call, path, "done")).toMatchObject({ result: 3, round: 3, steps: [{}] });
});

test("retries a failed run as a new run or from the failed step, with an audit entry", async () => {
  const call = harness.serve();
  const state = { broken: true };
  const flaky = defineWorkflow("approved", { version: 3 }, async (w) => {
    await w.step("draft", () => "draft");
    const body = () => {
      if (state.broken) throw new Error("quota");
      return "pushed";
    };
    return await w.step("push", body, { retry: { attempts: 1 } });
  });
  await work(flaky);
  const token = await harness.token("ann", { role: "operator" });
  const { path, id } = await start(call, { id: "r" });
  await inStatus(call, path, "failed");
  const viewer = await harness.token("viewer");
  const body = { by: "eve", reason: "the quota was raised" };
  const retry = (rest: object = {}, sent: Sent = { token }) =>
    call(`${path}/retry`, { ...sent, body: { ...body, ...rest } });
  expect((await retry({}, { token: viewer })).status).toBe(403);
  const again = await retry();
  const next = `/v1/runs/${encodeURIComponent("approved/default/r~2")}`;
  expect(again.headers.get("location")).toBe(next);
  const author = { by: "ann", reason: body.reason };
  expect(runSchema.parse(await again.json())).toMatchObject({
    id: "approved/default/r~2",
    by: "ann",
    retry: { originalRun: id, ...author },
  });
  await inStatus(call, next, "failed");
  state.broken = false;
  expect(await (await retry({ fromFailed: true })).json()).toMatchObject({ id, retry: author });
  const run = await inStatus(call, path, "done");
  expect(run.steps.map(({ name, value }) => [name, value])).toEqual([
    ["draft", "draft"],
    ["push", "pushed"],
  ]);
  expect(await problemIn(await retry())).toMatchObject({ status: 409, code: "run_ended" });
  const { items } = auditPageSchema.parse(await (await call("/v1/audit")).json());
  expect(items.filter(({ action }) => action === "run.retry")).toMatchObject([
    { ...author, controller: "workflow.approved", name: "r", filter: "the same run" },
    { ...author, controller: "workflow.approved", name: "r", filter: "new run r~2" },
  ]);
});

test("reports the effect of a cancellation, and skips an undo, with audit entries", async () => {
  const call = harness.serve();
  const deploy = defineWorkflow("approved", { version: 3 }, async (w) => {
    const undo = () => Promise.reject(new Error("404"));
    await w.step("pull", () => 1, { retry: { attempts: 1 }, undo });
    return await w.signal("approve");
  });
  await work(deploy);
  const { path } = await start(call, { id: "r" });
  await inStatus(call, path, "waiting");
  const body = { by: "ann", reason: "the server is gone" };
  const cancel = async () =>
    cancelRunResponseSchema.parse(await (await call(`${path}/cancel`, { body })).json());
  expect(await cancel()).toMatchObject({ effect: "requested", cancel: body });
  expect(await inStatus(call, path, "blocked")).toMatchObject({ undosLeft: ["pull"] });
  expect(await cancel()).toMatchObject({
    effect: "none",
    note: expect.stringContaining("terminate the run") as string,
  });
  const skip = (skipUndo: string) => call(`${path}/retry`, { body: { ...body, skipUndo } });
  const refused = await problemIn(await skip("push"));
  expect(refused.errors?.map(({ pointer }) => pointer)).toEqual(["/skipUndo"]);
  expect((await skip("pull")).status).toBe(200);
  const run = await inStatus(call, path, "cancelled");
  expect(run.steps.at(-1)).toMatchObject({ name: "undo:pull", skipped: body });
  const { items } = auditPageSchema.parse(await (await call("/v1/audit")).json());
  expect(items.filter(({ action }) => action === "run.retry")).toMatchObject([
    { ...body, name: "r", filter: 'the same run, without the undo of "pull"' },
  ]);
});

test("terminates a run without undo and lists what was left, with an audit entry", async () => {
  const call = harness.serve();
  const undone: string[] = [];
  const deploy = defineWorkflow("approved", { version: 3 }, async (w) => {
    await w.step("pull", () => 1, { undo: () => void undone.push("pull") });
    await w.step("push", () => 2, { undo: () => void undone.push("push") });
    return await w.signal("approve");
  });
  await work(deploy);
  const token = await harness.token("ann", { role: "operator" });
  const { path, id } = await start(call, { id: "r" });
  await inStatus(call, path, "waiting");
  const body = { by: "eve", reason: "the server is gone" };
  const terminate = (sent: Sent) => call(`${path}/terminate`, { body, ...sent });
  expect((await terminate({ token: await harness.token("viewer") })).status).toBe(403);
  const author = { by: "ann", reason: body.reason };
  const ended = runSchema.parse(await (await terminate({ token })).json());
  expect(ended).toMatchObject({
    id,
    status: "cancelled",
    terminated: author,
    error: { code: "terminated" },
    undosLeft: ["push", "pull"],
  });
  const late = await terminate({ token, body: { ...body, reason: "again" } });
  expect(await problemIn(late)).toMatchObject({ code: "run_ended" });
  expect(undone).toEqual([]);
  const { items } = auditPageSchema.parse(await (await call("/v1/audit")).json());
  expect(items.filter(({ action }) => action === "run.terminate")).toMatchObject([
    { ...author, controller: "workflow.approved", name: "r" },
  ]);
});

test("pauses and resumes a run, with audit entries", async () => {
  const call = harness.serve();
  await work(approved);
  const { path, id } = await start(call, { id: "r", input: { name: "web" } });
  await inStatus(call, path, "waiting");
  const body = { by: "ann", reason: "freeze" };
  const act = async (action: "pause" | "resume", by = "ann") => {
    const response = await call(`${path}/${action}`, { body: { ...body, by } });
    return pauseRunResponseSchema.parse(await response.json());
  };
  const pause = { ...body, at: expect.any(String) as string };
  const waits = [{ step: "approve" }];
  expect(await act("pause")).toMatchObject({ effect: "paused", status: "paused", pause, waits });
  const again = { effect: "none", note: "the run is already paused", pause };
  expect(await act("pause", "bob")).toMatchObject(again);
  const list = runListSchema.parse(await (await call("/v1/runs?status=paused")).json());
  expect(list.items).toMatchObject([{ id, pause, waits }]);
  expect(await act("resume")).toMatchObject({ effect: "resumed" });
  const late = { effect: "none", note: "the run is not paused" };
  expect(await act("resume", "bob")).toMatchObject(late);
  const run = await inStatus(call, path, "waiting");
  expect(run).not.toHaveProperty("pause");
  const { items } = auditPageSchema.parse(await (await call("/v1/audit")).json());
  expect(items.map(({ action, by, name }) => [action, by, name])).toEqual([
    ["run.resume", "bob", "r"],
    ["run.resume", "ann", "r"],
    ["run.pause", "bob", "r"],
    ["run.pause", "ann", "r"],
    ["run.start", "local", "r"],
  ]);
});

test("acts on the runs that match and that the caller may see, with audit entries", async () => {
  const call = harness.serve();
  const other = defineWorkflow("other", { version: 1 }, async (w) => await w.signal("go"));
  await work(approved, other);
  const paths = [];
  for (const id of ["web-1", "web-2", "db-1"]) {
    const input = { name: id };
    paths.push((await start(call, { id, input, labels: { team: id.slice(0, -2) } })).path);
  }
  paths.push((await start(call, { workflow: "other", id: "o" })).path);
  for (const path of paths) await inStatus(call, path, "waiting");
  const token = await harness.token("ann", {
    role: "operator",
    scope: { controllers: ["workflow.approved"] },
  });
  const send = (body: object) =>
    call("/v1/runs/actions", { token, body: { by: "eve", reason: "freeze", ...body } });
  const act = async (body: object) =>
    actOnRunsResponseSchema.parse(await (await send(body)).json());
  const web = { action: "pause", filter: { workflow: "approved", label: "team=web" } };
  const none = { unchanged: 0, failed: 0, failures: [] };
  expect(await act({ ...web, dryRun: true })).toEqual({
    ...none,
    dryRun: true,
    matched: 2,
    changed: 0,
  });
  expect(await problemIn(await send({ ...web, expect: 3 }))).toMatchObject({
    status: 409,
    code: "count_mismatch",
    errors: [{ pointer: "/expect" }],
  });
  expect(await act({ ...web, expect: 2 })).toEqual({
    ...none,
    dryRun: false,
    matched: 2,
    changed: 2,
  });
  expect(await get(call, paths[0] ?? "")).toMatchObject({
    status: "paused",
    pause: { by: "ann", reason: "freeze" },
  });
  // Without a workflow: all in the scope of the token.
  const forgotten = await problemIn(await send({ action: "terminate" }));
  expect(forgotten).toMatchObject({ status: 422, errors: [{ pointer: "/all" }] });
  expect(await problemIn(await send({ ...web, all: true }))).toMatchObject({
    errors: [{ pointer: "/all" }],
  });
  expect(await act({ action: "terminate", all: true })).toMatchObject({ matched: 3, changed: 3 });
  expect((await get(call, paths[3] ?? "")).status).toBe("waiting");
  const outside = await send({ action: "pause", filter: { workflow: "other" } });
  expect(await problemIn(outside)).toMatchObject({ code: "forbidden" });
  const wrong = await problemIn(
    await send({ action: "signal", expect: 1, cursor: "1/approved/a" }),
  );
  expect(wrong.errors?.map(({ pointer }) => pointer)).toEqual(["/signal", "/expect"]);
  expect(await problemIn(await send({ action: "retry", all: true }))).toMatchObject({
    errors: [{ pointer: "/filter/status" }],
  });
  const { items } = auditPageSchema.parse(await (await call("/v1/audit?by=ann")).json());
  expect(items).toMatchObject([
    {
      action: "run.terminate",
      filter: "all runs: approved/default/db-1 to approved/default/web-1, newest first",
      count: 3,
    },
    { action: "run.terminate", by: "ann", filter: "all runs: begun" },
    {
      action: "run.pause",
      by: "ann",
      reason: "freeze",
      controller: "workflow.approved",
      filter:
        "runs with label=team=web: approved/default/web-2 to approved/default/web-1, newest first",
      count: 2,
    },
    { action: "run.pause", by: "ann", reason: "freeze", filter: "runs with label=team=web: begun" },
  ]);
});

test("a bulk action that fails after some runs is recorded", async () => {
  const { redis, prefix } = harness.queues;
  const call = harness.serve({ onError: () => undefined });
  const other = defineWorkflow("other", { version: 1 }, async () => undefined);
  await announce(harness.queues, [], [approved, other]);
  const { path } = await start(call, { id: "r", input: { name: "web" } });
  // Reading the runs of the second workflow fails because of the type of their key.
  const broken = `${prefix}:{default/workflows}/status/other/queued`;
  await redis.set(broken, "x");
  const author = { by: "ann", reason: "late" };
  const body = { action: "signal", all: true, signal: { name: "approve" }, ...author };
  const headers = { "idempotency-key": "approve-late" };
  const failed = await call("/v1/runs/actions", { body, headers });
  expect(failed.status).toBeGreaterThanOrEqual(500);
  expect((await get(call, path)).unconsumedSignals).toMatchObject([{ name: "approve" }]);
  const invalid = await call("/v1/runs/actions", {
    body: { action: "retry", all: true, ...author },
  });
  expect(invalid.status).toBe(422);
  const { items } = auditPageSchema.parse(await (await call("/v1/audit")).json());
  expect(items.map(({ action, filter, reason }) => [action, filter, reason])).toEqual([
    ["run.signal", "approve to all runs: interrupted", "late"],
    ["run.signal", "approve to all runs: begun", "late"],
    ["run.start", undefined, undefined],
  ]);
  // A repeated request continues: each run receives the signal once.
  await redis.del(broken);
  const repeated = await call("/v1/runs/actions", { body, headers });
  expect(await repeated.json()).toMatchObject({ matched: 1, changed: 0, unchanged: 1 });
  expect((await get(call, path)).unconsumedSignals).toHaveLength(1);
  const again = { ...body, signal: { name: "approve", id: "second" } };
  for (const changed of [1, 0]) {
    const sent = await call("/v1/runs/actions", { body: again });
    expect(await sent.json()).toMatchObject({ matched: 1, changed });
  }
  expect((await get(call, path)).unconsumedSignals).toHaveLength(2);
});

test("starts a run once per ID or Idempotency-Key", async () => {
  const call = harness.serve();
  await announce(harness.queues, [], [approved]);
  const body = { input: { name: "web" } };
  const first = await start(call, { ...body, id: "deploy-7" });
  expect(await start(call, { ...body, id: "deploy-7" })).toMatchObject({
    id: first.id,
    created: false,
  });
  const headers = { "idempotency-key": "once" };
  const one = await start(call, body, { headers });
  expect(await start(call, body, { headers })).toMatchObject({ id: one.id, created: true });
  expect((await get(call, first.path)).status).toBe("queued");
  await work(approved);
  await inStatus(call, first.path, "waiting");
});

test("lists runs newest first, in pages, of one workflow or all", async () => {
  const call = harness.serve();
  const other = defineWorkflow("other", { version: 1 }, async () => null);
  await work(approved, other);
  for (const id of ["a", "b", "c"]) await start(call, { id, input: { name: id } });
  await start(call, { workflow: "other", id: "d" });
  const list = async (query: string) =>
    runListSchema.parse(await (await call(`/v1/runs?${query}`)).json());
  const page = await list("workflow=approved&limit=2");
  expect(page.items.map(({ id }) => id)).toEqual(["approved/default/c", "approved/default/b"]);
  const rest = await list(`workflow=approved&limit=2&cursor=${page.next}`);
  expect(rest.items.map(({ id }) => id)).toEqual(["approved/default/a"]);
  expect(rest.next).toBeUndefined();
  const all = await list("limit=3");
  // Two that were started within one millisecond have no order.
  expect(all.items.map(({ workflow }) => workflow).toSorted()).toEqual([
    "approved",
    "approved",
    "other",
  ]);
  const last = await list(`limit=3&cursor=${encodeURIComponent(all.next ?? "")}`);
  expect([last.items.map(({ id }) => id), last.next]).toEqual([["approved/default/a"], undefined]);
});

test("finds runs by status, key, author and substring", async () => {
  const call = harness.serve();
  await work(approved);
  const token = await harness.token("ann", { role: "operator" });
  const input = { name: "web" };
  const one = await start(call, { id: "one", input, key: "pool/Web" }, { token });
  const two = await start(call, { id: "two", input, by: "bob" });
  const bad = await start(call, { id: "bad", input: {} });
  await inStatus(call, one.path, "waiting");
  await inStatus(call, two.path, "waiting");
  await inStatus(call, bad.path, "failed");
  const list = async (query: string) => {
    const answer = await call(`/v1/runs?${query}`);
    return runListSchema.parse(await answer.json()).items.map(({ id }) => id.split("/").at(-1));
  };
  expect(await list("status=waiting")).toEqual(["two", "one"]);
  expect(await list("status=failed")).toEqual(["bad"]);
  expect(await list("status=blocked")).toEqual([]);
  expect(await list("key=pool/Web")).toEqual(["one"]);
  expect(await list("by=ann")).toEqual(["one"]);
  expect(await list("search=web")).toEqual(["one"]);
  expect(await list("search=TW&status=waiting&by=bob")).toEqual(["two"]);
  const refused = await call("/v1/runs?status=asleep&cursor=7");
  const { errors } = await problemIn(refused);
  expect(errors).toMatchObject([
    { pointer: "/status", detail: expect.stringMatching(/must be one of queued, running/) },
    { pointer: "/cursor", detail: "must be the cursor of an earlier response" },
  ]);
});

test("lists the queues of visible workflows", async () => {
  const call = harness.serve();
  await announce(harness.queues, [], [approved]);
  for (const id of ["a", "b"]) await start(call, { id, input: { name: id } });
  const list = async (token?: string) => {
    const { workflows } = (await (await call("/v1/queues", { token })).json()) as QueueList;
    return workflows;
  };
  const none = { cluster: "default", workflow: "approved", active: 0, delayed: 0, workers: 0 };
  expect(await list()).toEqual([{ ...none, waiting: 2 }]);
  expect(await list(await harness.token("nodes", { scope: { controllers: ["nodes"] } }))).toEqual(
    [],
  );
  await work(approved);
  await until("nothing waits", async () => (await list())[0]?.waiting === 0);
});

test("reports unknown workflows and runs", async () => {
  const call = harness.serve();
  await work(approved);
  const none = await call("/v1/runs", { body: { workflow: "rollout" } });
  expect(await problemIn(none)).toMatchObject({
    status: 404,
    detail: expect.stringMatching(/no workflow "rollout"; known: approved/),
  });
  const gone = await call(`/v1/runs/${encodeURIComponent("approved/default/x")}`);
  expect(await problemIn(gone)).toMatchObject({ status: 404, code: "not_found" });
  const odd = await call("/v1/runs/x");
  expect(await problemIn(odd)).toMatchObject({ status: 422, code: "invalid_request" });
  const input = JSON.parse(`${"[".repeat(200)}${"]".repeat(200)}`) as unknown;
  const deep = await call("/v1/runs", { body: { workflow: "approved", input } });
  expect(await problemIn(deep)).toMatchObject({
    status: 422,
    errors: [{ pointer: "/input", detail: expect.stringMatching(/circular or deeper than 100/) }],
  });
});

test("enforces roles and scopes for workflows, with the token as the author", async () => {
  const call = harness.serve();
  await work(approved);
  const viewer = await harness.token("viewer");
  const operator = await harness.token("ann", {
    role: "operator",
    scope: { controllers: ["workflow.approved"] },
  });
  const stranger = await harness.token("bob", {
    role: "operator",
    scope: { controllers: ["node-pool"] },
  });
  const body = { workflow: "approved", input: { name: "web" } };
  for (const token of [viewer, stranger]) {
    const refused = await call("/v1/runs", { token, body });
    expect(await problemIn(refused)).toMatchObject({ status: 403, code: "forbidden" });
  }
  const { path } = await start(call, { input: { name: "web" }, by: "eve" }, { token: operator });
  expect((await call(path, { token: viewer })).status).toBe(200);
  expect((await call(path, { token: stranger })).status).toBe(403);
  const listed = await call("/v1/runs", { token: stranger });
  expect(await listed.json()).toEqual({ items: [] });
  const signal = { name: "approve", payload: { by: "eve" }, by: "eve" };
  expect((await call(`${path}/signal`, { token: viewer, body: signal })).status).toBe(403);
  expect((await call(`${path}/signal`, { token: operator, body: signal })).status).toBe(200);
  const run = await until("it is done", async () => {
    const found = runSchema.parse(await (await call(path, { token: viewer })).json());
    return found.status === "done" && found;
  });
  expect(run.by).toBe("ann");
  expect(run.steps[1]).toMatchObject({ name: "approve", by: "ann" });
  const audit = await call("/v1/audit");
  const { items } = auditPageSchema.parse(await audit.json());
  expect(items.map(({ action, by }) => `${by} ${action}`)).toEqual([
    "ann run.signal",
    "ann run.start",
  ]);
});
