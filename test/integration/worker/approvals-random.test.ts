import { createClient, ProblemError, type Client } from "@konverge/client";
import { child, defineController } from "@konverge/engine";
import { ConfigMap } from "@konverge/kube/kinds";
import { defineConfig, type RunningWorker } from "@konverge/worker";
import { expect, onTestFinished, test } from "vitest";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import type { Widget } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";
import { openApi } from "./open-api.ts";
import { useWorkers } from "./worker-harness.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const workers = useWorkers("approvals-random.test.konverge.dev");
const namespace = "default";
const STEPS = isLongRun ? 300 : 40;
const OBJECTS = ["one", "two", "three"];
const MAPS = ["a", "b", "c"];
const USERS = ["ada", "bob", "eve"];

interface Spec {
  readonly maps?: string[];
  readonly round?: number;
}

/** Makes the listed maps, and deletes all others of the object. */
const controllerOf = () =>
  defineController({
    name: "widgets",
    for: workers.Widgets,
    owns: [ConfigMap],
    approval: { when: ({ deletes }) => deletes > 0, by: 2 },
    backoff: { failure: { baseMs: 50, capMs: 200 } },
    reconcile: async ({ object, kube }) => {
      const { maps = [], round = 0 } = object.spec as Spec;
      const { name } = object.metadata;
      await kube.reconcileChildren(
        object,
        maps.map((map) =>
          child(ConfigMap, { name: `${name}-${map}`, data: { round: `${round}` } }),
        ),
      );
      await kube.mutateStatus(object, (draft) => {
        draft["status"] = { maps: [...maps].toSorted() };
      });
    },
  });

/** Deletions of maps by workers, by name. */
function deletions(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const call of workers.calls()) {
    const [, name] = /^delete \/api\/v1\/namespaces\/default\/configmaps\/([^?]*)/.exec(call) ?? [];
    if (name === undefined || call.includes("dryRun=All")) continue;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

class World {
  readonly #random: () => number;
  readonly #clients = new Map<string, Client>();
  readonly #reader: Client;
  /** Approved deletions, by name of the map. */
  readonly granted = new Map<string, number>();
  readonly #grants = new Set<string>();
  readonly violations: string[] = [];
  #worker: RunningWorker | undefined;
  #round = 0;

  constructor(random: () => number) {
    this.#random = random;
    for (const user of USERS) this.#clients.set(user, clientOf(user));
    this.#reader = clientOf("reader");
  }

  pick<T>(values: readonly T[]): T {
    return values[Math.floor(this.#random() * values.length)] as T;
  }

  async restart(): Promise<void> {
    await this.#worker?.kill();
    const settings = { prefix: workers.queues.prefix, leaseDuration: "3s" } as const;
    const config = defineConfig({ controllers: [controllerOf()], settings });
    this.#worker = await workers.start([], { config });
  }

  async step(): Promise<void> {
    const name = this.pick(OBJECTS);
    const user = this.pick(USERS);
    const dice = this.#random();
    if (dice < 0.35) await this.change(name);
    else if (dice < 0.45) await this.request(name, user);
    else if (dice < 0.55) await this.decide(name, user, "reject");
    else if (dice < 0.58) await this.restart();
    else if (dice < 0.62) await new Promise((resolve) => setTimeout(resolve, 50));
    else await Promise.all(USERS.map((each) => this.decide(name, each, "approve")));
  }

  async change(name: string): Promise<void> {
    const maps = MAPS.filter(() => this.#random() < 0.5);
    const spec = { maps, round: (this.#round += 1) };
    await workers.client.mutate(workers.Widgets, { namespace, name }, (draft) => {
      draft.spec = spec;
    });
  }

  async request(name: string, user: string): Promise<void> {
    await this.#clients.get(user)?.objects.reconcile(objectOf(name));
  }

  async decide(name: string, user: string, verb: "approve" | "reject"): Promise<void> {
    const object = objectOf(name);
    try {
      const { hash, plan, requesters } = await this.#reader.approvals.get(object);
      const deleted = (plan?.changes ?? []).filter(({ action }) => action === "deleted");
      const answer = await this.#clients
        .get(user)
        ?.approvals[verb](object, { hash, by: user, reason: "random" });
      this.#demand(verb === "reject" || !requesters.includes(user), "a requester approved");
      if (answer?.state !== "approved") return;
      this.#demand(plan !== undefined, "an approval without its plan");
      const users = new Set(answer.approvals.map(({ by }) => by));
      this.#demand(users.size >= 2, "approved by one user");
      this.#demand(
        answer.requesters.every((by) => !users.has(by)),
        "the approval of a requester counts",
      );
      // A third approval of the same plan grants nothing more.
      const grant = `${name} ${hash} ${answer.approvals[1]?.at ?? ""}`;
      if (this.#grants.has(grant)) return;
      this.#grants.add(grant);
      for (const { name: map } of deleted) this.granted.set(map, (this.granted.get(map) ?? 0) + 1);
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      this.#demand(["not_found", "approval_stale", "forbidden"].includes(error.code), error.code);
    }
  }

  #demand(holds: boolean, violation: string): void {
    if (!holds) this.violations.push(violation);
  }

  /** True once all objects have their maps; whatever is missing must wait in the list. */
  async hasSettled(): Promise<boolean> {
    const { items } = await this.#reader.approvals.list();
    for (const { name, requesters, state } of items) {
      if (state === "rejected") await this.change(name);
      // New users: all others may have requested it.
      for (const user of ["late-1", "late-2"]) {
        if (!this.#clients.has(user)) this.#clients.set(user, clientOf(user));
        this.#demand(!requesters.includes(user), "an unknown requester");
        await this.decide(name, user, "approve");
      }
    }
    const widgets = await workers.client.list(workers.Widgets, { namespace });
    const maps = await workers.client.list(ConfigMap, { namespace });
    return widgets.items.every(({ metadata: { name }, spec }) => {
      const wanted = ((spec as Spec).maps ?? []).map((map) => `${name}-${map}`);
      const found = maps.items
        .map(({ metadata }) => metadata.name)
        .filter((map) => map.startsWith(`${name}-`));
      return JSON.stringify(found.toSorted()) === JSON.stringify(wanted.toSorted());
    });
  }
}

const objectOf = (name: string) => ({ cluster: "default", controller: "widgets", namespace, name });

function clientOf(user: string): Client {
  const { fetch } = openApi(workers.queues, user);
  return createClient({ server: "http://localhost:7070", fetch });
}

test(`no order of calls makes a change that was not approved, or makes it twice (KONVERGE_TEST_SEED=${seed})`, async () => {
  const world = new World(seededRandom(seed));
  const before = deletions();
  for (const name of OBJECTS) {
    await workers.client.create(workers.Widgets, {
      metadata: { namespace, name },
      spec: { maps: MAPS } as Widget["spec"],
    });
  }
  onTestFinished(async () => {
    for (const { metadata } of (await workers.client.list(ConfigMap, { namespace })).items) {
      await workers.client.delete(ConfigMap, { namespace, name: metadata.name });
    }
  });
  await world.restart();
  for (let step = 0; step < STEPS; step += 1) await world.step();
  await until("all objects have their maps", () => world.hasSettled());
  expect(world.violations).toEqual([]);
  for (const [name, count] of deletions()) {
    const made = count - (before.get(name) ?? 0);
    expect(made, `deletions of ${name}`).toBeLessThanOrEqual(world.granted.get(name) ?? 0);
  }
});
