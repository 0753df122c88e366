import type { ServerResponse } from "node:http";
import { createReflector, type ReflectorEvent, type ReflectorOptions } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { describe, expect, test } from "vitest";
import {
  clientFor,
  sendJson,
  sendStatus,
  startWireServer,
  watchfulGate,
  type Exchange,
} from "./kube-wire-server.ts";
import { until } from "../../support/until.ts";

const make = (name: string, version: string, uid = name) => ({
  metadata: { namespace: "n", name, uid, resourceVersion: version },
});
const listOf = (version: string, ...items: object[]) => ({
  kind: "ConfigMapList",
  metadata: { resourceVersion: version },
  items,
});
const beginWatch = (response: ServerResponse) => {
  response.writeHead(200, { "content-type": "application/json" });
  response.flushHeaders();
};
const sendEvent = (response: ServerResponse, type: string, object: object) =>
  response.write(`${JSON.stringify({ type, object })}\n`);

/** The n-th script answers the n-th list and the n-th watch; the last one repeats. */
async function reflect(
  scripts: {
    readonly lists: readonly ((exchange: Exchange) => void)[];
    readonly watches: readonly ((exchange: Exchange) => void)[];
  },
  options: Partial<ReflectorOptions<any>> = {},
) {
  const lists: URLSearchParams[] = [];
  const watches: URLSearchParams[] = [];
  const server = await startWireServer((exchange) => {
    const { searchParams } = exchange.url;
    const [seen, answers] = searchParams.has("watch")
      ? [watches, scripts.watches]
      : [lists, scripts.lists];
    seen.push(searchParams);
    answers[Math.min(seen.length, answers.length) - 1]?.(exchange);
  });
  const { gate, requested } = watchfulGate();
  const client = clientFor(server, { gate });
  const events: ReflectorEvent<any>[] = [];
  const errors: Error[] = [];
  const sleeps: number[] = [];
  const reflector = createReflector<any>({
    client,
    type: ConfigMap,
    onEvent: (event) => void events.push(event),
    onError: (error) => void errors.push(error),
    random: () => 0,
    sleep: (ms, signal) => {
      sleeps.push(ms);
      signal?.throwIfAborted();
      return Promise.resolve();
    },
    ...options,
  });
  reflector.start();
  return {
    server,
    reflector,
    events,
    errors,
    sleeps,
    lists,
    watches,
    requested,
    delivered: () =>
      events.map(
        ({ kind, object }) => `${kind} ${object.metadata.uid}@${object.metadata.resourceVersion}`,
      ),
    async [Symbol.asyncDispose]() {
      await reflector.stop();
      await client.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

const idle = ({ response }: Exchange) => beginWatch(response);
const unavailable = ({ response }: Exchange) => sendStatus(response, 503, "ServiceUnavailable");
const answerList =
  (version: string, ...items: object[]) =>
  ({ response }: Exchange) =>
    sendJson(response, 200, listOf(version, ...items));

test("lists the newest state, reports it as initial, then watches from there with bookmarks, through the gate", async () => {
  await using run = await reflect({ lists: [answerList("5", make("a", "3"))], watches: [idle] });
  await run.reflector.synced;
  await until("the watch starts", () => run.watches.length === 1);
  expect(run.events).toMatchObject([
    { kind: "added", initial: true, object: { kind: "ConfigMap", apiVersion: "v1" } },
  ]);
  expect(Object.fromEntries(run.lists[0] ?? [])).toEqual({ limit: "250" });
  expect(Object.fromEntries(run.watches[0] ?? [])).toEqual({
    watch: "1",
    allowWatchBookmarks: "true",
    resourceVersion: "5",
    timeoutSeconds: "300",
  });
  expect(run.requested.map(({ verb }) => verb)).toEqual(["list", "watch"]);
});

test("resumes a broken stream at the last version, including bookmarks, without a list", async () => {
  await using run = await reflect({
    lists: [answerList("5")],
    watches: [
      ({ response, request }) => {
        beginWatch(response);
        sendEvent(response, "ADDED", make("a", "6"));
        sendEvent(response, "BOOKMARK", { metadata: { resourceVersion: "9" } });
        response.write('{"type":"ADDED","obj', () => request.socket.destroy());
      },
      idle,
    ],
  });
  await until("the watch is resumed", () => run.watches.length === 2);
  expect(run.watches[1]?.get("resourceVersion")).toBe("9");
  expect(run.lists).toHaveLength(1);
  expect(run.delivered()).toEqual(["added a@6"]);
  expect(run.sleeps).toEqual([]);
});

test("resumes immediately and silently after a normal end", async () => {
  await using run = await reflect({
    lists: [answerList("5")],
    watches: [
      ({ response }) => {
        beginWatch(response);
        sendEvent(response, "BOOKMARK", { metadata: { resourceVersion: "7" } });
        response.end();
      },
      idle,
    ],
  });
  await until("the watch is resumed", () => run.watches.length === 2);
  expect([run.watches[1]?.get("resourceVersion"), run.errors, run.sleeps]).toEqual(["7", [], []]);
});

describe("lists immediately after a 410,", () => {
  const expired = {
    kind: "Status",
    code: 410,
    reason: "Expired",
    message: "too old resource version: 5 (90)",
  };
  test.each<[string, (exchange: Exchange) => void]>([
    [
      "as an ERROR event inside a 200 stream",
      ({ response }) => {
        beginWatch(response);
        sendEvent(response, "ADDED", make("b", "6"));
        sendEvent(response, "ERROR", expired);
        response.end();
      },
    ],
    [
      "as a response",
      ({ response, url }) => {
        if (url.searchParams.get("resourceVersion") === "6") sendStatus(response, 410, "Expired");
        else {
          beginWatch(response);
          sendEvent(response, "ADDED", make("b", "6"));
          response.end();
        }
      },
    ],
  ])("%s", async (_title, watch) => {
    await using run = await reflect({
      lists: [answerList("5", make("a", "3")), answerList("90", make("b", "80"), make("c", "81"))],
      watches: [
        watch,
        (exchange) =>
          (exchange.url.searchParams.get("resourceVersion") === "90" ? idle : watch)(exchange),
        idle,
      ],
    });
    await until(
      "the watch continues from the second list",
      () => run.watches.at(-1)?.get("resourceVersion") === "90",
    );
    expect(run.delivered()).toEqual([
      "added a@3",
      "added b@6",
      "changed b@80",
      "added c@81",
      "deleted a@3",
    ]);
    expect(run.events.map(({ initial }) => initial)).toEqual([true, false, false, false, false]);
    expect(run.lists[1]?.get("resourceVersion")).toBeNull();
    expect([run.errors, run.sleeps]).toEqual([[], []]);
  });
});

test("waits with growing delays if the server expires the version of its latest list", async () => {
  await using run = await reflect({
    lists: [answerList("5")],
    watches: [({ response }) => sendStatus(response, 410, "Expired")],
  });
  await until("five requests", () => run.watches.length >= 5);
  expect(run.sleeps.slice(0, 4)).toEqual([800, 1_600, 3_200, 6_400]);
});

test("aborts a silent stream and resumes it", async () => {
  await using run = await reflect({ lists: [answerList("5")], watches: [idle] }, { silentMs: 300 });
  await until("the watch restarts", () => run.watches.length >= 2);
  expect(run.watches[1]?.get("resourceVersion")).toBe("5");
  expect(run.lists).toHaveLength(1);
  expect(run.errors, "silence is normal for a server without bookmarks").toEqual([]);
});

test("reports silence of a server that has sent bookmarks", async () => {
  await using run = await reflect(
    {
      lists: [answerList("5")],
      watches: [
        ({ response }) => {
          beginWatch(response);
          sendEvent(response, "BOOKMARK", { metadata: { resourceVersion: "7" } });
        },
        idle,
      ],
    },
    { silentMs: 300 },
  );
  await until("the watch restarts", () => run.watches.length >= 2);
  expect(run.watches[1]?.get("resourceVersion")).toBe("7");
  expect(run.errors[0]).toMatchObject({
    code: "kube_unreachable",
    message: expect.stringMatching(/sent nothing for 300 ms/),
  });
});

test("reads a list in pages of one version, and delivers each page before it reads the next", async () => {
  const delivered: string[] = [];
  const page =
    (token: string | undefined, ...items: object[]) =>
    ({ response }: Exchange) =>
      sendJson(response, 200, {
        metadata: { resourceVersion: "90", continue: token },
        items,
      });
  await using run = await reflect(
    {
      lists: [
        page("t1", make("a", "3")),
        page("t2", make("b", "4")),
        (exchange) => {
          delivered.push(...run.delivered());
          answerList("90", make("c", "5"))(exchange);
        },
      ],
      watches: [idle],
    },
    {},
  );
  await run.reflector.synced;
  await until("the watch starts", () => run.watches.length === 1);
  expect(
    run.lists.map((query) => [
      query.get("limit"),
      query.get("continue"),
      query.get("resourceVersion"),
    ]),
  ).toEqual([
    ["250", null, null],
    ["500", "t1", null],
    ["500", "t2", null],
  ]);
  expect(run.watches[0]?.get("resourceVersion")).toBe("90");
  expect(delivered).toEqual(["added a@3", "added b@4"]);
  expect(run.delivered()).toEqual(["added a@3", "added b@4", "added c@5"]);
  expect(run.events.every(({ initial, version }) => initial && version === "90")).toBe(true);
});

test("begins a list again if a continue token expires, and reports what is gone by then", async () => {
  await using run = await reflect({
    lists: [
      ({ response }) =>
        sendJson(response, 200, {
          metadata: { resourceVersion: "80", continue: "t" },
          items: [make("a", "3"), make("b", "4")],
        }),
      ({ response }) => sendStatus(response, 410, "Expired"),
      answerList("90", make("b", "85"), make("c", "81")),
    ],
    watches: [idle],
  });
  await until("the watch starts", () => run.watches.length === 1);
  expect(run.lists.map((query) => query.get("limit"))).toEqual(["250", "500", "2000"]);
  expect(run.delivered()).toEqual([
    "added a@3",
    "added b@4",
    "changed b@85",
    "added c@81",
    "deleted a@3",
  ]);
  expect(run.watches[0]?.get("resourceVersion")).toBe("90");
  expect([run.errors, run.sleeps]).toEqual([[], []]);
});

test("retries a failing first list and reports each failure", async () => {
  await using run = await reflect({
    lists: [unavailable, unavailable, answerList("5")],
    watches: [idle],
  });
  await run.reflector.synced;
  expect([run.errors.length, run.sleeps]).toEqual([2, [800, 1_600]]);
});

test("honors Retry-After and does not list again", async () => {
  await using run = await reflect({
    lists: [answerList("5")],
    watches: [
      ({ response }) => response.writeHead(429, { "retry-after": "7" }).end("Too many requests"),
      idle,
    ],
  });
  await until("the watch is retried", () => run.watches.length === 2);
  expect([run.sleeps, run.lists.length]).toEqual([[7_000], 1]);
});

test("a replaced object is reported as deleted and added", async () => {
  await using run = await reflect({
    lists: [answerList("5", make("a", "3", "old"))],
    watches: [
      ({ response }) => {
        beginWatch(response);
        sendEvent(response, "MODIFIED", make("a", "6", "new"));
      },
    ],
  });
  await until("both are reported", () => run.events.length === 3);
  expect(run.delivered()).toEqual(["added old@3", "deleted old@3", "added new@6"]);
});

test("an event counts as delivered once its handler resolves: it is delivered again after a failure, and the version waits", async () => {
  let fails = 2;
  const seen: string[] = [];
  const held = Promise.withResolvers<void>();
  await using run = await reflect(
    {
      lists: [answerList("5")],
      watches: [
        ({ response }) => {
          beginWatch(response);
          sendEvent(response, "ADDED", make("a", "6"));
          sendEvent(response, "ADDED", make("b", "7"));
        },
      ],
    },
    {
      onEvent: async ({ object }) => {
        seen.push(object.metadata.name);
        if (fails-- > 0) throw new Error("Redis is unavailable");
        if (object.metadata.name === "b") await held.promise;
      },
    },
  );
  await until("the second event is being delivered", () => seen.at(-1) === "b");
  expect(seen).toEqual(["a", "a", "a", "b"]);
  expect(run.errors.map(({ message }) => message)).toEqual([
    "Redis is unavailable",
    "Redis is unavailable",
  ]);
  expect(run.reflector.lastVersion).toBe("6");
  expect(run.reflector.get("n", "b")).toBeDefined();
  held.resolve();
  await until("the version advances", () => run.reflector.lastVersion === "7");
});

test("stop ends the watch and closes its connection; `synced` rejects after an early stop", async () => {
  const run = await reflect({ lists: [() => undefined], watches: [idle] });
  await until("the list arrives", () => run.lists.length === 1);
  await run.reflector.stop();
  await expect(run.reflector.synced).rejects.toMatchObject({ code: "cancelled" });
  expect(run.errors).toEqual([]);
  await until("the connection is closed", () => run.server.sockets.size === 0);
  await run[Symbol.asyncDispose]();
});

test("watches do not use the connections of ordinary calls", async () => {
  await using server = await startWireServer(({ response, url }) => {
    if (url.searchParams.has("watch")) beginWatch(response);
    else sendJson(response, 200, listOf("5"));
  });
  await using client = clientFor(server, { maxConnections: 1 });
  const reflectors = Array.from({ length: 5 }, () =>
    createReflector({ client, type: ConfigMap, onEvent: () => undefined }),
  );
  for (const reflector of reflectors) reflector.start();
  await until(
    "five watches run",
    () => server.requests.filter(({ url }) => url.searchParams.has("watch")).length === 5,
  );
  expect((await client.list(ConfigMap)).resourceVersion).toBe("5");
  await Promise.all(reflectors.map((reflector) => reflector.stop()));
});
