import { fileURLToPath } from "node:url";
import type { ResourceType } from "@konverge/core";
import {
  ignoreNotFound,
  isServed,
  type KubeClient,
  type KubeconfigOptions,
  type NamespacedName,
} from "@konverge/kube";
import { ConfigMap, CustomResourceDefinition, Namespace } from "@konverge/kube/kinds";
import { createWorkQueue } from "@konverge/queue";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { queueNames } from "../../../libs/queue/src/keys/queue-names.ts";
import { useChildren, type Child } from "../../support/child.ts";
import { until } from "../../support/until.ts";
import { testServers } from "../kube/kube-servers.ts";
import { useQueues } from "../queue/queue-harness.ts";
import type { LifeChildConfig } from "./object-life-child.ts";
import {
  CHILD_LABEL,
  childName,
  CONFIG_LABEL,
  MAX_SIZE,
  NOTE_LABEL,
  notesText,
  Notice,
  Plot,
  Realm,
  SEEN,
  Thing,
} from "./object-life-controllers.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

/**
 * Lives of objects: created, edited, deleted, held by finalizers and created again, with and without generation, while workers
 * are killed. Owners, their children and the objects that they watch are in a namespace or cluster-scoped, in every combination
 * that Kubernetes allows. In the end the desired state is reached, and nothing else is left.
 */
const STEPS = isLongRun ? 400 : 30;
/** Half of them are refused. */
const SIZES = [0, 1, 2, 3, MAX_SIZE + 1, MAX_SIZE + 2, MAX_SIZE + 3, MAX_SIZE + 4];
const WORKERS = 2;
const LEASE_MS = 2_000;
const CHILD = fileURLToPath(new URL("object-life-child.ts", import.meta.url));
const HOLD = "life.test/hold";
const namespace = `life-${process.pid}`;

interface Kind {
  readonly controller: string;
  readonly type: ResourceType;
  readonly hasChildren: boolean;
}
const KINDS: readonly Kind[] = [
  { controller: "things", type: Thing, hasChildren: true },
  { controller: "realms", type: Realm, hasChildren: true },
  { controller: "configs", type: ConfigMap, hasChildren: false },
];

/** One name of a kind, with the desired state of its object. */
interface Slot {
  readonly kind: Kind;
  readonly name: string;
  /** Undefined if it must not exist. */
  size: number | undefined;
  isHeld: boolean;
  /** The texts of its watched objects: a ConfigMap and a Notice. */
  readonly notes: [string | undefined, string | undefined];
}

/** Objects with a spec, a status or data, as this test reads and writes them. */
interface AnyObject {
  metadata: {
    name: string;
    finalizers?: string[];
    annotations?: Record<string, string>;
  };
  spec?: { size: number };
  status?: { size?: number; notes?: string };
  data?: Record<string, string>;
}

/** The key of a slot as text. */
function idOf({ kind: { controller, type }, name }: Slot): string {
  const plural = type.group === "" ? type.resource : `${type.resource}.${type.group}`;
  const inside = type.scope === "Cluster" ? "_" : namespace;
  return `${controller}/default/${plural}/${inside}/${name}`;
}

class World {
  readonly #client: KubeClient;
  readonly slots: readonly Slot[];

  constructor(client: KubeClient) {
    this.#client = client;
    this.slots = KINDS.flatMap((kind) =>
      ["a", "b"].map((name) => {
        const full = `${kind.controller}-${name}-${process.pid}`;
        return { kind, name: full, size: undefined, isHeld: false, notes: [undefined, undefined] };
      }),
    );
  }

  target({ kind, name }: Slot): { readonly name: string; readonly namespace?: string } {
    return kind.type.scope === "Cluster" ? { name } : { namespace, name };
  }

  async find(slot: Slot): Promise<AnyObject | undefined> {
    return await this.#client.get(slot.kind.type, this.target(slot)).catch(ignoreNotFound);
  }

  async create(slot: Slot, size: number): Promise<void> {
    const body = slot.kind.hasChildren ? { spec: { size } } : { data: { size: String(size) } };
    const labels = slot.kind.hasChildren ? {} : { [CONFIG_LABEL]: "true" };
    const metadata = { ...this.target(slot), labels };
    await this.#client.create(slot.kind.type, { metadata, ...body });
    Object.assign(slot, { size, isHeld: false });
  }

  async edit(slot: Slot, size: number): Promise<void> {
    await this.#mutate(slot, (draft) => {
      if (slot.kind.hasChildren) draft.spec = { size };
      else draft.data = { size: String(size) };
    });
    slot.size = size;
  }

  async delete(slot: Slot): Promise<void> {
    await this.#client.delete(slot.kind.type, this.target(slot));
    slot.size = undefined;
  }

  async hold(slot: Slot): Promise<void> {
    await this.#mutate(slot, (draft) => {
      draft.metadata.finalizers = [...(draft.metadata.finalizers ?? []), HOLD];
    });
    slot.isHeld = true;
  }

  async release(slot: Slot): Promise<void> {
    await this.#mutate(slot, (draft) => {
      const finalizers = draft.metadata.finalizers ?? [];
      draft.metadata.finalizers = finalizers.filter((finalizer) => finalizer !== HOLD);
    });
    slot.isHeld = false;
  }

  /** Creates, changes or deletes an object that the owner watches. */
  async note(slot: Slot, which: 0 | 1, text: string | undefined): Promise<void> {
    const { name } = slot;
    const type: ResourceType = which === 0 ? ConfigMap : Notice;
    const target: NamespacedName = which === 0 ? { namespace, name: `${name}-note` } : { name };
    const body = which === 0 ? { data: { text: text ?? "" } } : { spec: { text: text ?? "" } };
    const before = slot.notes[which];
    slot.notes[which] = text;
    if (before !== undefined && text === undefined) await this.#client.delete(type, target);
    if (before === undefined && text !== undefined) {
      const metadata = { ...target, labels: { [NOTE_LABEL]: name } };
      await this.#client.create(type, { metadata, ...body });
    }
    if (before === undefined || text === undefined) return;
    await this.#client.mutate(type, target, (draft) => void Object.assign(draft, body));
  }

  /** Another program deletes or changes a child. */
  async disturb(slot: Slot, what: "plot" | "delete" | "change"): Promise<void> {
    const child = { namespace, name: childName(slot.name, 0) };
    if (what === "plot") {
      await this.#client.delete(Plot, { name: child.name }).catch(ignoreNotFound);
      return;
    }
    const done =
      what === "delete"
        ? this.#client.delete(ConfigMap, child)
        : this.#client.mutate(ConfigMap, child, (draft) => {
            draft.data = { owner: "somebody else" };
          });
    await done.catch(ignoreNotFound);
  }

  /** Returns what differs from the desired state in the cluster. */
  async findWrong(): Promise<string[]> {
    const wrong: string[] = [];
    const children: string[] = [];
    for (const slot of this.slots) {
      const { kind, name, size } = slot;
      const object = await this.find(slot);
      if ((object === undefined) !== (size === undefined))
        wrong.push(`${name} ${size ?? "exists"}`);
      if (object === undefined || size === undefined || size > MAX_SIZE) continue;
      const answer = kind.hasChildren
        ? object.status?.size
        : Number(object.metadata.annotations?.[SEEN]);
      if (answer !== size) wrong.push(`${name} has ${answer}, not ${size}`);
      if (!kind.hasChildren) continue;
      const notes = notesText(...slot.notes);
      if (object.status?.notes !== notes) wrong.push(`${name} notes ${object.status?.notes}`);
      children.push(...Array.from({ length: size }, (_, index) => childName(name, index)));
    }
    const { items } = await this.#client.list(ConfigMap, {
      namespace,
      labelSelector: `${CHILD_LABEL}=true`,
    });
    wrong.push(...(await this.#findWrongPlots()));
    // A dead-lettered owner keeps its children as they were.
    const settled = items.filter(({ metadata }) => !this.#isOfRefused(metadata.name));
    const found = settled.map(({ metadata }) => metadata.name).toSorted();
    if (found.join() !== children.toSorted().join()) wrong.push(`children ${found.join()}`);
    for (const { metadata, data } of settled) {
      if (!metadata.name.startsWith(`${data?.["owner"]}-child`))
        wrong.push(`data of ${metadata.name}`);
    }
    return wrong;
  }

  async #findWrongPlots(): Promise<string[]> {
    const realms = this.slots.filter(({ kind }) => kind.type === Realm);
    const wanted = realms.flatMap(({ name, size = 0 }) =>
      Array.from({ length: size > MAX_SIZE ? 0 : size }, (_, index) => childName(name, index)),
    );
    const { items } = await this.#client.list(Plot);
    const names = items.map(({ metadata }) => metadata.name);
    const found = names.filter((name) => !this.#isOfRefused(name)).toSorted();
    return found.join() === wanted.toSorted().join() ? [] : [`plots ${found.join()}`];
  }

  #isOfRefused(child: string): boolean {
    return this.slots.some(
      ({ name, size = 0 }) => size > MAX_SIZE && child.startsWith(`${name}-child`),
    );
  }

  async #mutate(slot: Slot, change: (draft: AnyObject) => void): Promise<void> {
    await this.#client.mutate(slot.kind.type, this.target(slot), (draft) =>
      change(draft as unknown as AnyObject),
    );
  }
}

const CUSTOM = [Thing, Realm, Plot, Notice];

const servers = testServers().filter(({ name }) => isLongRun || name.startsWith("embedded"));

describe.each(servers)("on $name", (server) => {
  const queues = useQueues();
  const start = useChildren();
  let client: KubeClient;
  let kubeconfig: KubeconfigOptions;
  let opened: Awaited<ReturnType<typeof server.open>>;

  beforeAll(async () => {
    opened = await server.open();
    ({ client, kubeconfig } = opened);
    await client.create(Namespace, { metadata: { name: namespace } });
    for (const type of CUSTOM) {
      await client.create(CustomResourceDefinition, type.crd());
      await until("it is served", () => isServed(client, type));
    }
  });
  afterAll(async () => {
    for (const type of CUSTOM) {
      await client.delete(CustomResourceDefinition, type.crd().metadata);
    }
    await opened.close();
  });

  /** Returns what the queues still have, beside the keys of existing objects. */
  async function findLeftovers(world: World): Promise<string[]> {
    const { slots } = world;
    const left: string[] = [];
    for (const kind of KINDS) {
      const { controller } = kind;
      const own = slots.filter((slot) => slot.kind === kind);
      const ours = (ids: readonly string[]) =>
        ids
          .filter((id) => own.some(({ name }) => id.endsWith(`/${name}`)))
          .toSorted()
          .join();
      const names = queueNames(queues.prefix, "default", controller);
      const { redis } = queues;
      const idsOf = (some: readonly Slot[]) => some.map(idOf).toSorted().join();
      const compare = (what: string, found: string, wanted: string) => {
        if (found !== wanted) left.push(`${controller} ${what}: ${found}, not ${wanted}`);
      };
      const existing = own.filter(({ size }) => size !== undefined);
      const refused = existing.filter(({ size = 0 }) => size > MAX_SIZE);
      compare("index", ours(await redis.zrange(names.index, "0", "-1")), idsOf(existing));
      compare(
        "dead",
        (await redis.zrange(names.dead, "0", "-1")).toSorted().join(),
        idsOf(refused),
      );
      for (const name of ["timers", "firing", "parked", "aborts", "resuming"] as const) {
        if ((await redis.exists(names[name])) > 0) left.push(`${controller} ${name}`);
      }
      const lasting: string[] = [];
      for (const name of await redis.keys(`${names.keyRoot}${controller}/*`)) {
        if ((await redis.pttl(name)) === -1) lasting.push(name.slice(names.keyRoot.length));
      }
      compare("keys without expiry", ours(lasting), idsOf(existing));
      const queue = createWorkQueue({
        redis: queues.target,
        prefix: queues.prefix,
        cluster: "default",
        controller,
      });
      const counts = await queue.counts().finally(() => queue.close());
      if (counts.waiting + counts.active + counts.delayed > 0) left.push(`${controller} has jobs`);
    }
    return left;
  }

  test(`reaches the desired state and leaves nothing (KONVERGE_TEST_SEED=${seed})`, async () => {
    const random = seededRandom(seed);
    const below = (count: number) => Math.floor(random() * count);
    const world = new World(client);
    const workers: Child[] = [];
    const config: LifeChildConfig = {
      url: queues.url,
      prefix: queues.prefix,
      kubeconfig,
      namespace,
      leaseMs: LEASE_MS,
    };
    const startWorker = async () => {
      const child = start([CHILD, JSON.stringify(config)]);
      workers.push(child);
      await child.ready;
    };
    const killAll = () => Promise.all(workers.splice(0).map((worker) => worker.kill()));
    const log: string[] = [];

    /** Without it, most refused objects would be changed before their attempt. */
    const untilRefused = async (slot: Slot) => {
      const { dead } = queueNames(queues.prefix, "default", slot.kind.controller);
      await until(`${slot.name} is dead-lettered`, async () => {
        return (await queues.redis.zscore(dead, idOf(slot))) !== null;
      });
    };
    const step = async () => {
      const slot = world.slots[below(world.slots.length)]!;
      await change(slot);
      const { size = 0 } = slot;
      if (size > MAX_SIZE && workers.length > 0 && random() < 0.5) await untilRefused(slot);
    };
    const change = async (slot: Slot) => {
      const { name, size, isHeld, kind } = slot;
      const next = SIZES[below(SIZES.length)] ?? 0;
      const what = random();
      log.push(`${name} size ${size} ${isHeld ? "held " : ""}-> ${next} ${what.toFixed(2)}`);
      if (size === undefined) {
        if (isHeld) return await world.release(slot);
        const isGone = (await world.find(slot)) === undefined;
        // A worker must remove the finalizer first.
        if (!isGone && workers.length === 0) return;
        await until(`${name} is deleted`, async () => (await world.find(slot)) === undefined);
        return await world.create(slot, next);
      }
      if (what < 0.35) return await world.edit(slot, next);
      if (what < 0.55) return await world.delete(slot);
      if (what < 0.65 && !isHeld) {
        await world.delete(slot);
        if (kind.hasChildren && workers.length === 0) return;
        await until(`${name} is deleted`, async () => (await world.find(slot)) === undefined);
        return await world.create(slot, next);
      }
      if (what < 0.75) return isHeld ? await world.release(slot) : await world.hold(slot);
      if (!kind.hasChildren) return;
      const other = (["plot", "delete", "change", "note", "note"] as const)[below(5)] ?? "note";
      if (other !== "note") return await world.disturb(slot, other);
      const text = random() < 0.3 ? undefined : `text ${below(1_000)}`;
      await world.note(slot, below(2) === 0 ? 0 : 1, text);
    };

    await Promise.all(Array.from({ length: WORKERS }, startWorker));
    for (let nth = 0; nth < STEPS; nth += 1) {
      const disaster = random();
      if (disaster < 0.06) {
        await workers.splice(below(workers.length), 1)[0]?.kill();
        await startWorker();
      } else if (disaster < 0.1) {
        await killAll();
        for (let more = below(4); more >= 0; more -= 1) await step();
        await Promise.all(Array.from({ length: WORKERS }, startWorker));
      }
      await step();
    }
    for (const slot of world.slots) if (slot.isHeld) await world.release(slot);

    let wrong: string[] = [];
    await until("the desired state, and nothing left", async () => {
      wrong = [...(await world.findWrong()), ...(await findLeftovers(world))];
      return wrong.length === 0;
    }).catch(() => undefined);
    expect(wrong, `after ${log.join("; ")}`).toEqual([]);
    await killAll();
  });
});
