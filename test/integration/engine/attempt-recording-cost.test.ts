import { formatKey } from "@konverge/core";
import { ConfigMap } from "@konverge/kube/kinds";
import { createRecordingStore } from "@konverge/queue";
import { attemptRecordingSchema } from "@konverge/records";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../../support/until.ts";
import { watchCommands } from "../../contract/watch-commands.ts";
import { testServers } from "../kube/kube-servers.ts";
import { namespace, useEngines } from "./engine-harness.ts";

const [target] = testServers();
const engines = useEngines(target!, "recording-cost.test.konverge.dev");
const ATTEMPTS = 5;
let serial = 0;

interface Cost {
  /** Least calls to the API server of an attempt: one reads the object again if the watch of a busy machine is behind. */
  readonly calls: number;
  /** Commands and keys of Redis about recordings. */
  readonly commands: readonly string[];
  readonly keys: readonly string[];
  /** All commands of Redis that name the object, without those about recordings. */
  readonly others: number;
  /** Calls in the last recording; undefined if there is none. */
  readonly recorded: number | undefined;
}

/** Runs attempts one after the other. `record`: undefined for an engine without recordings. */
async function costOf(reads: number, record?: { readonly reads: boolean }): Promise<Cost> {
  const { redis, prefix, url } = engines.queues;
  const name = `cost-${(serial += 1)}-end`;
  const recordings = createRecordingStore(redis, { prefix, cluster: "default" });
  using watch = await watchCommands(url);
  const { engine, lines, key, records } = await engines.start(
    {
      ...(record && { record }),
      reconcile: async ({ object, kube }) => {
        if (object.metadata.name !== name) return;
        for (let read = 0; read < reads; read += 1) await kube.find(ConfigMap, `read-${read}`);
        await kube.mutateStatus(object, (draft) => {
          draft["status"] = { size: object.spec?.["size"] ?? 0 };
        });
      },
    },
    record && { recordings },
  );
  onTestFinished(() => engine.stop({ graceMs: 1_000 }));
  // A query of Redis would be counted.
  const ended = () =>
    lines.filter(
      ({ message, fields }) => message === "reconciled" && JSON.stringify(fields).includes(name),
    ).length;
  await engines.make(name);
  for (let size = 1; size <= ATTEMPTS; size += 1) {
    await until(`attempt ${size} has ended`, () => ended() >= size);
    await engines.client.mutate(engines.Widgets, { namespace, name }, (draft) => {
      draft.spec = { size: size + 1 };
    });
  }
  await until("all attempts have ended", () => ended() > ATTEMPTS);
  await engine.stop({ graceMs: 1_000 });
  // `eval` loads a script into a Redis that does not have it yet.
  const about = [...watch.commands].filter(
    ({ args }) => args[0] !== "eval" && args.some((arg) => arg.includes(name)),
  );
  const isRecording = (args: readonly string[]) => args.some((arg) => arg.includes("/recordings"));
  const [epoch = 0] = await recordings.list(formatKey(key(name)));
  const text = await recordings.read(formatKey(key(name)), epoch);
  const recording = text === undefined ? undefined : attemptRecordingSchema.parse(JSON.parse(text));
  return {
    calls: Math.min(
      ...(await records(name)).map(({ parsed }) => (parsed["calls"] as { count: number }).count),
    ),
    commands: about
      .filter(({ args, byScript }) => !byScript && isRecording(args))
      .map(({ args }) => args[0] ?? ""),
    keys: await redis.keys(`${prefix}:*/recordings*`),
    others: about.filter(({ args }) => !isRecording(args)).length,
    recorded: recording && Object.values(recording.calls).flat().length,
  };
}

test.each([0, 3])(
  "an attempt with %i reads costs the same without recordings and with them off",
  async (reads) => {
    const without = await costOf(reads);
    const off = await costOf(reads, { reads: false });
    for (const cost of [off, without]) {
      expect(cost).toMatchObject({ calls: 1 + reads, commands: [], keys: [], recorded: undefined });
    }
    // What else names the object may differ a little on a busy machine. A cost per attempt would be more.
    expect(off.others - without.others).toBeLessThan(ATTEMPTS);
  },
);

test.each([0, 3])(
  "a recorded attempt with %i reads costs a command and a look-up of its kind",
  async (reads) => {
    const on = await costOf(reads, { reads: true });
    expect(on.calls).toBe(2 + reads);
    expect(on.commands).toEqual(Array(ATTEMPTS + 1).fill("evalsha"));
    expect([2 + reads, 3 + reads]).toContain(on.recorded);
  },
);
