import type { ApiObject, ResourceType } from "@konverge/core";
import type { KubeClient, NewObject } from "@konverge/kube";
import { ConfigMap, Namespace } from "@konverge/kube/kinds";
import { afterAll, beforeAll, expect, test } from "vitest";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { installWidgets, removeWidgets, testServers, type Widget } from "../kube/kube-servers.ts";
import { randomProgram, randomWorld, runProgram } from "./plan-programs.ts";
import { recordAttempt, replayWith } from "./replay-world.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const GROUP = "replays.test.konverge.dev";
const rounds = isLongRun ? 300 : 40;

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
