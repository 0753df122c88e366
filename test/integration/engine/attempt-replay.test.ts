import { connect } from "node:net";
import { TerminalError, type ApiObject } from "@konverge/core";
import type { ReconcileContext } from "@konverge/engine";
import type { KubeClient, NewObject } from "@konverge/kube";
import { ConfigMap, Secret } from "@konverge/kube/kinds";
import type { AttemptRecording } from "@konverge/records";
import { afterAll, beforeAll, expect, test } from "vitest";
import { testServers } from "../kube/kube-servers.ts";
import { recordAttempt, replayWith } from "./replay-world.ts";

let client: KubeClient;
let close: () => Promise<void>;
let count = 0;
beforeAll(async () => {
  const [target] = testServers();
  const server = await target!.open();
  client = server.client;
  close = () => server.close();
});
afterAll(() => close());

type Config = ApiObject & { data?: Record<string, string> };
type Context = ReconcileContext<Config>;
type Handler = (context: Context) => Promise<unknown>;

const namespace = "default";

async function newObject(data: Record<string, string> = {}): Promise<string> {
  count += 1;
  const name = `replayed-${count}`;
  await client.create(ConfigMap, { metadata: { namespace, name }, data } as NewObject<ApiObject>);
  return name;
}

async function record(handler: Handler, data?: Record<string, string>): Promise<AttemptRecording> {
  const name = await newObject(data);
  return await recordAttempt({ client, type: ConfigMap, namespace, name }, handler as never);
}

const replay = (recording: AttemptRecording, handler: Handler) =>
  replayWith(ConfigMap as never, recording, handler as never);

const set =
  (key: string, value: string): Handler =>
  async ({ object, kube }) => {
    await kube.mutate(object, (draft) => void (draft.data = { ...draft.data, [key]: value }));
  };

test("reports the fields that today's code would write otherwise", async () => {
  const recording = await record(set("size", "3"));
  expect(await replay(recording, set("size", "3"))).toMatchObject({ result: "same" });
  const changed = await replay(recording, set("size", "4"));
  expect(changed).toMatchObject({ result: "different", unstable: [] });
  expect(changed.writes).toMatchObject([
    { kind: "other", differences: [{ path: "data.size", recorded: "3", replayed: "4" }] },
  ]);
});

test("reports missing and extra writes, events and calls", async () => {
  const recording = await record(async (context) => {
    await set("a", "1")(context);
    await context.external("charge", () => ({ id: 7 }));
    await context.kube.event(context.object, { type: "Normal", reason: "Set", message: "a" });
  });
  const nothing = await replay(recording, async () => undefined);
  expect(nothing.writes.map(({ kind }) => kind)).toEqual(["missing"]);
  expect(nothing.effects.map(({ kind, effect }) => `${kind} ${effect}`)).toEqual([
    "missing event",
    "missing external",
  ]);
  const more = await replay(recording, async (context) => {
    await set("a", "1")(context);
    expect(await context.external("charge", () => ({ id: 8 }))).toEqual({ id: 7 });
    await context.kube.event(context.object, { type: "Normal", reason: "Set", message: "a" });
    const { name } = context.object.metadata;
    await context.kube.create(ConfigMap, { metadata: { name: `${name}-child` } });
  });
  expect(more.writes.map(({ kind }) => kind)).toEqual(["same", "extra"]);
  expect(more.effects).toEqual([]);
});

test("ends at a read that the attempt did not make, and names it", async () => {
  const recording = await record(set("a", "1"));
  const report = await replay(recording, async (context) => {
    await set("a", "1")(context);
    await context.kube.find(ConfigMap, "settings");
    await set("b", "2")(context);
  });
  expect(report).toMatchObject({
    result: "unknown",
    end: {
      about: "ConfigMap default/settings",
      reason: "today's code reads it, and attempt 7 did not read it",
    },
    writes: [{ kind: "same" }],
  });
});

test("stays ended when the handler catches the error", async () => {
  const recording = await record(set("a", "1"));
  const report = await replay(recording, async (context) => {
    await context.kube.get(ConfigMap, "settings").catch(() => undefined);
    await set("a", "1")(context);
  });
  expect(report).toMatchObject({ result: "unknown", writes: [] });
});

test("shows later reads what the replay has written", async () => {
  const handler =
    (value: string): Handler =>
    async (context) => {
      const { name } = context.object.metadata;
      const child = `${name}-child`;
      await context.kube.create(ConfigMap, { metadata: { name: child }, data: { value } } as never);
      const read = await context.kube.get<Config>(ConfigMap as never, child);
      await set("seen", read.data?.["value"] ?? "")(context);
    };
  const recording = await record(handler("1"));
  expect(await replay(recording, handler("1"))).toMatchObject({ result: "same", assumed: [] });
  const changed = await replay(recording, handler("2"));
  expect(changed.writes.map(({ kind, differences }) => [kind, ...differences])).toEqual([
    ["other", { path: "data.value", recorded: "1", replayed: "2" }],
    ["other", { path: "data.seen", recorded: "1", replayed: "2" }],
  ]);
  expect(changed.assumed).toHaveLength(2);
});

test("P12: keeps values of Secrets out, and names them as gaps", async () => {
  const password = "cHctY2FuYXJ5LXZhbHVl";
  const plain = Buffer.from(password, "base64").toString();
  await client.create(Secret, {
    metadata: { namespace, name: "db" },
    data: { password },
  } as NewObject<ApiObject>);
  const handler: Handler = async (context) => {
    const secret = await context.kube.get<Config>(Secret as never, "db");
    const text = Buffer.from(secret.data?.["password"] ?? "", "base64").toString();
    await set("url", `db://user:${text}@host`)(context);
  };
  const recording = await record(handler);
  const stored = JSON.stringify(recording);
  expect(stored).not.toContain(plain);
  expect(stored).not.toContain(password);
  const report = await replay(recording, handler);
  expect(report.result).toBe("same");
  expect(report.gaps.map(({ reason }) => reason).join()).toContain("the kind is sensitive");
});

test("reports a handler that is not deterministic", async () => {
  const handler: Handler = (context) => set("drawn", String(Math.random()))(context);
  const recording = await record(handler);
  const report = await replay(recording, handler);
  expect(report.result).toBe("different");
  expect(report.unstable).not.toEqual([]);
});

test("repeats the time of the attempt", async () => {
  const handler: Handler = (context) => set("at", new Date().toISOString())(context);
  const recording = await record(handler);
  const past = { ...recording, beganAtMs: recording.beganAtMs - 86_400_000 };
  expect(await replay(recording, handler)).toMatchObject({ result: "same" });
  let year = 0;
  await replay({ ...past, beganAtMs: Date.UTC(2001, 1, 1) }, async () => {
    year = new Date().getUTCFullYear();
  });
  expect(year).toBe(2001);
});

test("refuses connections of other clients, and says so", async () => {
  const handler =
    (isLive: boolean): Handler =>
    async (context) => {
      if (!isLive) {
        await new Promise((resolve) => {
          const socket = connect(9, "127.0.0.1");
          socket.on("error", resolve).on("connect", resolve);
        });
      }
      await set("a", "1")(context);
    };
  const recording = await record(handler(true));
  expect(await replay(recording, handler(false))).toMatchObject({
    result: "unknown",
    end: { about: "connection to 127.0.0.1:9" },
  });
});

test("compares outcomes and errors", async () => {
  const recording = await record(async () => {
    throw new TerminalError("no such region");
  });
  expect(recording.outcome).toMatchObject({ kind: "terminal" });
  const fixed = await replay(recording, async () => undefined);
  expect(fixed).toMatchObject({
    result: "different",
    outcome: { recorded: { kind: "terminal" }, replayed: { kind: "done" } },
  });
});

test("names a read that was too large for the recording", async () => {
  for (const name of ["large-1", "large-2"]) {
    const data = { text: "x".repeat(600_000) };
    await client.create(ConfigMap, { metadata: { namespace, name }, data } as NewObject<ApiObject>);
  }
  const handler: Handler = async (context) => {
    await context.kube.get(ConfigMap, "large-1");
    await context.kube.get(ConfigMap, "large-2");
    await set("a", "1")(context);
  };
  const recording = await record(handler);
  expect(JSON.stringify(recording).length).toBeLessThan(700_000);
  expect(await replay(recording, handler)).toMatchObject({
    result: "unknown",
    end: { about: "ConfigMap default/large-2" },
  });
});
