import {
  ApiException,
  makeInformer,
  type CoreV1Api,
  type CustomObjectsApi,
  type KubeConfig,
} from "@kubernetes/client-node";
import {
  Autoscaler,
  Machine,
  NodePool,
  type PoolObject,
  type ScalerObject,
} from "../load/kinds.ts";

/** Interval of the pass over all objects that tutorials add to the informer's events. */
const RESYNC_MS = 1_000;
const RESTART_MS = 200;
const TRIES = 3;

/** An object with the metadata that the client's own types allow. */
type Plain<T> = Omit<T, "metadata"> & {
  metadata: { name: string; uid?: string; generation?: number; resourceVersion?: string };
};
type Pool = Plain<PoolObject>;
type Scaler = Plain<ScalerObject>;

interface NaiveOptions {
  readonly config: KubeConfig;
  readonly custom: CustomObjectsApi;
  readonly core: CoreV1Api;
  readonly namespace: string;
}

interface Owned {
  readonly metadata: {
    readonly name: string;
    readonly ownerReferences?: readonly { readonly uid: string }[];
  };
}

/**
 * The two controllers of the examples as tutorials write them with the plain client, in one process: an informer, a pass every
 * second, read-modify-write from the informer's copy. A conflict is "solved" by taking the newest resourceVersion and sending the
 * same object again, at most three times. The copy is older than that version, so the retry overwrites what others wrote.
 */
export class NaiveControllers {
  readonly #options: NaiveOptions;
  readonly #pools: ReturnType<typeof makeInformer<Pool>>;
  readonly #busy = new Set<string>();
  readonly #running = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  reconciles = 0;
  /** Writes dropped after the last try. */
  gaveUp = 0;

  constructor(options: NaiveOptions) {
    this.#options = options;
    const { config, custom } = options;
    const path = `/apis/${NodePool.group}/${NodePool.version}/namespaces/${options.namespace}/${NodePool.resource}`;
    this.#pools = makeInformer<Pool>(config, path, () =>
      custom.listNamespacedCustomObject(this.#kind(NodePool)),
    );
  }

  async start(): Promise<void> {
    const onPool = (pool: Pool) => this.#once(pool.metadata.name, () => this.#pool(pool));
    this.#pools.on("add", onPool);
    this.#pools.on("update", onPool);
    this.#pools.on("error", (error: unknown) => {
      console.error(error);
      setTimeout(() => void this.#pools.start(), RESTART_MS);
    });
    await this.#pools.start();
    this.#timer = setInterval(() => {
      for (const pool of this.#pools.list()) onPool(pool);
      this.#once("autoscalers", () => this.#scalers());
    }, RESYNC_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#pools.stop();
    await Promise.all(this.#running);
  }

  /** Events during a run are dropped; the next pass sees the object again. */
  #once(name: string, reconcile: () => Promise<void>): void {
    if (this.#busy.has(name)) return;
    this.#busy.add(name);
    const run = reconcile()
      .catch((error: unknown) => console.error(error))
      .finally(() => {
        this.#busy.delete(name);
        this.#running.delete(run);
      });
    this.#running.add(run);
  }

  async #pool(pool: Pool): Promise<void> {
    this.reconciles += 1;
    const { custom } = this.#options;
    const { name, uid = "", generation = 0 } = pool.metadata;
    const wanted = Array.from({ length: pool.spec.replicas }, (_, n) => `${name}-${n}`);
    const { items } = (await custom.listNamespacedCustomObject(this.#kind(Machine))) as {
      readonly items: readonly Owned[];
    };
    const machines = items
      .filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.uid === uid))
      .map(({ metadata }) => metadata.name);
    for (const machine of wanted.filter((each) => !machines.includes(each))) {
      await custom.createNamespacedCustomObject({
        ...this.#kind(Machine),
        body: await this.#newMachine(machine, pool),
      });
    }
    for (const machine of machines.filter((each) => !wanted.includes(each))) {
      await custom.deleteNamespacedCustomObject({ ...this.#kind(Machine), name: machine });
    }
    const { status } = pool;
    if (status?.machines === wanted.length && status.observedGeneration === generation) return;
    const changed = structuredClone(pool);
    const ready = { type: "Ready", status: "True", reason: "MachinesCounted", message: "" };
    changed.status = {
      machines: wanted.length,
      observedGeneration: generation,
      conditions: [{ ...ready, lastTransitionTime: new Date().toISOString() }],
    };
    await this.#replace(NodePool, changed, (object) =>
      custom.replaceNamespacedCustomObjectStatus(object),
    );
  }

  async #newMachine(name: string, { metadata }: Pool): Promise<object> {
    const { core, namespace } = this.#options;
    const settings = await core.readNamespacedConfigMap({ name: "machine", namespace });
    const { apiVersion, kind } = { apiVersion: `${Machine.group}/${Machine.version}`, ...Machine };
    const owner = { apiVersion, kind: NodePool.kind, name: metadata.name, uid: metadata.uid };
    return {
      apiVersion,
      kind,
      metadata: { name, ownerReferences: [{ ...owner, controller: true }] },
      spec: { image: settings.data?.["image"] },
    };
  }

  async #scalers(): Promise<void> {
    const { custom } = this.#options;
    const { items } = (await custom.listNamespacedCustomObject(this.#kind(Autoscaler))) as {
      readonly items: readonly Scaler[];
    };
    await Promise.all(items.map((scaler) => this.#scaler(scaler)));
  }

  async #scaler(scaler: Scaler): Promise<void> {
    this.reconciles += 1;
    const { custom, core, namespace } = this.#options;
    const { poolRef, min, max, targetLoad } = scaler.spec;
    const loads = await core.readNamespacedConfigMap({ name: "load", namespace });
    const quota = await core.readNamespacedConfigMap({ name: "quota", namespace });
    const most = Math.min(max, Number(quota.data?.["machinesPerPool"] ?? max));
    const load = Number(loads.data?.[poolRef] ?? 0);
    const replicas = Math.min(most, Math.max(min, Math.ceil(load / targetLoad)));
    const pool = this.#pools.get(poolRef, namespace);
    if (pool !== undefined && pool.spec.replicas !== replicas) {
      const changed = structuredClone(pool);
      changed.spec.replicas = replicas;
      await this.#replace(NodePool, changed, (object) =>
        custom.replaceNamespacedCustomObject(object),
      );
    }
    if (scaler.status?.desiredReplicas === replicas) return;
    const { generation: observedGeneration = 0 } = scaler.metadata;
    scaler.status = { desiredReplicas: replicas, observedGeneration };
    await this.#replace(Autoscaler, scaler, (object) =>
      custom.replaceNamespacedCustomObjectStatus(object),
    );
  }

  /** The most common workaround for "the object has been modified". */
  async #replace(
    type: typeof NodePool | typeof Autoscaler,
    body: Pool | Scaler,
    send: (object: Target & { body: object }) => Promise<unknown>,
  ): Promise<void> {
    const target = { ...this.#kind(type), name: body.metadata.name };
    for (let number = 1; ; number++) {
      try {
        await send({ ...target, body });
        return;
      } catch (error) {
        if (!(error instanceof ApiException) || error.code !== 409) throw error;
        if (number === TRIES) break;
        const newest = (await this.#options.custom.getNamespacedCustomObject(target)) as Pool;
        Object.assign(body.metadata, { resourceVersion: newest.metadata.resourceVersion });
      }
    }
    this.gaveUp += 1;
    console.error(`${type.kind} ${body.metadata.name}: conflict, update dropped`);
  }

  #kind({ group, version, resource }: typeof NodePool | typeof Autoscaler | typeof Machine) {
    return { group, version, plural: resource, namespace: this.#options.namespace };
  }
}

interface Target {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespace: string;
  readonly name: string;
}
