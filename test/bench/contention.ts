import { execFile, fork, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createLocalGate, DEFAULT_GUARD_LIMITS } from "@konverge/core";
import { startControlPlane } from "@konverge/infra-envtest";
import { obtainRedis } from "@konverge/infra-redis";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { createWorkQueue, type WorkQueue } from "@konverge/queue";
import {
  CONTROLLER,
  HOT,
  prepareWriters,
  Writer,
  writerKey,
  type ContentionConfig,
  type ContentionCommand,
  type ContentionWord,
} from "./contention-child.ts";
import { buildGoPeer } from "./build-peer.ts";
import { median, round2, type BenchOptions, type Figure } from "./measure.ts";

const execute = promisify(execFile);
const CHILD = fileURLToPath(new URL("contention-child.ts", import.meta.url));
const WRITERS = [1, 2, 5, 10, 20, 50, 100];
const MOST = 100;
const ROUNDS = 3;
/** A rate that does not limit. The largest number of writers also runs at the default rate. */
const RATE = 20_000;
/** With client-go's two presets a writer stops after its last retry, or restarts until it has written, as with a work queue. */
const PEERS = ["DefaultRetry", "DefaultBackoff"].flatMap((preset) => [
  { name: `client-go ${preset}, once`, args: ["-preset", preset], hasGoal: false },
  {
    name: `client-go ${preset}, until done`,
    args: ["-preset", preset, "-until-done"],
    hasGoal: preset === "DefaultRetry",
  },
]);
interface Result {
  readonly writes: number;
  readonly gaveUp: number;
  /** The calls for the contested object. */
  readonly calls: number;
  readonly ms: number;
}

/** Measures N jobs that write one object at the same time, next to N writers with client-go's RetryOnConflict. */
export async function benchContention({ log }: BenchOptions): Promise<Figure[]> {
  const redis = await obtainRedis({ log });
  try {
    await using plane = await startControlPlane({ log });
    const { kubeconfigPath } = plane;
    const client = createKubeClient({
      credentials: loadKubeCredentials({ kubeconfigPath }),
      gate: createLocalGate({ ratePerSecond: 1e6, burst: 1e6 }),
      userAgent: "konverge-bench",
    });
    await prepareWriters(client, MOST);
    const peer = await buildGoPeer("client-go", (line) => log(`contention: ${line}`));
    const figures: Figure[] = [];
    for (const processes of [1, 8]) {
      for (const writers of WRITERS) {
        log(`contention: ${writers} writers, ${processes} processes`);
        const common = { redisUrl: redis.url, kubeconfigPath, writers, processes, client };
        const ours: Result[] = [];
        const asShipped: Result[] = [];
        const byUsers: Result[] = [];
        const theirs = PEERS.map((arm) => ({ ...arm, runs: [] as Result[] }));
        for (let round = 0; round < ROUNDS; round++) {
          ours.push(await race({ ...common, ratePerSecond: RATE }));
          if (writers === MOST) {
            const { ratePerSecond } = DEFAULT_GUARD_LIMITS;
            asShipped.push(await race({ ...common, ratePerSecond }));
            byUsers.push(await race({ ...common, ratePerSecond: RATE, by: "users" }));
          }
          if (peer === undefined || processes > 1) continue;
          const args = ["-kubeconfig", kubeconfigPath, "-writers", String(writers)];
          for (const arm of theirs) arm.runs.push(await runPeer(peer, [...args, ...arm.args]));
        }
        const arms = theirs.filter(({ runs }) => runs.length > 0);
        const name = `${writers} writers of one object, ${processes} ${processes === 1 ? "process" : "processes"}`;
        figures.push(...figuresOf({ name, writers, ours, arms }));
        if (asShipped.length === 0) continue;
        for (const [how, runs] of [
          ["default settings", asShipped],
          ["requested by users", byUsers],
        ] as const) {
          figures.push(...figuresOf({ name: `${name}, ${how}`, writers, ours: runs, arms: [] }));
        }
      }
    }
    await client.close();
    return figures;
  } finally {
    await redis.stop();
  }
}

interface Race {
  readonly redisUrl: string;
  readonly kubeconfigPath: string;
  readonly writers: number;
  readonly processes: number;
  readonly client: KubeClient;
  /** The guard's rate. */
  readonly ratePerSecond: number;
  /**
   * The trigger of the requests. A user's request makes the attempt read its own object; a watch has delivered it already.
   * Default: a watch.
   */
  readonly by?: "watch" | "users";
}

/** Measures from the first request to the last write. The requests go to the queue, as those of the HTTP API do. */
async function race({
  redisUrl,
  kubeconfigPath,
  writers,
  processes,
  client,
  ratePerSecond,
  by = "watch",
}: Race): Promise<Result> {
  const prefix = `bench-${crypto.randomUUID()}`;
  const children = Array.from({ length: processes }, (_, n) => {
    const config: ContentionConfig = {
      redisUrl,
      kubeconfigPath,
      prefix,
      workerId: `worker-${n}`,
      ratePerSecond,
    };
    return watchChild(fork(CHILD, [JSON.stringify(config)], { execArgv: process.execArgv }));
  });
  const queue = createWorkQueue({
    redis: { url: redisUrl },
    controller: CONTROLLER,
    cluster: "default",
    prefix,
  });
  try {
    await Promise.all(children.map((child) => child.said("ready")));
    await settle(queue);
    const before = await count(client);
    const { items } = await client.list(Writer, { namespace: HOT.namespace });
    const versions = new Map(
      items.map(({ metadata }) => [metadata.name, metadata.resourceVersion]),
    );
    await Promise.all(children.map((child) => child.command({ kind: "go" }, "armed")));
    const startedMs = performance.now();
    const written = Promise.withResolvers<number>();
    let writes = 0;
    for (const child of children) {
      child.onWrote(() => {
        writes += 1;
        if (writes === writers) written.resolve(performance.now() - startedMs);
      });
    }
    await Promise.all(
      Array.from({ length: writers }, (_, n) => {
        const key = writerKey(n);
        if (by === "users") return queue.request(key, { kind: "cli" }, { class: "interactive" });
        const resourceVersion = versions.get(key.name) ?? "";
        return queue.request(key, { kind: "watch", resourceVersion }, { class: "event" });
      }),
    );
    const ms = await written.promise;
    const ended = await Promise.all(
      children.map((child) => child.command({ kind: "stop" }, "calls")),
    );
    const calls = ended.reduce((sum, word) => sum + (word.kind === "calls" ? word.calls : 0), 0);
    const landed = (await count(client)) - before;
    return { writes: landed, gaveUp: writers - landed, calls, ms };
  } finally {
    await queue.close();
    await Promise.all(children.map((child) => child.ended()));
  }
}

async function count(client: KubeClient): Promise<number> {
  return Number((await client.get(ConfigMap, HOT)).data?.["count"] ?? 0);
}

/** Resolves when every key of the initial list has been reconciled. */
async function settle(queue: WorkQueue): Promise<void> {
  for (;;) {
    const states = await Promise.all(
      Array.from({ length: MOST }, (_, n) => queue.getKey(writerKey(n))),
    );
    if (states.every((state) => state?.phase === "idle" && state.finished > 0)) return;
  }
}

function watchChild(child: ChildProcess) {
  const waiting = new Map<string, (word: ContentionWord) => void>();
  const heard = new Map<string, ContentionWord>();
  let wrote = () => {};
  child.on("message", (word: ContentionWord) => {
    if (word.kind === "wrote") wrote();
    else if (waiting.has(word.kind)) waiting.get(word.kind)?.(word);
    else heard.set(word.kind, word);
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const said = (kind: ContentionWord["kind"]) =>
    new Promise<ContentionWord>((resolve, reject) => {
      const early = heard.get(kind);
      if (early !== undefined) resolve(early);
      else waiting.set(kind, resolve);
      void exited.then(() => reject(new Error(`a worker exited before it reported ${kind}`)));
    });
  return {
    said,
    command(command: ContentionCommand, answer: ContentionWord["kind"]) {
      const answered = said(answer);
      child.send(command);
      return answered;
    },
    onWrote(listener: () => void) {
      wrote = listener;
    },
    async ended() {
      const timer = setTimeout(() => child.kill("SIGKILL"), 5_000);
      await exited;
      clearTimeout(timer);
    },
  };
}

async function runPeer(binary: string, args: readonly string[]): Promise<Result> {
  const { stdout } = await execute(binary, args);
  return JSON.parse(stdout) as Result;
}

interface Measured {
  readonly name: string;
  readonly writers: number;
  readonly ours: readonly Result[];
  readonly arms: readonly {
    readonly name: string;
    readonly hasGoal: boolean;
    readonly runs: readonly Result[];
  }[];
}

function figuresOf({ name, writers, ours, arms }: Measured): Figure[] {
  const middle = (runs: readonly Result[], read: (result: Result) => number) =>
    median(runs.map(read));
  const perWrite = (run: Result) => run.calls / Math.max(1, run.writes);
  const figure = (
    metric: string,
    unit: string,
    [mine, peer]: readonly [number, number | null],
    peerName: string | null,
    check: { readonly goal: number | null; readonly ok: boolean },
  ): Figure => ({
    suite: "contention",
    case: name,
    metric,
    unit,
    ours: round2(mine),
    peer: peer === null ? null : round2(peer),
    peerName,
    ratio: peer === null ? null : round2(peer / mine),
    ...check,
  });
  const calls = middle(ours, perWrite);
  const figures = [
    figure("calls for the object per write", "calls", [calls, null], null, {
      goal: writers >= 10 ? 1.1 : null,
      ok: writers < 10 || calls <= 1.1,
    }),
    figure("failed writers", "writers", [middle(ours, (result) => result.gaveUp), null], null, {
      goal: 0,
      ok: ours.every((result) => result.gaveUp === 0),
    }),
  ];
  if (arms.length === 0) {
    figures.push(
      figure("time to the last write", "ms", [middle(ours, ({ ms }) => ms), null], null, {
        goal: null,
        ok: true,
      }),
    );
  }
  for (const { name: peerName, hasGoal, runs } of arms) {
    const isGoal = writers === MOST && hasGoal;
    const theirs = middle(runs, perWrite);
    const [mineMs, theirMs] = [
      middle(ours, (result) => result.ms),
      middle(runs, (result) => result.ms),
    ];
    figures.push(
      figure("calls per write", "calls", [calls, theirs], peerName, {
        goal: isGoal ? 40 : null,
        ok: !isGoal || theirs / calls >= 40,
      }),
      {
        ...figure(
          "failed writers",
          "writers",
          [0, middle(runs, (result) => result.gaveUp)],
          peerName,
          { goal: null, ok: true },
        ),
        ratio: null,
      },
      figure("time to the last write", "ms", [mineMs, theirMs], peerName, {
        goal: isGoal ? 8 : null,
        ok: !isGoal || theirMs / mineMs >= 8,
      }),
    );
  }
  return figures;
}
