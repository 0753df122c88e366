import { randomUUID } from "node:crypto";
import { createLocalGate, type ApiObject, type ObjectKey } from "@konverge/core";
import { startControlPlane } from "@konverge/infra-envtest";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { advanceScript } from "../../libs/queue/src/scripts/advance.ts";
import { beginScript } from "../../libs/queue/src/scripts/begin.ts";
import { leaveLaneScript } from "../../libs/lanes/src/scripts/leave-lane.ts";
import { takeLaneScript } from "../../libs/lanes/src/scripts/take-lane.ts";
import { requestScript } from "../../libs/queue/src/scripts/request.ts";
import { openBareClient } from "./bare-client.ts";
import { startGaugeWorker } from "./controller-worker.ts";
import { createGauges, Gauge, gaugeName, gaugePath, GAUGES_IN } from "./gauge.ts";
import { drained, GAUGE_CONTROLLER, openGaugeQueue } from "./gauge-queue.ts";
import { figureOf, median, type BenchOptions, type Figure } from "./measure.ts";
import { startOperationTape, type Operation, type OperationTape } from "./operation-tape.ts";
import { startOwnRedis, type OwnRedis } from "./own-redis.ts";

const OBJECTS = 50;
const WARM_UP = 200;
const SAMPLES = 400;
const RATE = 20_000;
const SCRIPTS = [requestScript, beginScript, takeLaneScript, leaveLaneScript, advanceScript];
/** The last script of a job. The reconcile ends with its response. */
const LAST = advanceScript.name;
/**
 * Commands that no reconcile waits for. A worker blocks on the first until a job arrives; the others are sent without
 * awaiting the reply. Their cost is part of the times of Redis itself.
 */
const UNAWAITED = new Set(["bzpopmin", leaveLaneScript.name]);
/** Parts that fewer reconciles have are left out, for example the renewal of a lease. */
const LEAST_SHARE = 0.5;
const LEAST_EXPLAINED = 0.9;
/** The share of the reconciles whose parts are shown, around the median of the whole. */
const MIDDLE = 0.2;

/** Divides the time of one reconcile, from the request to the job's end, one at a time in one worker process. */
export async function benchTime({ log }: BenchOptions): Promise<Figure[]> {
  await using own = await startOwnRedis(log);
  await using plane = await startControlPlane({ log });
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigPath: plane.kubeconfigPath }),
    gate: createLocalGate({ ratePerSecond: 1e6, burst: 1e6 }),
    userAgent: "konverge-bench",
  });
  await createGauges(client, OBJECTS);
  await client.close();
  const bare = openBareClient(plane.kubeconfig, 1);
  const tape = startOperationTape(new Map(SCRIPTS.map(({ sha, name }) => [sha, name])));
  const prefix = `bench-${randomUUID()}`;
  const worker = await startGaugeWorker(
    {
      redisUrl: own.url,
      kubeconfigPath: plane.kubeconfigPath,
      prefix,
      ratePerSecond: RATE,
    },
    {
      concurrency: 1,
      // The measured requests are sent here, not by the watch.
      for: { type: Gauge, predicate: () => false },
      async reconcile({ object, kube }) {
        tape.mark("handler called");
        if (object.status?.seen !== object.spec.step) {
          await kube.mutateStatus(object, (draft) => {
            draft.status.seen = object.spec.step;
          });
        }
        tape.mark("handler returned");
      },
    },
  );
  const queue = openGaugeQueue(own.url, prefix);
  try {
    await drained(queue);
    let step = 0;
    const sample = async (n: number, isChanged: boolean): Promise<Sample> => {
      const name = gaugeName(n % OBJECTS);
      if (isChanged) step += 1;
      const patch = isChanged ? { spec: { step } } : undefined;
      const { metadata } = (await bare.send(
        patch === undefined ? "GET" : "PATCH",
        gaugePath(name),
        patch,
      )) as ApiObject;
      tape.take();
      const finished = tape.next(LAST);
      const startMs = performance.now();
      await queue.request(keyOf(name), {
        kind: "watch",
        ...(metadata.resourceVersion === undefined
          ? {}
          : { resourceVersion: metadata.resourceVersion }),
      });
      await finished;
      return takeApart(startMs, tape.take());
    };
    const figures: Figure[] = [];
    for (const isChanged of [true, false]) {
      const title = isChanged
        ? "one reconcile that writes a status"
        : "one reconcile without a write";
      log(`time: ${title}`);
      for (let n = 0; n < WARM_UP; n++) await sample(n, isChanged);
      await watchScripts(own);
      const samples: Sample[] = [];
      for (let n = 0; n < SAMPLES; n++) samples.push(await sample(n, isChanged));
      figures.push(...figuresOf(title, samples), ...(await scriptTimes(title, own, tape)));
    }
    return figures;
  } finally {
    tape.stop();
    await queue.close();
    await worker.stop();
    await bare.close();
  }
}

function keyOf(name: string): ObjectKey {
  return {
    controller: GAUGE_CONTROLLER,
    cluster: "default",
    resource: Gauge.resource,
    group: Gauge.group,
    namespace: GAUGES_IN,
    name,
  };
}

interface Part {
  readonly name: string;
  /** The time of own code and the event loop before the part, and the part's time that no earlier part covers, in ms. */
  readonly beforeMs: number;
  readonly awaitedMs: number;
}

interface Sample {
  readonly totalMs: number;
  readonly parts: readonly Part[];
}

/** Divides the time from the request to the end into parts without overlap, which sum up to it. */
function takeApart(startMs: number, operations: readonly Operation[]): Sample {
  const endMs = operations.find(({ name }) => name === LAST)?.endMs ?? Number.NaN;
  const inOrder = operations
    .filter((each) => each.startMs >= startMs && each.startMs <= endMs && !UNAWAITED.has(each.name))
    .toSorted((a, b) => a.startMs - b.startMs);
  const seen = new Map<string, number>();
  const parts: Part[] = [];
  let cursorMs = startMs;
  for (const operation of inOrder) {
    const number = (seen.get(operation.name) ?? 0) + 1;
    seen.set(operation.name, number);
    const beforeMs = Math.max(0, operation.startMs - cursorMs);
    const untilMs = Math.min(operation.endMs, endMs);
    const awaitedMs = Math.max(0, untilMs - Math.max(cursorMs, operation.startMs));
    cursorMs = Math.max(cursorMs, untilMs);
    parts.push({
      name: number === 1 ? operation.name : `${operation.name}, ${number}`,
      beforeMs,
      awaitedMs,
    });
  }
  return { totalMs: endMs - startMs, parts };
}

function figuresOf(title: string, samples: readonly Sample[]): Figure[] {
  const common = { suite: "time", case: title };
  const middle = aroundMedian(samples);
  const pieces = namesInOrder(middle).flatMap((name) => {
    const mean = (read: (part: Part) => number) =>
      middle.reduce((sum, { parts }) => {
        const part = parts.find((each) => each.name === name);
        return sum + (part === undefined ? 0 : read(part));
      }, 0) / middle.length;
    return [
      { metric: `own code before ${name}`, ms: mean(({ beforeMs }) => beforeMs) },
      { metric: name, ms: mean(({ awaitedMs }) => awaitedMs) },
    ];
  });
  const wholeMs = median(samples.map(({ totalMs }) => totalMs));
  const explained = pieces.reduce((sum, { ms }) => sum + ms, 0) / wholeMs;
  return [
    ...pieces
      // A mark has no duration.
      .filter(({ ms }) => ms * 1_000 >= 1)
      .map(({ metric, ms }) => figureOf({ ...common, metric, unit: "us", ours: [ms * 1_000] })),
    figureOf({ ...common, metric: "whole, p50", unit: "us", ours: [wholeMs * 1_000] }),
    figureOf({
      ...common,
      metric: "sum of the parts / p50 of the whole",
      unit: "",
      ours: [explained],
      goal: LEAST_EXPLAINED,
    }),
  ];
}

/** Selects the reconciles around the median: their parts sum up to the whole, which medians of parts do not. */
function aroundMedian(samples: readonly Sample[]): readonly Sample[] {
  const sorted = samples.toSorted((a, b) => a.totalMs - b.totalMs);
  const from = Math.floor((sorted.length * (1 - MIDDLE)) / 2);
  return sorted.slice(from, sorted.length - from);
}

/** Returns the parts that most reconciles have, in the order of the first reconcile with all of them. */
function namesInOrder(samples: readonly Sample[]): string[] {
  const counts = new Map<string, number>();
  for (const { parts } of samples) {
    for (const { name } of parts) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const usual = new Set(
    [...counts].filter(([, count]) => count >= samples.length * LEAST_SHARE).map(([name]) => name),
  );
  const orders = samples.map(({ parts }) =>
    parts.map(({ name }) => name).filter((name) => usual.has(name)),
  );
  return orders.find((names) => names.length === usual.size) ?? [...usual];
}

/** Makes Redis record the time of every command from now on. */
async function watchScripts({ redis }: OwnRedis): Promise<void> {
  await redis.config("SET", "slowlog-max-len", "1000000");
  await redis.config("SET", "slowlog-log-slower-than", "0");
  await redis.slowlog("RESET");
}

/** Returns the time of each script in Redis itself. The rest of the wait is the round trip. */
async function scriptTimes(
  title: string,
  { redis }: OwnRedis,
  tape: OperationTape,
): Promise<Figure[]> {
  await redis.config("SET", "slowlog-log-slower-than", "-1");
  const entries = (await redis.slowlog("GET", -1)) as readonly [number, number, number, string[]][];
  const timesUs = new Map<string, number[]>();
  for (const [, , us, [command, sha]] of entries) {
    const name = command === "evalsha" && sha !== undefined ? tape.scriptName(sha) : undefined;
    if (name === undefined) continue;
    timesUs.set(name, [...(timesUs.get(name) ?? []), us]);
  }
  return [...timesUs]
    .filter(([, values]) => values.length >= SAMPLES * LEAST_SHARE)
    .map(([name, ours]) =>
      figureOf({
        suite: "time",
        case: title,
        metric: `in Redis itself, ${name}`,
        unit: "us",
        ours,
      }),
    );
}
