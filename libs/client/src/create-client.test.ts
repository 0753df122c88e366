import { expect, test } from "vitest";
import { createClient } from "./create-client.ts";
import { ProblemError } from "./problem-error.ts";

const PROBLEM = { title: "t", detail: "d", instance: "/", type: "x" };
const problem = (status: number, code: string, headers: Record<string, string> = {}, more = {}) =>
  new Response(JSON.stringify({ ...PROBLEM, status, code, ...more }), { status, headers });
const json = (body: unknown) => Response.json(body);
const broken = () => {
  throw new TypeError("fetch failed", { cause: new Error("ECONNRESET") });
};

/** A client whose server answers what the script says, one after the other, and what it was asked and slept. */
function scripted(...answers: readonly (() => Response)[]) {
  const sent: Request[] = [];
  const slept: number[] = [];
  const client = createClient({
    server: "http://konverge.example/base/",
    token: "secret-token",
    fetch: async (request) => {
      sent.push(request);
      const answer = answers[sent.length - 1] ?? answers.at(-1);
      if (answer === undefined) throw new Error("nothing scripted");
      return answer();
    },
    random: () => 0.5,
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      slept.push(ms);
    },
  });
  return { client, sent, slept };
}
const BODY = { controller: "a", name: "b" };

test("repeats a POST after a lost response with the same Idempotency-Key and full jitter", async () => {
  const { client, sent, slept } = scripted(broken, broken, () => json({ id: "1" }));
  expect(await client.reconciles.create(BODY)).toEqual({ id: "1" });
  const keys = sent.map(({ headers }) => headers.get("idempotency-key"));
  expect(keys[0]).toMatch(/^[0-9a-f]{32}$/);
  expect(new Set(keys).size).toBe(1);
  expect(slept).toEqual([100, 200]);
  expect(sent[0]?.url).toBe("http://konverge.example/base/v1/reconciles");
  expect(sent[0]?.headers.get("authorization")).toBe("Bearer secret-token");
});

test("sends an Idempotency-Key with every change, but not with reads", async () => {
  const { client, sent } = scripted(() => json({}));
  const action = { by: "ada", reason: "a test" };
  await client.workers.list();
  await client.guards.setRate("default", { ...action, ratePerSecond: null });
  await client.queues.pause({ controller: "a", ...action });
  const keyed = sent.map(({ method, headers }) => [method, headers.has("idempotency-key")]);
  expect(keyed).toEqual([
    ["GET", false],
    ["PUT", true],
    ["POST", true],
  ]);
});

test("uses a given key, or a new one per call", async () => {
  const { client, sent } = scripted(() => json({}));
  await client.reconciles.create(BODY);
  await client.reconciles.create(BODY);
  await client.reconciles.create(BODY, { idempotencyKey: "mine" });
  const [one, two, three] = sent.map(({ headers }) => headers.get("idempotency-key"));
  expect(one).not.toBe(two);
  expect(three).toBe("mine");
});

test.each([
  ["a problem's retryAfterMs", () => problem(503, "queue_full", {}, { retryAfterMs: 2_000 })],
  ["Retry-After in seconds", () => problem(429, "rate_limited", { "retry-after": "2" })],
])("uses %s as the minimum delay", async (_what, answer) => {
  const { client, slept } = scripted(answer, () => json({ items: [] }));
  await client.workers.list();
  expect(slept).toEqual([2_100]);
});

test("stops if Retry-After exceeds the time left", async () => {
  const { client, sent } = scripted(() => problem(503, "queue_full", { "retry-after": "600" }));
  await expect(client.workers.list()).rejects.toMatchObject({ retryAfterMs: 600_000 });
  expect(sent).toHaveLength(1);
});

test.each([
  [401, "unauthorized"],
  [404, "not_found"],
  [409, "cluster_mismatch"],
  [422, "invalid_request"],
  [500, "internal"],
])("reports %i %s immediately, with all issues", async (status, code) => {
  const errors = [{ pointer: "/name", detail: "write one" }];
  const { client, sent } = scripted(() => problem(status, code, {}, { errors }));
  const error = await client.reconciles.create(BODY).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ProblemError);
  expect(error).toMatchObject({ status, code, title: "t", message: "d", errors });
  expect(sent).toHaveLength(1);
});

test("retries a call in flight until its response is replayed", async () => {
  const { client, sent } = scripted(
    () => problem(409, "idempotency_in_flight"),
    () => json({ id: "1" }),
  );
  expect(await client.reconciles.create(BODY)).toEqual({ id: "1" });
  expect(sent).toHaveLength(2);
});

test("reports a missing response with its reason after the last try", async () => {
  const { client, sent } = scripted(broken);
  await expect(client.guards.list()).rejects.toMatchObject({
    code: "api_unreachable",
    status: 0,
    message: "no response from http://konverge.example/base: ECONNRESET",
  });
  expect(sent).toHaveLength(5);
});

test("retries an interrupted response", async () => {
  const cut = () =>
    new Response(
      new ReadableStream({
        start(controller) {
          controller.enqueue(new TextEncoder().encode('{"items":['));
          controller.error(new Error("reset"));
        },
      }),
    );
  const { client } = scripted(cut, () => json({ items: [] }));
  expect(await client.workers.list()).toEqual({ items: [] });
});

test.each([
  ["a page of a proxy", () => new Response("<html>", { status: 404 }), 404],
  ["a login page", () => new Response("<html>login"), 200],
])("does not accept %s as the API", async (_what, answer, status) => {
  const { client } = scripted(answer);
  await expect(client.workers.list()).rejects.toMatchObject({
    code: "unexpected_response",
    status,
  });
});

test("rejects with the reason of the caller's signal, also between tries", async () => {
  const stop = new AbortController();
  const { client } = scripted(() => {
    stop.abort(new Error("enough"));
    return problem(503, "redis_unavailable");
  });
  await expect(client.workers.list({}, { signal: stop.signal })).rejects.toThrow("enough");
});

test("reads a list page by page with the same query; page() reads one page", async () => {
  const { client, sent } = scripted(
    () => json({ items: [1, 2], next: "a&b" }),
    () => json({ items: [], next: "c" }),
    () => json({ items: [3] }),
  );
  const found: unknown[] = [];
  for await (const item of client.attempts.list({ controller: "x", limit: 2 })) found.push(item);
  expect(found).toEqual([1, 2, 3]);
  expect(sent.map(({ url }) => new URL(url).search)).toEqual([
    "?controller=x&limit=2",
    "?controller=x&limit=2&cursor=a%26b",
    "?controller=x&limit=2&cursor=c",
  ]);
  expect(await client.attempts.list().page()).toEqual({ items: [3] });
});

test("escapes names in URL paths", async () => {
  const { client, sent } = scripted(() => json({}));
  await client.objects.get({ controller: "a", namespace: "../x", name: "a?b#c" });
  expect(new URL(sent[0]?.url ?? "").pathname).toBe("/base/v1/objects/default/a/..%2Fx/a%3Fb%23c");
});

test("waits by long polling and reports a timeout", async () => {
  const waiting = () => json({ id: "1", phase: "waiting" });
  const done = () => json({ id: "1", phase: "finished", outcome: "done" });
  const { client, sent } = scripted(waiting, waiting, done);
  expect(await client.reconciles.wait("1", { timeoutMs: 50_000 })).toMatchObject({
    outcome: "done",
  });
  expect(new URL(sent[0]?.url ?? "").searchParams.get("wait")).toBe("20000ms");
  const { client: late } = scripted(waiting);
  await expect(late.reconciles.wait("1", { timeoutMs: 0 })).rejects.toMatchObject({
    code: "wait_timeout",
    status: 504,
  });
});

test("keeps waiting while the server is unavailable", async () => {
  const done = () => json({ id: "1", phase: "finished", outcome: "done" });
  const away = () => problem(503, "redis_unavailable");
  const { client, sent } = scripted(...Array.from({ length: 12 }, () => broken), away, done);
  expect(await client.reconciles.wait("1")).toMatchObject({ outcome: "done" });
  expect(sent).toHaveLength(14);
  const { client: never } = scripted(broken);
  const ended = never.reconciles.wait("1", { timeoutMs: 0 });
  await expect(ended).rejects.toMatchObject({ code: "api_unreachable" });
  const { client: unknown } = scripted(() => problem(404, "not_found"));
  await expect(unknown.reconciles.wait("1")).rejects.toMatchObject({ code: "not_found" });
});
