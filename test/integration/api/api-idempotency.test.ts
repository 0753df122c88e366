import { expect, test } from "vitest";
import { problemIn, useApi, type Call } from "./api-harness.ts";
import { workOn } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";

const harness = useApi({ answerBudgetBytes: 10_000 });
const BLUE = { controller: "node-pool", namespace: "demo", name: "blue" };
const POST = "/v1/reconciles";

const send = (call: Call, key: string, body: unknown = BLUE, path = POST) =>
  call(path, { body, headers: { "idempotency-key": key } });

test("replays the response for the same key and body", async () => {
  const call = harness.serve();
  const first = await send(call, "one");
  const again = await send(call, "one");
  expect([first.status, again.status]).toEqual([202, 202]);
  expect(first.headers.get("idempotency-replayed")).toBeNull();
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  expect(again.headers.get("location")).toBe(first.headers.get("location"));
  const answer = (await first.json()) as { id: string };
  expect(await again.json()).toEqual(answer);
  // Another key is another request, which joins the one that waits.
  const other = (await (await send(call, "other")).json()) as { id: string; coalesced: boolean };
  expect(other.coalesced).toBe(true);
  expect(Number(other.id.split("@")[1])).toBe(Number(answer.id.split("@")[1]) + 1);
});

test("rejects the same key with another body, query or route", async () => {
  const call = harness.serve();
  await send(call, "one");
  for (const refused of [
    await send(call, "one", { ...BLUE, name: "green" }),
    await send(call, "one", BLUE, `${POST}?x=1`),
    await send(call, "one", { items: [BLUE] }, `${POST}/batch`),
  ]) {
    expect(await problemIn(refused)).toMatchObject({ status: 422, code: "idempotency_mismatch" });
  }
  expect((await call("/v1/objects/default/node-pool/demo/green")).status).toBe(404);
});

test("rejects a key in flight, then replays its response", async () => {
  const call = harness.serve();
  const headers = { "idempotency-key": "slow", prefer: "wait=20" };
  const first = call(POST, { body: BLUE, headers });
  const early = await until("it is in flight", async () => {
    const response = await call(POST, { body: BLUE, headers });
    return response.status === 409 && response;
  });
  expect(early.headers.get("retry-after")).toBe("1");
  expect(await problemIn(early)).toMatchObject({
    code: "idempotency_in_flight",
    retryAfterMs: 1_000,
  });
  const { queue } = await harness.access.find("default", "node-pool");
  const worker = workOn(queue, () => ({ kind: "done" }));
  const answer: unknown = await (await first).json();
  expect(answer).toMatchObject({ state: { phase: "finished", outcome: "done" } });
  const again = await call(POST, { body: BLUE, headers });
  expect([again.status, await again.json()]).toEqual([200, answer]);
  await worker.stop();
});

test("runs one of two concurrent requests with the same key", async () => {
  const call = harness.serve();
  const all = await Promise.all(Array.from({ length: 20 }, () => send(call, "race")));
  const ids = new Set<string>();
  for (const response of all) {
    if (response.status === 409) continue;
    ids.add(((await response.json()) as { id: string }).id);
  }
  expect(ids.size).toBe(1);
});

test("separates the keys of different tokens", async () => {
  const call = harness.serve();
  const one = await harness.token("one", { role: "operator" });
  const other = await harness.token("other", { role: "operator" });
  const headers = { "idempotency-key": "same" };
  for (const token of [one, other]) {
    const response = await call(POST, { token, headers, body: BLUE });
    expect([response.status, response.headers.get("idempotency-replayed")]).toEqual([202, null]);
  }
});

test("does not store failures, so the same key can be retried", async () => {
  const call = harness.serve();
  const late = { ...BLUE, controller: "late" };
  expect((await problemIn(await send(call, "k", late))).code).toBe("unknown_controller");
  await harness.announce({ name: "late", kind: "Late" });
  expect((await send(call, "k", late)).status).toBe(202);
});

test("compresses stored responses and deletes the oldest at the limit", async () => {
  const call = harness.serve();
  const items = Array.from({ length: 200 }, (_, index) => ({ ...BLUE, name: `n-${index}` }));
  const first = await send(call, "batch", { items }, `${POST}/batch`);
  const text = await first.text();
  const again = await send(call, "batch", { items }, `${POST}/batch`);
  expect([again.headers.get("idempotency-replayed"), await again.text()]).toEqual(["true", text]);
  const bytes = async () =>
    Number(await harness.queues.redis.get(`${harness.queues.prefix}:{answers}/bytes`));
  expect(await bytes()).toBeLessThan(text.length / 4);
  for (let key = 0; key < 40; key++) {
    await send(call, `k-${key}`);
    expect(await bytes()).toBeLessThanOrEqual(10_000);
  }
  const keys = await harness.queues.redis.keys(`${harness.queues.prefix}:{answers}/answer/*`);
  expect(keys.length).toBeLessThan(30);
  expect(
    (await send(call, "batch", { items }, `${POST}/batch`)).headers.get("idempotency-replayed"),
  ).toBeNull();
  expect((await send(call, "k-39")).headers.get("idempotency-replayed")).toBe("true");
});

test.each(["", " ", "a b", "x".repeat(256), "ü"])("%j is no key", async (key) => {
  const response = await send(harness.serve(), key);
  expect(await problemIn(response)).toMatchObject({
    code: "invalid_request",
    errors: [{ pointer: "/idempotency-key" }],
  });
});
