import { randomInt } from "node:crypto";
import type { ApiObject, ResourceType } from "@konverge/core";
import type { KubeClient, NewObject } from "@konverge/kube";
import { ConfigMap, Namespace } from "@konverge/kube/kinds";
import { afterAll, beforeAll, expect, test } from "vitest";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { installWidgets, removeWidgets, testServers, type Widget } from "../kube/kube-servers.ts";
import { randomProgram, randomWorld, runProgram, shapeOf } from "./plan-programs.ts";
import { recordAttempt, replayWith } from "./replay-world.ts";

const GROUP = "replays.test.konverge.dev";
const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? randomInt(2 ** 31));
const rounds = process.env["KONVERGE_TEST_LONG"] === "1" ? 300 : 40;

let client: KubeClient;
let close: () => Promise<void>;
let Widgets: ResourceType<Widget>;
beforeAll(async () => {
  const [target] = testServers();
  const server = await target!.open();
  client = server.client;
  close = () => server.close();
  Widgets = await installWidgets(client, GROUP);
});
afterAll(async () => {
  await removeWidgets(client, GROUP);
  await close();
});

async function startWorld(namespace: string, objects: ReturnType<typeof randomWorld>) {
  await client.create(Namespace, { metadata: { name: namespace } });
  await client.create(Widgets, { metadata: { namespace, name: "own" }, spec: { size: 1 } });
  for (const { name, x } of objects) {
    const metadata = { namespace, name, labels: { x } };
    await client.create(ConfigMap, { metadata, data: { x } } as NewObject<ApiObject>);
  }
  return { client, type: Widgets, namespace, name: "own" };
}

test(`the same code repeats an attempt without a gap (KONVERGE_TEST_SEED=${seed})`, async () => {
  const random = seededRandom(seed);
  for (let round = 0; round < rounds; round += 1) {
    const program = { steps: randomProgram(random), objects: randomWorld(random) };
    const end = Math.floor(random() * 4);
    const isRaced = random() < 0.3;
    const object = await startWorld(`replay-${process.pid}-${round}`, program.objects);
    const handler = (isLive: boolean) => async (context: Parameters<typeof runProgram>[0]) => {
      await runProgram(context, program.steps);
      if (isRaced) {
        let races = 0;
        await context.kube.mutate(context.object, async (draft) => {
          draft.spec = { ...draft.spec, raced: "yes" };
          races += 1;
          // Another writer, outside of the attempt.
          if (!isLive || races > 2) return;
          await client.mutate(Widgets, { namespace: object.namespace, name: "own" }, (other) => {
            other.metadata.labels = { race: String(races) };
          });
        });
      }
      if (end === 0) throw new Error("thrown by the handler");
      if (end === 1) await context.kube.get(ConfigMap, "missing");
      return end === 2 ? { kind: "requeueAfter", afterMs: 5_000 } : undefined;
    };
    const recording = await recordAttempt(object, handler(true) as never);
    const replay = await replayWith(Widgets, recording, handler(false) as never);
    const { result, end: stopped, gaps, assumed, writes, outcome } = replay;
    const different = writes.filter(({ kind }) => kind !== "same");
    expect(
      { result, stopped, gaps, assumed, different, outcome },
      JSON.stringify({ round, isRaced, end, ...program }),
    ).toEqual({
      result: "same",
      stopped: undefined,
      gaps: [],
      assumed: [],
      different: [],
      outcome: { recorded: outcome.recorded, replayed: outcome.recorded },
    });
  }
});

/** Writes in the order of the program, without what differs between two worlds. */
function writesOf(
  writes: readonly { method: string; path: string; body?: string | undefined }[],
  namespace: string,
): string[] {
  return writes.map(({ method, path, body = "" }) => {
    const value: unknown = body === "" ? null : JSON.parse(body);
    const shape = JSON.stringify(shapeOf(value));
    return `${method} ${path} ${shape}`
      .replaceAll(namespace, "here")
      .replaceAll(/("\/metadata\/resourceVersion","value":)"\d+"/g, "$1 0")
      .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "uid")
      .replaceAll(/\/([abcd])-[a-z0-9]{5}\b/g, "/$1-drawn");
  });
}

test(`a changed handler writes in a replay what it writes live (KONVERGE_TEST_SEED=${seed})`, async () => {
  const random = seededRandom(seed);
  let compared = 0;
  let ended = 0;
  let different = 0;
  for (let round = 0; round < rounds; round += 1) {
    const steps = randomProgram(random);
    const objects = randomWorld(random);
    const at = Math.floor(random() * steps.length);
    const [step] = randomProgram(random);
    const changed = [
      ...steps.slice(0, at),
      ...(random() < 0.5 ? [step!] : []),
      ...steps.slice(at + 1),
    ];
    const handler =
      (program: typeof steps) => async (context: Parameters<typeof runProgram>[0]) => {
        await runProgram(context, program);
      };
    const before = await startWorld(`mutant-${process.pid}-${round}-a`, objects);
    const recording = await recordAttempt(before, handler(steps) as never);
    const report = await replayWith(Widgets, recording, handler(changed) as never);
    const after = await startWorld(`mutant-${process.pid}-${round}-b`, objects);
    const live = await recordAttempt(after, handler(changed) as never);
    const made = (live.calls["default"] ?? []).filter(
      ({ method, path }) => method !== "GET" && !path.includes("dryRun"),
    );
    const replayed = report.writes
      .filter(({ kind, path }) => kind !== "missing" && !path.includes("dryRun"))
      .map(({ method, path, replayed: body }) => ({ method, path, body }));
    const expected = writesOf(made, after.namespace);
    const found = writesOf(replayed, before.namespace);
    const isEnded = report.end !== undefined;
    // After a computed answer, the replay cannot know what the API server would have answered.
    if (report.result === "different") different += 1;
    if (report.assumed.length > 0) continue;
    expect(
      found,
      JSON.stringify({
        round,
        at,
        steps,
        changed,
        objects,
        end: report.end,
        assumed: report.assumed,
      }),
    ).toEqual(isEnded ? expected.slice(0, found.length) : expected);
    compared += found.length;
    if (isEnded) ended += 1;
  }
  // Otherwise the test would prove nothing.
  expect(compared).toBeGreaterThan(rounds / 4);
  expect(different).toBeGreaterThan(rounds / 5);
  expect(ended).toBeLessThan(rounds);
});
