import { auditPageSchema, type AuditEntry } from "@konverge/contracts";
import { expect, test } from "vitest";
import { useApi } from "./api-harness.ts";
import { operations, requestOf, TARGETS } from "./api-targets.ts";

const api = useApi();
const REASON = { by: "ada", reason: "a bad release" };

/** Deliveries of inbound sources have a metric. A logout needs no rights. */
const NOT_RECORDED = ["deliver", "logout"];

async function entries(): Promise<AuditEntry[]> {
  const call = api.serve();
  const all: AuditEntry[] = [];
  for (let cursor: string | undefined = ""; cursor !== undefined;) {
    const query: string = cursor === "" ? "" : `&cursor=${cursor}`;
    const response = await call(`/v1/audit?limit=1000${query}`);
    const page = auditPageSchema.parse(await response.json());
    all.push(...page.items);
    cursor = page.next;
  }
  return all;
}

test("changes beyond the entries of an author are counted, so that other entries stay", async () => {
  const { audit } = api.access;
  await audit.write({ action: "token.create", by: "ada", filter: "ci" });
  const pause = { action: "pause", by: "mallory", cluster: "default" } as const;
  for (let n = 0; n < 2_000; n++) {
    await audit.write({ ...pause, namespace: "green", name: `a-${n}` });
  }
  for (let n = 0; n < 2_000; n++) {
    audit.gather({ ...pause, action: "reconcile", controller: `c-${n}`, count: 1 });
  }
  await audit.close();
  const all = await entries();
  expect(all.filter(({ by }) => by === "ada")).toMatchObject([{ action: "token.create" }]);
  const own = all.filter(({ by }) => by === "mallory");
  const sumOf = (action: string) =>
    own.reduce((sum, each) => sum + (each.action === action ? (each.count ?? 1) : 0), 0);
  expect([sumOf("pause"), sumOf("reconcile")]).toEqual([2_000, 2_000]);
  // Its 200 entries, one more per second that the test took, and the combined ones.
  expect(own.length).toBeLessThan(1_000);
});

test("refused changes displace no changes, and take none of the entries of their author", async () => {
  const { audit } = api.access;
  const { redis, prefix } = api.queues;
  const call = api.serve({ isLoopback: false, rate: { ratePerSecond: 1e6, burst: 1e6 } });
  await audit.write({ action: "token.create", by: "ada", filter: "ci" });
  const refusals = operations.filter(({ method, operationId }) => {
    return method !== "GET" && !NOT_RECORDED.includes(operationId);
  });
  for (let n = 0; n < 10; n++) {
    for (const operation of refusals) {
      const { path, body } = requestOf(operation, TARGETS.inside, true);
      await call(path, { method: operation.method, body });
    }
    for (let at = 0; at < 50; at++) {
      const refused = { action: "refused", by: "mallory", via: "token", count: 1 } as const;
      audit.gather({ ...refused, filter: "pause: forbidden", cluster: `c-${n}`, name: `a-${at}` });
    }
    await audit.close();
  }
  for (let n = 0; n < 150; n++) {
    await audit.write({ action: "pause", by: "mallory", via: "token", name: `a-${n}` });
  }
  await audit.close();
  const all = await entries();
  expect(all.find(({ by }) => by === "ada")).toMatchObject({ action: "token.create" });
  const own = all.filter(({ by, action }) => by === "mallory" && action === "pause");
  expect(new Set(own.map(({ name }) => name)).size).toBe(150);
  const refused = all.filter(({ action }) => action === "refused");
  const sumOf = (author: string) =>
    refused.reduce((sum, { by, count = 1 }) => sum + (by === author ? count : 0), 0);
  expect([sumOf("unknown"), sumOf("mallory")]).toEqual([10 * refusals.length, 500]);
  // Its 100 entries, and the combined one of each flush above.
  expect(refused.filter(({ by }) => by === "unknown").length).toBeLessThan(150);
  expect(await redis.xlen(`${prefix}:audit`)).toBe(151);
});

test("pages of the audit log show each change and refused change once, newest first", async () => {
  const { redis, prefix } = api.queues;
  const added: string[] = [];
  for (const [at, id] of ["7-0", "7-1", "8-0", "8-1", "9-0"].entries()) {
    for (const [key, action] of [
      ["audit", "pause"],
      ["audit-refused", "refused"],
    ] as const) {
      await redis.xadd(`${prefix}:${key}`, id, "e", JSON.stringify({ action, by: `${at}` }));
      added.push(`${id.slice(0, 1)} ${action} ${at}`);
    }
  }
  const call = api.serve();
  for (const limit of [1, 2, 3, 10]) {
    const found: AuditEntry[] = [];
    for (let cursor = ""; ;) {
      const response = await call(`/v1/audit?limit=${limit}${cursor}`);
      const page = auditPageSchema.parse(await response.json());
      found.push(...page.items);
      if (page.next === undefined) break;
      cursor = `&cursor=${page.next}`;
    }
    const shown = found.map(({ id, action, by }) => `${id.slice(0, 1)} ${action} ${by}`);
    expect(shown.toSorted()).toEqual(added.toSorted());
    expect(shown.map((text) => text.slice(0, 1))).toEqual(
      shown
        .map((text) => text.slice(0, 1))
        .toSorted()
        .toReversed(),
    );
    expect(new Set(found.map(({ id }) => id)).size).toBe(found.length);
  }
  expect((await call("/v1/audit?cursor=0-0")).status).toBe(200);
});

test("repeated changes of a second share an entry with a count", async () => {
  const { audit } = api.access;
  for (let n = 0; n < 50; n++) await audit.write({ action: "guard.isolate", ...REASON });
  await audit.close();
  const all = await entries();
  expect(all.length).toBeLessThan(50);
  expect(all.reduce((sum, { count = 1 }) => sum + count, 0)).toBe(50);
});

test("a pause that fails on its second controller is recorded", async () => {
  const { redis, prefix } = api.queues;
  const call = api.serve({ onError: () => undefined });
  // Pauses of the second controller fail because of the type of their key.
  await redis.set(`${prefix}:{default}/pauses/nodes`, "x");
  const failed = await call("/v1/pauses", { body: { namespace: "green", ...REASON } });
  expect(failed.status).toBeGreaterThanOrEqual(500);
  await api.access.audit.close();
  expect(await entries()).toMatchObject([
    { action: "refused", by: "local", namespace: "green", filter: "pause: redis_unavailable" },
    { action: "pause", namespace: "green" },
  ]);
});

test("a change whose entry cannot be written is reported as made, and its entry follows", async () => {
  const { redis, prefix } = api.queues;
  const errors: unknown[] = [];
  const call = api.serve({ onError: (error) => errors.push(error) });
  // Entries cannot be written because of the type of the key.
  await redis.set(`${prefix}:audit`, "x");
  const made = await call("/v1/pauses", { body: { namespace: "green", ...REASON } });
  expect(made.status).toBe(200);
  const bulk = { action: "pause", filter: {}, ...REASON };
  expect((await call("/v1/runs/actions", { body: bulk })).status).toBeGreaterThanOrEqual(400);
  await redis.del(`${prefix}:audit`);
  await api.access.audit.close();
  const all = await entries();
  expect(all.filter(({ action }) => action === "pause")).toMatchObject([{ namespace: "green" }]);
  expect(errors).toEqual([]);
});

test("every operation that changes something leaves an entry when it is refused", async () => {
  const viewer = await api.token("looks");
  const operator = await api.token("acts", {
    role: "operator",
    scope: { clusters: ["elsewhere"] },
  });
  const call = api.serve({ isLoopback: false, rate: { ratePerSecond: 1e6, burst: 1e6 } });
  const changes = operations.filter(
    ({ method, operationId }) => method !== "GET" && !NOT_RECORDED.includes(operationId),
  );
  const expected: string[] = [];
  for (const operation of changes) {
    const { method, operationId } = operation;
    const { path, body } = requestOf(operation, TARGETS.inside, true);
    for (const [by, token] of [
      ["unknown", undefined],
      ["looks", viewer],
      ["acts", operator],
    ] as const) {
      const response = await call(path, { method, token, body });
      // A batch has a result for each item.
      if (response.status < 300) continue;
      const { code } = (await response.json()) as { readonly code: string };
      // The login has no caller.
      const author = operationId === "login" ? "unknown" : by;
      expected.push(`${author} ${operationId}: ${code}`);
    }
  }
  await api.access.audit.close();
  const found = (await entries()).filter(({ action }) => action === "refused");
  const recorded = new Set(found.map(({ by, filter }) => `${by} ${filter}`));
  expect([...recorded].toSorted()).toEqual([...new Set(expected)].toSorted());
  const refusedOf = (id: string) => expected.filter((text) => text.includes(` ${id}:`)).length;
  for (const { operationId } of changes)
    expect([operationId, refusedOf(operationId)]).not.toContain(0);
  expect(
    found.find(({ by, filter }) => by === "looks" && filter === "pause: forbidden"),
  ).toMatchObject({
    via: "token",
    cluster: TARGETS.inside.cluster,
    controller: TARGETS.inside.controller,
    namespace: TARGETS.inside.namespace,
    name: TARGETS.inside.name,
  });
  // The names of a request without a token are those of a stranger.
  expect(found.filter(({ by }) => by === "unknown").every(({ name }) => name === undefined)).toBe(
    true,
  );
});
