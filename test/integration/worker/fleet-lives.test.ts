import { defineController } from "@konverge/engine";
import { listServedClusters } from "@konverge/queue";
import { ConfigMap } from "@konverge/kube/kinds";
import { defineConfig, kubeconfigDirectory, startWorker } from "@konverge/worker";
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { keepLog } from "../../../apps/cli/src/testing/kept-log.ts";
import { startTcpProxy, type TcpProxy } from "../../chaos/tcp-proxy.ts";
import { until } from "../../support/until.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { KubeconfigFolder, startFleetCluster, type FleetCluster } from "./fleet-harness.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const RUNS = isLongRun ? 20 : 3;
const namespace = "default";
const SERVERS = 3;
/** Always present: once its objects are reconciled, a worker that had not left another cluster would have written there too. */
const WITNESS = SERVERS;
const OBJECTS = ["a", "b", "c"];

/** A cluster behind a network that can fail. */
interface Place {
  readonly cluster: FleetCluster;
  readonly proxy: TcpProxy;
  /** The kubeconfig through the proxy, of another text for each number. */
  kubeconfig(rotation: number): string;
}

const queues = useQueues();
const places: Place[] = [];
const cleanup = new AsyncDisposableStack();
beforeAll(async () => {
  for (let n = 0; n <= WITNESS; n += 1) {
    const cluster = cleanup.use(await startFleetCluster());
    const { url, kubeconfig } = cluster.server;
    const proxy = cleanup.use(await startTcpProxy(Number(new URL(url).port)));
    const text = kubeconfig.replace(url, `http://127.0.0.1:${proxy.port}`);
    const place = { cluster, proxy, kubeconfig: (rotation: number) => `${text}# ${rotation}\n` };
    places.push(place);
  }
});
afterAll(() => cleanup.disposeAsync());

/** A cluster has two names, so that it can be renamed. */
const server = fc.nat(SERVERS - 1);
const name = fc.constantFrom("x", "y");
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("add" as const), server, name }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("remove" as const), server, name }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("rotate" as const), server, name }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("rename" as const), server }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("swap" as const), server, name }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("cut" as const), server }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("slow" as const), server }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("duplicate" as const), server }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("heal" as const), server }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("change" as const), server }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("return" as const), server }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("settle" as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** One life of a fleet: what the directory has, and what the objects want. */
class Life {
  readonly folder = new KubeconfigFolder();
  readonly worker: Awaited<ReturnType<typeof startWorker>>;
  /** The server whose kubeconfig each name has. */
  readonly #present = new Map<string, number>();
  readonly #wanted = new Map<number, string>();
  #serial = 0;

  private constructor(folder: KubeconfigFolder, worker: Life["worker"]) {
    this.folder = folder;
    this.worker = worker;
  }

  static async start(): Promise<Life> {
    const copy = defineController({
      name: "copy",
      for: ConfigMap,
      reconcile: async ({ object, kube }) => {
        if (!OBJECTS.includes(object.metadata.name)) return;
        await kube.mutate(object, (draft) => {
          draft.data = { ...draft.data, seen: draft.data?.["wanted"] ?? "" };
        });
      },
    });
    const folder = new KubeconfigFolder();
    const settings = {
      prefix: queues.prefix,
      leaseDuration: "3s",
      shutdownGrace: "5s",
      requestTimeout: "5s",
    } as const;
    const clusters = kubeconfigDirectory({ path: folder.path });
    const worker = await startWorker({
      config: defineConfig({ controllers: [copy], clusters, settings }),
      redis: queues.url,
      log: keepLog([]),
    });
    const life = new Life(folder, worker);
    life.#put("witness", WITNESS);
    return life;
  }

  async play(one: Step): Promise<void> {
    switch (one.kind) {
      case "add":
      case "rotate":
        if (one.kind === "add" || this.#present.has(`${one.name}${one.server}`)) {
          this.#put(`${one.name}${one.server}`, one.server);
        }
        return;
      case "remove":
        return this.#remove(`${one.name}${one.server}`);
      case "rename": {
        const before = ["x", "y"].find((each) => this.#present.has(`${each}${one.server}`));
        if (before === undefined) return;
        this.#remove(`${before}${one.server}`);
        this.#put(`${before === "x" ? "y" : "x"}${one.server}`, one.server);
        return;
      }
      case "swap":
        return await this.#swap(`${one.name}${one.server}`, one.server);
      case "cut":
        return places[one.server]?.proxy.cut();
      case "slow":
        return places[one.server]?.proxy.hold();
      case "duplicate":
        this.#put(`x${one.server}`, one.server);
        this.#put(`y${one.server}`, one.server);
        return;
      case "return":
        return await this.#return(one.server);
      case "heal":
        return places[one.server]?.proxy.heal();
      case "change":
        return await this.#change(one.server);
      case "settle":
        return await this.settle();
    }
  }

  /** The worker has followed the directory, and a removed cluster is left alone from then on. */
  async settle(): Promise<void> {
    for (const { proxy } of places) proxy.heal();
    await until("the model holds", async () => (await this.#difference()) === undefined).catch(
      async (error: unknown) => {
        throw new Error(`${String(error)}; ${(await this.#difference()) ?? ""}`, { cause: error });
      },
    );
    await until("all clusters are followed", () => {
      const states = new Map(this.worker.clusters.map((each) => [each.name, each.state]));
      return (
        [...this.#present.keys()].every((each) =>
          ["engaged", "failing"].includes(states.get(each) ?? ""),
        ) && [...states.keys()].every((each) => this.#present.has(each))
      );
    });
    const left = this.#absent().map((each) => [each, this.#calls(each)] as const);
    for (const each of this.#absent()) await this.#change(each);
    await this.#change(WITNESS);
    for (const each of this.#live()) {
      await until(`the objects of server ${each} are reconciled`, () => this.#isReconciled(each));
    }
    for (const [each, before] of left) {
      const calls = this.#calls(each) - before;
      if (calls > 0) throw new Error(`server ${each} was removed, and got ${calls} calls`);
    }
  }

  /** The steps that random sequences seldom reach: each needs a cluster that is engaged. */
  async playRareSteps(): Promise<void> {
    this.#put("x0", 0);
    await this.settle();
    this.#put("y0", 0);
    await this.settle();
    this.#remove("y0");
    await this.settle();
    await this.#return(0);
    await this.settle();
    await this.#swap("x0", 0);
    await this.settle();
  }

  /** Removes a cluster that is engaged. */
  async leaveOne(): Promise<void> {
    const [file] = [...this.#present.keys()].filter((each) => each !== "witness");
    if (file !== undefined) this.#remove(file);
    await this.settle();
  }

  async end(): Promise<void> {
    for (const { proxy } of places) proxy.heal();
    await this.worker.kill();
    this.folder[Symbol.dispose]();
    const left = await queues.redis.keys(`${queues.prefix}:{/clusters}*`);
    if (left.length > 0) throw new Error(`left in Redis: ${left.join()}`);
  }

  #put(file: string, from: number): void {
    this.#serial += 1;
    this.folder.put(file, places[from]?.kubeconfig(this.#serial) ?? "");
    this.#present.set(file, from);
  }

  /** Another cluster under a name is rejected. */
  async #swap(file: string, own: number): Promise<void> {
    const other = [...this.#present].find(([each, from]) => each !== file && from === own);
    if (this.#present.get(file) !== own || other !== undefined) return;
    for (const { proxy } of places) proxy.heal();
    const reaches = (state: string) =>
      until(`${file} is ${state}`, () =>
        this.worker.clusters.some((each) => each.name === file && each.state === state),
      );
    // Only then is the name bound to the cluster.
    await reaches("engaged");
    this.#put(file, (own + 1) % SERVERS);
    await reaches("failing");
  }

  /** Removed, and added again while the worker is leaving it. */
  async #return(on: number): Promise<void> {
    const file = ["x", "y"].map((each) => `${each}${on}`).find((each) => this.#present.has(each));
    if (file === undefined) return;
    // It cannot give up its Leases, which takes longer than the worker needs to read the directory.
    places[on]?.proxy.hold();
    this.#remove(file);
    await until(`${file} is being left`, () => {
      const { state } = this.worker.clusters.find((each) => each.name === file) ?? {};
      return state === undefined || state === "disengaging";
    });
    this.#put(file, on);
  }

  #remove(file: string): void {
    if (this.#present.delete(file)) this.folder.remove(file);
  }

  async #change(on: number): Promise<void> {
    this.#serial += 1;
    const wanted = String(this.#serial);
    this.#wanted.set(on, wanted);
    const client = places[on]?.cluster.client;
    for (const each of OBJECTS) {
      const object = { metadata: { namespace, name: each }, data: { wanted } };
      await client?.apply(ConfigMap, object, { force: true });
    }
  }

  /** Servers with an own kubeconfig under one of their names; under a foreign name, they fail with a mismatch. */
  #live(): number[] {
    const own = [...this.#present].filter(([file]) => this.#isOwn(file));
    return [...new Set(own.map(([, from]) => from))];
  }

  /**
   * The model: the served clusters are those of the directory, each server is engaged under exactly one of its own names, and Redis
   * lists the same. Returns the difference.
   * @throws Error for a server that is engaged under two of its names, even for a moment
   */
  async #difference(): Promise<string | undefined> {
    const states = new Map(this.worker.clusters.map((each) => [each.name, each.state]));
    const served = [...states.keys()].toSorted().join();
    const present = [...this.#present.keys()].toSorted().join();
    if (served !== present) return `served ${served}, present ${present}`;
    const engaged = [...states].filter(([, state]) => state === "engaged").map(([each]) => each);
    for (const each of this.#live()) {
      const names = engaged.filter((file) => this.#isOwn(file) && this.#present.get(file) === each);
      if (names.length > 1) throw new Error(`server ${each} is engaged as ${names.join()}`);
      if (names.length === 0) return `server ${each} is not engaged`;
    }
    const foreign = engaged.filter((file) => !this.#isOwn(file));
    if (foreign.length > 0) return `engaged under a foreign name: ${foreign.join()}`;
    const [report] = await listServedClusters(queues.redis, queues.prefix);
    const listed = report?.clusters.map(({ name: each, state }) => `${each} ${state}`).toSorted();
    const own = [...states].map(([each, state]) => `${each} ${state}`).toSorted();
    if (listed?.join() !== own.join()) return `Redis lists ${listed?.join() ?? "nothing"}`;
    const claims = await queues.redis.keys(`${queues.prefix}:{/clusters}/uid/*`);
    return claims.length === engaged.length
      ? undefined
      : `${claims.length} claims of ${engaged.length} clusters`;
  }

  /** False for a file with the kubeconfig of another server, whose name is bound to its own. */
  #isOwn(file: string): boolean {
    const from = this.#present.get(file);
    return from === WITNESS || file.endsWith(String(from));
  }

  /** Servers that no file leads to. */
  #absent(): number[] {
    const reached = new Set(this.#present.values());
    return places.map((_, n) => n).filter((n) => !reached.has(n));
  }

  #calls(on: number): number {
    return places[on]?.cluster.calls().length ?? 0;
  }

  async #isReconciled(on: number): Promise<boolean> {
    const wanted = this.#wanted.get(on);
    if (wanted === undefined) return true;
    const items = (await places[on]?.cluster.client.list(ConfigMap, { namespace }))?.items ?? [];
    const found = items.filter(({ metadata }) => OBJECTS.includes(metadata.name));
    return found.length === OBJECTS.length && found.every(({ data }) => data?.["seen"] === wanted);
  }
}

test(`a fleet reconciles live clusters and sends nothing to removed ones, in random sequences (KONVERGE_TEST_SEED=${seed})`, async () => {
  let life = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 6, maxLength: 14 }), async (steps) => {
      life += 1;
      // A name stays bound to its server, so each life has the bindings of the ones before.
      const playing = await Life.start();
      try {
        for (const one of steps) await playing.play(one);
        await playing.settle();
        await playing.playRareSteps();
        await playing.leaveOne();
      } finally {
        await playing.end();
      }
    }),
    { seed, numRuns: RUNS, endOnFailure: true },
  );
  expect(life).toBe(RUNS);
});
