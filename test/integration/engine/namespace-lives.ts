import type { JsonObject, ResourceType } from "@konverge/core";
import { ignoreNotFound, type KubeClient, type NamespacedName } from "@konverge/kube";
import { ConfigMap, Namespace } from "@konverge/kube/kinds";
import { until } from "../../support/until.ts";
import type { Widget } from "../kube/kube-servers.ts";

const NAMES = ["a", "b"];

export interface NamespaceLivesOptions {
  readonly client: KubeClient;
  readonly Widgets: ResourceType<Widget>;
  /** Names of the namespaces. */
  readonly names: readonly string[];
  /** The label whose value `in` selects a namespace. */
  readonly label: string;
  readonly random: () => number;
}

/**
 * Random lives of namespaces (created, labeled, unlabeled, deleted, created again), and of the Widgets and ConfigMaps in them.
 * Knows which objects exist and which namespaces are in the scope.
 */
export class NamespaceLives {
  readonly #options: NamespaceLivesOptions;
  readonly #isLabeled = new Map<string, boolean>();
  readonly #widgets = new Map<string, NamespacedName & { size: number }>();
  readonly #configs = new Map<string, NamespacedName>();
  #sizes = 0;

  constructor(options: NamespaceLivesOptions) {
    this.#options = options;
  }

  /** The objects in the namespaces of the scope: Widgets with their size, and ConfigMaps. */
  get expected(): { readonly widgets: ReadonlyMap<string, number>; readonly configs: number } {
    const isInScope = ({ namespace = "" }: NamespacedName) => this.#isLabeled.get(namespace);
    const widgets = [...this.#widgets].filter(([, widget]) => isInScope(widget));
    return {
      widgets: new Map(widgets.map(([key, { size }]) => [key, size])),
      configs: [...this.#configs.values()].filter(isInScope).length,
    };
  }

  get existing(): string[] {
    return [...this.#isLabeled.keys()].toSorted();
  }

  async step(): Promise<void> {
    const { names, random } = this.#options;
    const namespace = names[Math.floor(random() * names.length)] ?? "";
    if (!this.#isLabeled.has(namespace)) return this.#create(namespace, random() < 0.6);
    const roll = random();
    if (roll < 0.2) return this.#setLabel(namespace, !this.#isLabeled.get(namespace));
    if (roll < 0.3) return this.#delete(namespace);
    const name = { namespace, name: NAMES[Math.floor(random() * NAMES.length)] ?? "" };
    return roll < 0.75 ? this.#changeWidget(name) : this.#changeConfig(name);
  }

  async removeAll(): Promise<void> {
    for (const namespace of this.existing) await this.#delete(namespace);
  }

  async #create(namespace: string, isLabeled: boolean): Promise<void> {
    const labels = { [this.#options.label]: isLabeled ? "in" : "out" };
    await this.#options.client.create(Namespace, { metadata: { name: namespace, labels } });
    this.#isLabeled.set(namespace, isLabeled);
  }

  async #setLabel(namespace: string, isLabeled: boolean): Promise<void> {
    const { client, label, random } = this.#options;
    await client.mutate(Namespace, { name: namespace }, (draft) => {
      const labels = (draft.metadata.labels ??= {});
      if (isLabeled) labels[label] = "in";
      else if (random() < 0.5) delete labels[label];
      else labels[label] = "out";
    });
    this.#isLabeled.set(namespace, isLabeled);
  }

  /** As the namespace controller, which does not run beside a bare API server. */
  async #delete(namespace: string): Promise<void> {
    const { client, Widgets } = this.#options;
    for (const [key, name] of this.#widgets) {
      if (name.namespace !== namespace) continue;
      await client.delete(Widgets, name);
      this.#widgets.delete(key);
    }
    for (const [key, name] of this.#configs) {
      if (name.namespace !== namespace) continue;
      await client.delete(ConfigMap, name);
      this.#configs.delete(key);
    }
    await client.delete(Namespace, { name: namespace });
    await until("the namespace is gone", async () => {
      const found = await client.get(Namespace, { name: namespace }).catch(ignoreNotFound);
      if (found === undefined) return true;
      const path = `/api/v1/namespaces/${namespace}/finalize`;
      const body = { ...found, spec: { finalizers: [] } } as unknown as JsonObject;
      await client.raw({ method: "PUT", path, body }).catch(() => undefined);
      return false;
    });
    this.#isLabeled.delete(namespace);
  }

  async #changeWidget(name: NamespacedName): Promise<void> {
    const { client, Widgets, random } = this.#options;
    const key = `${name.namespace}/${name.name}`;
    const known = this.#widgets.get(key);
    if (known !== undefined && random() < 0.3) {
      await client.delete(Widgets, name);
      this.#widgets.delete(key);
      return;
    }
    this.#sizes += 1;
    const spec = { size: this.#sizes };
    if (known === undefined) await client.create(Widgets, { metadata: name, spec });
    else {
      await client.mutate(Widgets, name, (draft) => {
        draft.spec = spec;
      });
    }
    this.#widgets.set(key, { ...name, size: this.#sizes });
  }

  async #changeConfig(name: NamespacedName): Promise<void> {
    const { client } = this.#options;
    const key = `${name.namespace}/${name.name}`;
    if (this.#configs.has(key)) {
      await client.delete(ConfigMap, name);
      this.#configs.delete(key);
    } else {
      await client.create(ConfigMap, { metadata: name, data: {} });
      this.#configs.set(key, name);
    }
  }
}
