import { fileURLToPath } from "node:url";
import { type ResourceType } from "@konverge/core";
import { ignoreNotFound, type KubeClient } from "@konverge/kube";
import { ConfigMap, Lease } from "@konverge/kube/kinds";
import { Redis } from "ioredis";
import { startEmbeddedServer } from "../integration/kube/embedded-server.ts";
import { installWidgets } from "../integration/kube/kube-servers.ts";
import {
  childrenOf,
  parentName,
  PARENTS,
  SETTING,
  type FleetConfig,
  type FleetWord,
  type Parent,
} from "./changing-fleet-child.ts";
import { until } from "../support/until.ts";
import { Child } from "../support/child.ts";

const CHILD = fileURLToPath(new URL("./changing-fleet-child.ts", import.meta.url));
const namespace = SETTING.namespace;

export interface FleetWorker {
  readonly workerId: string;
  readonly child: Child;
  readonly exited: Promise<number | null>;
}

export interface Fleet extends AsyncDisposable {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly client: KubeClient;
  readonly Parents: ResourceType<Parent>;
  readonly workers: ReadonlySet<FleetWorker>;
  start(config?: Partial<FleetConfig>): Promise<FleetWorker>;
  /** The current holder of the Lease. */
  holder(): Promise<string>;
  /** Waits for a holder in the fleet other than `other`. */
  leader(other?: FleetWorker): Promise<FleetWorker>;
  /** Makes one change of the desired or the actual state. */
  change(random: () => number, serial: number): Promise<void>;
  /** Returns the differences from the desired state for a version of the controller. */
  differences(wanted: Pick<FleetConfig, "childPrefix" | "controllerVersion">): Promise<string[]>;
}

export const V1 = {
  controllerVersion: "v1",
  childPrefix: "",
  concurrency: 8,
  role: "all",
} as const;

/** Worker processes on an embedded API server and a real Redis, with a user who changes objects permanently. */
export async function openFleet(fleetName: string): Promise<Fleet> {
  const cleanup = new AsyncDisposableStack();
  const redisUrl = process.env["REDIS_URL"] ?? "";
  const prefix = `${fleetName}-${process.pid}-${Date.now()}`;
  cleanup.defer(async () => {
    const redis = new Redis(redisUrl);
    for await (const keys of redis.scanStream({ match: `${prefix}:*`, count: 1_000 })) {
      if (keys.length > 0) await redis.unlink(...(keys as string[]));
    }
    await redis.quit();
  });
  const { client, kubeconfig } = cleanup.use(await startEmbeddedServer());
  const Parents = (await installWidgets(
    client,
    `${fleetName}.test.konverge.dev`,
  )) as ResourceType<Parent>;
  await client.create(ConfigMap, { metadata: SETTING, data: { value: "0" } });

  const workers = new Set<FleetWorker>();
  cleanup.defer(async () => {
    for (const { child } of workers) child.signal("SIGKILL");
    await Promise.all([...workers].map(({ exited }) => exited));
  });
  const holder = async () => {
    const lease = await client
      .get(Lease, { namespace, name: `${prefix}-fleet` })
      .catch(ignoreNotFound);
    return lease?.spec?.holderIdentity ?? "";
  };
  const listParents = async () => (await client.list(Parents, { namespace })).items;

  /**
   * Does the work of a cluster's garbage collector, which a bare API server lacks. Otherwise a child written during its
   * parent's deletion would conflict with the next parent of that name.
   */
  const collectGarbage = async () => {
    const { items } = await client.list(ConfigMap, { namespace });
    const living = new Set((await listParents()).map(({ metadata }) => metadata.uid));
    const orphans = items.filter(({ metadata: { ownerReferences } }) =>
      ownerReferences?.every(({ uid }) => !living.has(uid)),
    );
    for (const { metadata } of orphans) {
      await client.delete(ConfigMap, { namespace, name: metadata.name }).catch(ignoreNotFound);
    }
  };

  return {
    redisUrl,
    prefix,
    client,
    Parents,
    workers,
    holder,
    async start(config = {}) {
      const whole: FleetConfig = {
        redisUrl,
        kubeconfig,
        prefix,
        parents: Parents,
        ...V1,
        ...config,
      };
      const child = new Child([CHILD, JSON.stringify(whole)], { ipc: true });
      const exited = child.exited.then(([code]) => code);
      const { workerId } = (await child.message()) as FleetWord;
      const worker = { workerId, child, exited };
      workers.add(worker);
      void exited.then(() => workers.delete(worker));
      return worker;
    },
    async leader(other) {
      let found: FleetWorker | undefined;
      await until(
        `a worker ${other === undefined ? "" : `other than ${other.workerId} `}leads`,
        async () => {
          const identity = await holder();
          found = [...workers].find((worker) => worker !== other && worker.workerId === identity);
          return found !== undefined;
        },
      );
      return found as unknown as FleetWorker;
    },
    async change(random, serial) {
      const target = { namespace, name: parentName(Math.floor(random() * PARENTS)) };
      const kind = random();
      if (kind < 0.2) {
        await client.mutate(ConfigMap, SETTING, (draft) => {
          draft.data = { value: String(serial) };
        });
        return;
      }
      if (kind < 0.5) {
        // An unexpected deletion of a child.
        const { items } = await client.list(ConfigMap, { namespace });
        const children = items.filter(({ metadata }) => metadata.ownerReferences !== undefined);
        const victim = children[Math.floor(random() * children.length)];
        if (victim === undefined) return;
        await client
          .delete(ConfigMap, { namespace, name: victim.metadata.name })
          .catch(ignoreNotFound);
        return;
      }
      if (kind < 0.6) {
        await client.delete(Parents, target).catch(ignoreNotFound);
        return;
      }
      const children = 1 + Math.floor(random() * 3);
      const known = await client.get(Parents, target).catch(ignoreNotFound);
      if (known === undefined) {
        await client.create(Parents, { metadata: target, spec: { children } });
      } else {
        await client
          .mutate(Parents, target, (draft) => {
            draft.spec = { children };
          })
          .catch(ignoreNotFound);
      }
    },
    async differences({ childPrefix, controllerVersion }) {
      await collectGarbage();
      const [parents, { items }, setting] = await Promise.all([
        listParents(),
        client.list(ConfigMap, { namespace }),
        client.get(ConfigMap, SETTING),
      ]);
      return parents.flatMap((parent) => {
        const { name, uid, generation, deletionTimestamp } = parent.metadata;
        if (deletionTimestamp !== undefined) return [`${name} waits for its cleanup`];
        const { observedGeneration, setting: seen, version } = parent.status ?? {};
        const children = items
          .filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.uid === uid))
          .map(({ metadata }) => metadata.name);
        const reported = (what: string, is: unknown, wants: unknown) =>
          JSON.stringify(is) === JSON.stringify(wants)
            ? []
            : [`${name}: ${what} is ${JSON.stringify(is)}, not ${JSON.stringify(wants)}`];
        return [
          ...reported("generation", observedGeneration, generation),
          ...reported("setting", seen, setting.data?.["value"]),
          ...reported("version", version, controllerVersion),
          ...reported("children", children.toSorted(), childrenOf(parent, childPrefix).toSorted()),
        ];
      });
    },
    [Symbol.asyncDispose]: () => cleanup.disposeAsync(),
  };
}

/** Repeats `change` until stopped; resolves after `atLeast` repetitions. */
export async function keepChanging(
  change: (serial: number) => Promise<void>,
  atLeast = 20,
): Promise<() => Promise<void>> {
  let going = true;
  const enough = Promise.withResolvers<void>();
  const running = (async () => {
    for (let serial = 1; going; serial++) {
      await change(serial);
      if (serial === atLeast) enough.resolve();
      // Other processes share the machine.
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();
  await Promise.race([enough.promise, running]);
  return async () => {
    going = false;
    await running;
  };
}
