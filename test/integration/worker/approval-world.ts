import {
  diffMergePatch,
  metadataOf,
  SERVER_METADATA,
  type ApiObject,
  type JsonObject,
  type JsonValue,
  type ResourceType,
} from "@konverge/core";
import { defineController, type ApprovalPlan, type ReconcileContext } from "@konverge/engine";
import { isAlreadyExists, isNotFound, type KubeClient } from "@konverge/kube";
import { ConfigMap, Deployment, Namespace } from "@konverge/kube/kinds";
import type { PlanRecord } from "@konverge/records";
import { defineConfig, startWorker } from "@konverge/worker";
import { onTestFinished } from "vitest";
import { keepLog } from "../../../apps/cli/src/testing/kept-log.ts";
import { runProgram, type Step } from "../engine/plan-programs.ts";
import type { AuditedServer } from "../kube/audited-servers.ts";
import { installWidgets, type Widget } from "../kube/kube-servers.ts";
import type { QueueHarness } from "../queue/queue-harness.ts";
import { namespace, type Grant } from "./approval-checks.ts";

/** What goes wrong in an attempt that is not a plan, once. */
export interface Fault {
  /**
   * `throw`: the handler fails. `stray`: it makes another write. `foreign`: another client writes a map.
   */
  readonly kind: "throw" | "stray" | "foreign";
  /** The step before which it happens. */
  readonly at: number;
  /** The name of the map. */
  readonly name: string;
}

export interface Rule {
  readonly when: "always" | "maps" | "deletes";
  readonly role: "operator" | "admin";
  readonly by: number;
  /** Whether the controller has a `cleanup`; it runs the same program as `reconcile`. */
  readonly cleans: boolean;
}

interface Spec {
  readonly round?: number;
  readonly steps?: readonly Step[];
  readonly fault?: Fault;
}

/** The reconciled object. */
const OWN = { namespace, name: "own" };

const SELECTS: Readonly<Record<Rule["when"], (plan: ApprovalPlan) => boolean>> = {
  always: () => true,
  // Maps of the object request it again, so plans without an approval may only write the object.
  maps: ({ changes }) => changes.some(({ kind }) => kind !== "Widget"),
  deletes: ({ deletes }) => deletes > 0,
};

/** A worker with one controller whose handlers run the programs in their objects. Other clients change the same objects. */
export class ApprovalWorld {
  readonly server: AuditedServer;
  readonly rule: Rule;
  /** Plans that the rule has not selected. */
  readonly unselected: Grant[] = [];
  readonly #client: KubeClient;
  readonly #Widgets: ResourceType<Widget>;
  readonly #faulted = new Set<number>();
  #serial = 0;

  private constructor(
    parts: Pick<ApprovalWorld, "server" | "rule"> & {
      readonly client: KubeClient;
      readonly Widgets: ResourceType<Widget>;
    },
  ) {
    this.server = parts.server;
    this.rule = parts.rule;
    this.#client = parts.client;
    this.#Widgets = parts.Widgets;
  }

  static async open(
    server: AuditedServer,
    queues: QueueHarness,
    rule: Rule,
  ): Promise<ApprovalWorld> {
    const client = server.connect("konverge-test/1");
    const Widgets = await installWidgets(client, "approvals.test.konverge.dev");
    await client.create(Namespace, { metadata: { name: namespace } });
    await client.create(Widgets, { metadata: OWN, spec: {} });
    const world = new ApprovalWorld({ server, rule, client, Widgets });
    const settings = { prefix: queues.prefix, leaseDuration: "3s" } as const;
    const worker = await startWorker({
      config: defineConfig({ controllers: [world.#controller()], settings }),
      redis: queues.url,
      kubeconfig: { text: server.kubeconfig },
      log: keepLog([]),
    });
    onTestFinished(() => worker.kill());
    return world;
  }

  /** Gives the object another program. Returns its generation, and whether it was created again. */
  async program(spec: Spec): Promise<{ readonly generation: number; readonly isNew: boolean }> {
    const programmed = { ...spec, round: (this.#serial += 1) } as unknown as JsonObject;
    for (;;) {
      try {
        const { object } = await this.#client.mutate(this.#Widgets, OWN, (draft) => {
          draft.spec = programmed;
        });
        return { generation: Number(object.metadata.generation), isNew: false };
      } catch (error) {
        ignoreAbsence(error);
      }
      try {
        await this.#client.create(this.#Widgets, { metadata: OWN, spec: programmed });
        return { generation: 1, isNew: true };
      } catch (error) {
        if (!isAlreadyExists(error)) throw error;
      }
    }
  }

  /**
   * Deletes the object. With a cleanup, it exists until the cleanup has ended. Returns its generation, or undefined if it no longer
   * exists.
   */
  async remove(): Promise<number | undefined> {
    await this.#client.delete(this.#Widgets, OWN).catch(ignoreAbsence);
    return await this.generation();
  }

  /** Returns the generation of the object, or undefined if it does not exist. */
  async generation(): Promise<number | undefined> {
    try {
      const { metadata } = await this.#client.get(this.#Widgets, OWN);
      return Number(metadata.generation);
    } catch (error) {
      ignoreAbsence(error);
      return undefined;
    }
  }

  /** Changes the object, if it exists, without an event that requests an attempt. */
  async label(): Promise<void> {
    await this.#client
      .mutate(this.#Widgets, OWN, (draft) => {
        draft.metadata.labels = { changed: `${(this.#serial += 1)}` };
      })
      .catch(ignoreAbsence);
  }

  /** Changes or creates a map, as another client. */
  async writeMap(name: string): Promise<void> {
    const data = { foreign: `${(this.#serial += 1)}` };
    await this.#client
      .create(ConfigMap, { metadata: { namespace, name }, data })
      .catch(async (error: unknown) => {
        if (!isAlreadyExists(error)) throw error;
        await this.#client.mutate(ConfigMap, { namespace, name }, (draft) => {
          draft.data = { ...draft.data, ...data };
        });
      });
  }

  /** As another client. */
  async deleteMap(name: string): Promise<void> {
    await this.#client.delete(ConfigMap, { namespace, name }).catch(ignoreAbsence);
  }

  /** The objects that programs write, by kind and name. */
  async objects(): Promise<Map<string, ApiObject>> {
    const kinds = [ConfigMap, Deployment, this.#Widgets] as const;
    const lists = await Promise.all(
      kinds.map((kind) => this.#client.list(kind as ResourceType, { namespace })),
    );
    const found = lists.flatMap(({ items }) => items);
    return new Map(found.map((object) => [`${object.kind}/${object.metadata.name}`, object]));
  }

  #controller() {
    const { when, by, role, cleans } = this.rule;
    return defineController({
      name: "widgets",
      for: this.#Widgets,
      ...(when === "maps" ? { owns: [ConfigMap] } : {}),
      approval: { by, role, when: (plan) => this.#selects(plan) },
      backoff: { failure: { baseMs: 50, capMs: 200 }, rejected: { baseMs: 50, capMs: 200 } },
      reconcile: (context) => this.#reconcile(context),
      ...(cleans ? { cleanup: (context) => this.#reconcile(context) } : {}),
    });
  }

  #selects(plan: ApprovalPlan): boolean {
    const isSelected = SELECTS[this.rule.when](plan);
    if (!isSelected) {
      const atMs = Date.now();
      const { changes } = plan;
      this.unselected.push({ changes, atMs, plannedAtMs: atMs, isApproved: false });
    }
    return isSelected;
  }

  async #reconcile(context: ReconcileContext<Widget>): Promise<void> {
    const { steps = [], fault, round = 0 } = context.object.spec as Spec;
    for (const [at, step] of steps.entries()) {
      if (!context.plan && fault?.at === at && !this.#faulted.has(round)) {
        this.#faulted.add(round);
        await this.#fail(context, fault);
      }
      await runProgram(context, [step]);
    }
  }

  async #fail({ kube }: ReconcileContext<Widget>, { kind, name }: Fault): Promise<void> {
    switch (kind) {
      case "throw":
        throw new Error("failed on purpose");
      case "stray": {
        const metadata = { namespace, name: `stray-${(this.#serial += 1)}` };
        await kube.create(ConfigMap, { metadata }).catch(() => undefined);
        return;
      }
      case "foreign":
        await this.writeMap(name);
    }
  }
}

function ignoreAbsence(error: unknown): void {
  if (!isNotFound(error)) throw error;
}

/** Returns the changes between two states, as a plan lists them: patches by kind and name. */
export function changesBetween(
  before: ReadonlyMap<string, ApiObject>,
  after: ReadonlyMap<string, ApiObject>,
): string[] {
  const ids = new Set([...before.keys(), ...after.keys()]);
  return [...ids]
    .flatMap((id) => {
      const [old, next] = [before.get(id), after.get(id)];
      const any = old ?? next;
      if (any === undefined) return [];
      const name = nameOf(any);
      if (next === undefined) return [`deleted ${name}`];
      const isReplaced = old !== undefined && old.metadata.uid !== next.metadata.uid;
      const isTerminating = next.metadata.deletionTimestamp !== undefined;
      const wasTerminating = old === undefined || old.metadata.deletionTimestamp !== undefined;
      if (isTerminating && !wasTerminating) return [`deleted ${name}`];
      const patch = diffMergePatch(contentOf(old), contentOf(next));
      if (patch === undefined && !isReplaced) return [];
      const action = old === undefined ? "created" : isReplaced ? "replaced" : "changed";
      return [textOf(action, name, patch ?? {})];
    })
    .toSorted();
}

/** The same of a plan. */
export function plannedChanges(changes: PlanRecord["changes"]): string[] {
  return changes
    .flatMap(({ action, kind, name, patch = {} }) => {
      if (action === "unchanged") return [];
      const { metadata } = patch as { metadata?: { generateName?: string } };
      const shown = metadata?.generateName ?? name;
      if (action === "deleted") return [`deleted ${kind}/${shown}`];
      return [textOf(action, `${kind}/${shown}`, patch as JsonObject)];
    })
    .toSorted();
}

function nameOf({ kind, metadata }: ApiObject): string {
  const { name, generateName } = metadata as { name: string; generateName?: string };
  return `${kind}/${generateName ?? name}`;
}

function textOf(action: string, name: string, patch: JsonObject): string {
  const { metadata, ...rest } = patch;
  const { name: _name, ...shown } = (metadata ?? {}) as JsonObject;
  return `${action} ${name} ${JSON.stringify(sorted({ ...rest, metadata: shown }))}`;
}

function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, sorted(member as JsonValue)]));
}

function contentOf(object: ApiObject | undefined): JsonObject {
  if (object === undefined) return {};
  const { apiVersion: _version, kind: _kind, ...content } = object as unknown as JsonObject;
  const metadata = Object.entries(metadataOf(object as unknown as JsonObject)).filter(
    ([name]) => !SERVER_METADATA.includes(name),
  );
  return { ...content, metadata: Object.fromEntries(metadata) };
}
