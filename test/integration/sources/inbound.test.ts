import { createHmac } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { KonvergeError, sleepMs } from "@konverge/core";
import {
  bearerToken,
  githubSignature,
  hmacSignature,
  inbound,
  type Delivery,
  type InboundOptions,
} from "@konverge/engine";
import { createControllerRegistry, type SourceStore } from "@konverge/queue";
import * as fc from "fast-check";
import { beforeEach, expect, test, vi } from "vitest";
import { acceptDelivery } from "../../../libs/api/src/inbound/accept-delivery.ts";
import { createInboundSecrets } from "../../../libs/api/src/inbound/inbound-secrets.ts";
import { until } from "../../support/until.ts";
import { problemIn, useApi } from "../api/api-harness.ts";
import { NODE_POOL } from "../queue/announce.ts";
import { useSources } from "./sources-harness.ts";
import { seed } from "../../support/test-run.ts";

const SECRET = "It's a Secret to Everybody";
const harness = useApi({ announces: false });
const sources = useSources(harness.queues);

const named = (name: string) => ({ namespace: "n", name });
const sign = (body: string) => `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`;

/** Announces inbound sources as a worker does, and runs them as its leader does. */
async function open(
  given: Readonly<Record<string, InboundOptions>>,
  { leads = true }: { readonly leads?: boolean } = {},
) {
  const list = Object.entries(given).map(([name, options]) => inbound(name, options));
  const { target, prefix } = harness.queues;
  const registry = createControllerRegistry({ redis: target, prefix, cluster: "default" });
  await registry.announce([
    {
      ...NODE_POOL,
      name: "sourced",
      sources: list.map(({ kind, name, inbound: how }) => ({ kind, name, inbound: how })),
    },
  ]);
  await registry.close();
  const lead = () => sources.lead(list);
  return { lead, ...(leads ? lead() : {}) };
}

const secrets = Object.fromEntries(
  ["github", "timed", "generic", "bearer"].map((name) => [name, [SECRET]]),
);
let post: (
  name: string,
  body: string | Uint8Array<ArrayBuffer>,
  headers?: Record<string, string>,
) => Promise<Response>;

beforeEach(() => {
  const call = harness.serve({ inboundSecrets: createInboundSecrets({ given: secrets }) });
  // The harness sends JSON values; a signature needs the exact text.
  post = (name, body, headers = {}) =>
    call(`/v1/inbound/${name}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      bytes: body,
    });
});

const github = (map: InboundOptions["map"]): InboundOptions => ({ verify: githubSignature(), map });
const push = (name: string) => JSON.stringify({ repository: { name } });
const signed = (body: string, id = body) => ({
  "x-hub-signature-256": sign(body),
  "x-github-delivery": id.slice(0, 100),
  "x-github-event": "push",
});
const byRepository = ({ data }: Delivery) =>
  named((data as { repository: { name: string } }).repository.name);

test("a verified delivery requests its object, and a repetition is answered without another request", async () => {
  const seen: Delivery[] = [];
  await open({
    github: github((delivery) => {
      seen.push(delivery);
      return byRepository(delivery);
    }),
  });
  const body = push("web");
  const first = await post("github", body, signed(body, "d-1"));
  expect(first.status).toBe(202);
  expect(await first.json()).toEqual({ id: "d-1", status: "accepted" });
  await until("it is requested", async () => (await sources.requests())["web"] === 1);
  const again = await post("github", body, signed(body, "d-1"));
  expect(await again.json()).toEqual({ id: "d-1", status: "duplicate" });
  // A second event can have an identical body.
  const next = await post("github", body, signed(body, "d-2"));
  expect(await next.json()).toEqual({ id: "d-2", status: "accepted" });
  await until("it is requested again", async () => (await sources.requests())["web"] === 2);
  const { "x-github-delivery": _, ...unnamed } = signed(body);
  const statuses = [];
  for (let times = 0; times < 2; times += 1) {
    const answer = (await (await post("github", body, unnamed)).json()) as { status: string };
    statuses.push(answer.status);
  }
  expect(statuses).toEqual(["accepted", "duplicate"]);
  await until("it is requested once more", async () => (await sources.requests())["web"] === 3);
  const other = push("api");
  await post("github", other, signed(other, "d-3"));
  await until("the next is requested", async () => (await sources.requests())["api"] === 1);
  expect(await sources.requests()).toEqual({ web: 3, api: 1 });
  expect(seen[0]).toMatchObject({
    id: "d-1",
    data: { repository: { name: "web" } },
    headers: { "x-github-event": "push" },
    event: {},
  });
  expect(Object.keys(seen[0]?.headers ?? {})).toEqual(["x-github-event"]);
});

test("a delivery that is accepted without a leader is mapped by the next one", async () => {
  const { lead } = await open({ github: github(byRepository) }, { leads: false });
  const body = push("web");
  expect((await post("github", body, signed(body))).status).toBe(202);
  expect(await sources.requests()).toEqual({});
  lead();
  await until("it is requested", async () => (await sources.requests())["web"] === 1);
});

test("a map that throws, hangs or names no possible object is retried, and does not delay others", async () => {
  let calls = 0;
  await open({
    github: {
      ...github((delivery) => {
        const { name } = byRepository(delivery);
        if (name === "hangs") return new Promise(() => undefined);
        if (name === "unnamed") return { name };
        if (name !== "throws") return named(name);
        calls += 1;
        if (calls === 1) throw new Error("no such team");
        return named(name);
      }),
      timeout: 50,
    },
  });
  for (const name of ["hangs", "throws", "unnamed", "works"]) {
    const body = push(name);
    expect((await post("github", body, signed(body))).status).toBe(202);
  }
  await until("both are requested", async () => {
    const requests = await sources.requests();
    return requests["works"] === 1 && requests["throws"] === 1;
  });
  const call = harness.serve();
  const report = await until("the others are reported as failing", async () => {
    const { items } = (await (await call("/v1/sources")).json()) as {
      items: { state: string; waiting: number; error: string; name: string }[];
    };
    return items.find(({ state }) => state === "failing");
  });
  expect(report).toMatchObject({ name: "github", kind: "inbound", controller: "sourced" });
  expect(report.waiting).toBeGreaterThanOrEqual(2);
  expect(report.error).toMatch(/map took more than 50 ms|namespace is required/);
});

const REFUSED: readonly {
  readonly what: string;
  readonly name?: string;
  readonly body?: string;
  readonly headers?: Record<string, string>;
  readonly status: number;
  readonly code: string;
  readonly detail: RegExp;
}[] = [
  {
    what: "an unknown source",
    name: "unknown",
    status: 404,
    code: "not_found",
    detail: /no controller/,
  },
  {
    what: "a name that is a path",
    name: "..%2Fgithub",
    status: 404,
    code: "not_found",
    detail: /no controller/,
  },
  {
    what: "no signature",
    headers: {},
    status: 401,
    code: "unauthorized",
    detail: /x-hub-signature-256.*missing/,
  },
  {
    what: "a wrong signature",
    headers: { "x-hub-signature-256": sign("other") },
    status: 401,
    code: "unauthorized",
    detail: /does not match/,
  },
  {
    what: "a short signature",
    headers: { "x-hub-signature-256": "sha256=00" },
    status: 401,
    code: "unauthorized",
    detail: /32 bytes in hex/,
  },
  {
    what: "another algorithm",
    headers: { "x-hub-signature-256": sign("{}").replace("256=", "1=") },
    status: 401,
    code: "unauthorized",
    detail: /sha256=/,
  },
  { what: "no JSON", body: "{", status: 400, code: "invalid_body", detail: /not valid JSON/ },
  {
    what: "another type",
    headers: {
      "x-hub-signature-256": sign("{}"),
      "content-type": "application/x-www-form-urlencoded",
    },
    status: 415,
    code: "unsupported_media_type",
    detail: /select application\/json/,
  },
  {
    what: "a batch",
    headers: {
      "x-hub-signature-256": sign("{}"),
      "content-type": "application/cloudevents-batch+json",
    },
    status: 415,
    code: "unsupported_media_type",
    detail: /one event/,
  },
  {
    what: "an incomplete CloudEvent",
    headers: { "x-hub-signature-256": sign("{}"), "content-type": "application/cloudevents+json" },
    status: 422,
    code: "invalid_request",
    detail: /specversion must be "1.0"/,
  },
  {
    what: "a long id",
    headers: { "x-hub-signature-256": sign("{}"), "x-github-delivery": "x".repeat(256) },
    status: 422,
    code: "invalid_request",
    detail: /255/,
  },
  {
    what: "a source without a secret",
    name: "closed",
    status: 503,
    code: "inbound_closed",
    detail: /KONVERGE_INBOUND_SECRETS/,
  },
  {
    what: "a large body",
    body: `"${"x".repeat(1_025 * 1_024)}"`,
    status: 413,
    code: "body_too_large",
    detail: /1024 KiB/,
  },
  {
    what: "another token",
    name: "bearer",
    headers: { authorization: "Bearer nope" },
    status: 401,
    code: "unauthorized",
    detail: /does not match/,
  },
  { what: "no token", name: "bearer", status: 401, code: "unauthorized", detail: /Authorization/ },
  {
    what: "no timestamp",
    name: "timed",
    status: 401,
    code: "unauthorized",
    detail: /x-timestamp.*missing/,
  },
];

test.each(REFUSED)(
  "rejects $what",
  async ({ name = "github", body = "{}", headers, ...expected }) => {
    const map = () => null;
    await open(
      {
        github: github(map),
        closed: github(map),
        bearer: { verify: bearerToken(), map },
        timed: {
          verify: hmacSignature({
            header: "X-Hub-Signature-256",
            prefix: "sha256=",
            timestampHeader: "X-Timestamp",
          }),
          map,
        },
      },
      { leads: false },
    );
    const response = await post(name, body, headers ?? { "x-hub-signature-256": sign(body) });
    const problem = await problemIn(response);
    expect(problem).toMatchObject({ status: expected.status, code: expected.code });
    expect(problem.detail).toMatch(expected.detail);
    expect(problem.detail).not.toContain(SECRET);
    const keys = await harness.queues.redis.keys(`${harness.queues.prefix}:*inbound*`);
    expect(keys).toEqual([]);
  },
);

test("an endless body is read up to the limit of its source", async () => {
  await open({ github: { ...github(() => null), maxBodyKiB: 1 } }, { leads: false });
  let pulled = 0;
  const endless = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        pulled += 1;
        if (pulled > 100) controller.error(new Error("read too far"));
        else controller.enqueue(new Uint8Array(1_024));
      },
    },
    { highWaterMark: 0 },
  );
  const context = {
    req: {
      header: (name?: string) => (name === "x-hub-signature-256" ? sign("") : undefined),
      raw: { body: endless },
    },
  } as unknown as Parameters<typeof acceptDelivery>[1];
  const source = inbound("github", { ...github(() => null), maxBodyKiB: 1 });
  const target = {
    name: "github",
    inbound: source.inbound,
    store: sources.store,
    secrets: createInboundSecrets({ given: secrets }),
    admit: () => undefined,
  };
  await expect(acceptDelivery(target, context)).rejects.toThrow("larger than 1 KiB");
  expect(pulled).toBe(2);
});

test("the id of a CloudEvent identifies it together with its source", async () => {
  await open({ bearer: { verify: bearerToken(), map: () => null } }, { leads: false });
  secrets["bearer"] = [SECRET.replaceAll(" ", "")];
  const authorization = `Bearer ${SECRET.replaceAll(" ", "")}`;
  for (const [source, id] of [
    ["a b", "c"],
    ["a", "b c"],
  ]) {
    const event = JSON.stringify({ specversion: "1.0", type: "t", source, id });
    const type = { authorization, "content-type": "application/cloudevents+json" };
    const answer = await post("bearer", event, type);
    expect(await answer.json()).toEqual({ id, status: "accepted" });
  }
});

test("a signed time is compared with the clock of Redis", async () => {
  await open({
    timed: {
      verify: hmacSignature({ header: "X-Signature", timestampHeader: "X-Timestamp" }),
      map: () => named("a"),
    },
  });
  const send = async (time: string) => {
    const signature = createHmac("sha256", SECRET).update(`${time}.{}`).digest("hex");
    return await post("timed", "{}", { "x-signature": signature, "x-timestamp": time });
  };
  const now = Date.now();
  for (const good of [String(Math.floor(now / 1_000)), String(now), new Date(now).toISOString()]) {
    expect((await send(good)).status).toBe(202);
  }
  for (const [time, place] of [
    [now - 3_600_000, "ago"],
    [now + 3_600_000, "in the future"],
  ] as const) {
    const problem = await problemIn(await send(String(time)));
    expect(problem.status).toBe(401);
    expect(problem.detail).toContain(place);
  }
  const problem = await problemIn(await send("yesterday"));
  expect(problem.detail).toContain("RFC 3339");
});

test("CloudEvents in structured and in binary mode have the same attributes and data", async () => {
  const seen: Delivery[] = [];
  await open({
    bearer: {
      verify: bearerToken(),
      map: (delivery) => {
        seen.push(delivery);
        return named(delivery.event["subject"] ?? "");
      },
    },
  });
  const event = { specversion: "1.0", id: "1", source: "/shop", type: "order", subject: "blue" };
  const authorization = `Bearer ${SECRET.replaceAll(" ", "")}`;
  secrets["bearer"] = [SECRET.replaceAll(" ", "")];
  const structured = await post("bearer", JSON.stringify({ ...event, data: { size: 1 } }), {
    authorization,
    "content-type": "application/cloudevents+json; charset=utf-8",
  });
  expect(structured.status).toBe(202);
  const again = await post("bearer", JSON.stringify({ size: 1 }), {
    authorization,
    ...Object.fromEntries(Object.entries(event).map(([name, value]) => [`ce-${name}`, value])),
  });
  expect(await again.json()).toEqual({ id: "1", status: "duplicate" });
  const binary = await post("bearer", JSON.stringify({ size: 1 }), {
    authorization,
    ...Object.fromEntries(Object.entries(event).map(([name, value]) => [`ce-${name}`, value])),
    "ce-id": "2",
    "ce-subject": "gr%C3%BCn",
  });
  expect(binary.status).toBe(202);
  await until("both are mapped", () => seen.length === 2);
  const [first, second] = seen.toSorted((one, other) => one.id.localeCompare(other.id));
  expect(first).toMatchObject({ id: "1", data: { size: 1 }, event });
  expect(second).toMatchObject({
    id: "2",
    data: { size: 1 },
    event: { ...event, id: "2", subject: "grün" },
  });
});

test(`no body is accepted with the signature of another one (seed ${seed})`, async () => {
  await open({ github: github(() => null) }, { leads: false });
  const body = fc.oneof(fc.json(), fc.string({ unit: "binary", maxLength: 40 }));
  await fc.assert(
    fc.asyncProperty(body, body, fc.nat(400), async (text, other, at) => {
      const bytes = Buffer.from(text);
      const changed = Buffer.from(bytes);
      if (bytes.length > 0) changed[at % bytes.length] = (changed[at % bytes.length] ?? 0) ^ 1;
      for (const wrong of [Buffer.from(other), changed, Buffer.concat([bytes, Buffer.from(" ")])]) {
        if (wrong.equals(bytes)) continue;
        const response = await post("github", wrong, {
          "x-hub-signature-256": `sha256=${createHmac("sha256", SECRET).update(bytes).digest("hex")}`,
        });
        expect(response.status).toBe(401);
      }
      const right = await post("github", bytes, {
        "x-hub-signature-256": `sha256=${createHmac("sha256", SECRET).update(bytes).digest("hex")}`,
      });
      expect([202, 400]).toContain(right.status);
    }),
    { seed, numRuns: 30 },
  );
});

test("a leader with deliveries at any stage stops", async () => {
  for (let at = 0; at < 20; at += 1) {
    const { stop } = sources.lead([
      inbound(
        "github",
        github(() => named("a")),
      ),
    ]);
    for (let serial = 0; serial < 3; serial += 1) {
      const text = JSON.stringify({ form: "text", body: "", event: {}, headers: {} });
      await sources.store.accept("github", { text, marks: [], windowMs: 1_000 });
    }
    await sleepMs(at);
    await stop();
  }
  const { lines } = sources.lead([
    inbound(
      "github",
      github(() => named("a")),
    ),
  ]);
  await until("all are mapped", async () => {
    return (await sources.store.take("github", 1)).waiting === 0;
  });
  expect(lines.filter(({ level }) => level === "warn")).toEqual([]);
});

const stored = (form = "text", body = "x") => ({
  text: JSON.stringify({ form, body, event: {}, headers: {} }),
  marks: [],
  windowMs: 1_000,
});

test("the end of a delivery that Redis has lost does not remove one that was stored since", async () => {
  const { store } = sources;
  const { detail: lost } = await store.accept("github", stored());
  const { redis, prefix } = harness.queues;
  const keys = await redis.keys(`${prefix}:*inbound*`);
  await redis.unlink(...keys);
  await store.accept("github", stored());
  await store.settle("github", lost);
  expect((await store.take("github", 1)).waiting).toBe(1);
});

test("the loop of an inbound source reads no bodies", async () => {
  await sources.store.accept("github", stored("text", "a body"));
  const taken = await sources.store.take("github", 16);
  expect(taken.waiting).toBe(1);
  expect(JSON.stringify(taken)).not.toContain("a body");
});

test("a delivery in a form of a newer version stays stored", async () => {
  const map = vi.fn<InboundOptions["map"]>(() => named("a"));
  await sources.store.accept("github", stored("newer", "{}"));
  const { lines } = sources.lead([inbound("github", github(map))]);
  const failed = await until("it is reported", () => lines.find(({ level }) => level === "warn"));
  expect(JSON.stringify(failed)).toContain("newer");
  expect((await sources.store.take("github", 1)).waiting).toBe(1);
  expect(map).not.toHaveBeenCalled();
});

test("an error of Redis ends the running calls of map, and all deliveries are mapped again", async () => {
  const { store } = sources;
  let isBroken = true;
  let hanging = 0;
  const broken = proxied(store, {
    async settle(...args) {
      if (!isBroken) return await store.settle(...args);
      isBroken = false;
      throw new KonvergeError("redis_unavailable", "no Redis");
    },
  });
  const map = ({ data }: Delivery) => {
    if (data !== "hangs") return named("a");
    hanging += 1;
    return hanging === 1 ? new Promise<null>(() => undefined) : null;
  };
  await store.accept("github", stored("text", "hangs"));
  const source = inbound("github", { ...github(map), timeout: "1h" });
  sources.lead([source], { store: broken });
  await until("it hangs", () => hanging === 1);
  await store.accept("github", stored("text", "works"));
  await until("all are mapped", async () => (await store.take("github", 1)).waiting === 0);
  expect(hanging).toBe(2);
});

test("wakes leave nothing behind in memory", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const none = { nextMs: undefined, oldestMs: 0, waiting: 0, due: [] };
  let wake = () => undefined as void;
  let wakes = 0;
  const { store } = sources;
  const waking = proxied(store, {
    onArrived(_, listener) {
      wake = listener;
      return () => undefined;
    },
    take() {
      wakes += 1;
      return Promise.resolve(none);
    },
  });
  sources.lead(
    [
      inbound(
        "github",
        github(() => null),
      ),
    ],
    { store: waking },
  );
  const wakeTimes = async (times: number) => {
    for (const end = wakes + times; wakes < end; await setImmediate()) wake();
    collect();
    return process.memoryUsage().heapUsed;
  };
  const before = await wakeTimes(1_000);
  const after = await wakeTimes(40_000);
  expect((after - before) / 40_000).toBeLessThan(50);
});

/** Replaces methods of a store. */
function proxied(store: SourceStore, methods: Partial<SourceStore>): SourceStore {
  return new Proxy(store, {
    get(target, name) {
      const replaced: unknown = Reflect.get(methods, name);
      if (replaced !== undefined) return replaced;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}
