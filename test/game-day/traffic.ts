import type { ResourceType } from "@konverge/core";
import type { KubeClient } from "@konverge/kube";
import type { Widget } from "../integration/kube/kube-servers.ts";
import { until } from "../support/until.ts";
import type { Installation } from "./installation.ts";

const OBJECTS = 20;
const PAUSE_MS = 100;
const JSON_TYPE = { "content-type": "application/json" };

/** Users of an installation: they change objects, request reconciles and start runs, and remember what was accepted. */
export class Traffic implements AsyncDisposable {
  readonly #installation: Installation;
  readonly #client: KubeClient;
  readonly #widgets: ResourceType<Widget>;
  readonly #requests = new Set<string>();
  readonly #runs = new Map<string, string>();
  /** How often each error code was returned, or `refused` for a connection. */
  readonly errors = new Map<string, number>();
  #serial = 0;
  #isOver = false;
  #loops: Promise<void>[] = [];

  constructor(
    installation: Installation,
    { client, widgets }: { readonly client: KubeClient; readonly widgets: ResourceType<Widget> },
  ) {
    this.#installation = installation;
    this.#client = client;
    this.#widgets = widgets;
  }

  get accepted(): number {
    return this.#requests.size + this.#runs.size;
  }

  /** Names of accepted runs by ID. */
  get runs(): ReadonlyMap<string, string> {
    return this.#runs;
  }

  async createObjects(): Promise<void> {
    const { namespace } = this.#installation;
    for (let at = 0; at < OBJECTS; at += 1) {
      const metadata = { namespace, name: `w-${at}` };
      await this.#client.create(this.#widgets, { metadata, spec: { value: 0 } });
    }
  }

  /** Creates objects that stay unchanged, and waits until they are reconciled. */
  async createRestingObjects(count: number): Promise<void> {
    const { namespace } = this.#installation;
    for (let at = 0; at < count; at += 1) {
      const metadata = { namespace, name: `rest-${at}` };
      await this.#client.create(this.#widgets, { metadata, spec: { value: 1 } });
    }
    await until("they are reconciled", async () => {
      const { items } = await this.#client.list(this.#widgets, { namespace });
      return items.every(({ status }) => status?.["value"] !== undefined);
    });
  }

  /** Waits until workers apply changes of objects, which needs a leader and a worker. */
  async untilServed(): Promise<void> {
    const { namespace } = this.#installation;
    const target = { namespace, name: "probe" };
    const value = this.#next();
    await this.#client
      .create(this.#widgets, { metadata: target, spec: { value } })
      .catch(() =>
        this.#client.mutate(this.#widgets, target, (draft) => void (draft.spec = { value })),
      );
    await until("a change of an object is applied", async () => {
      const { status } = await this.#client.get(this.#widgets, target);
      return status?.["value"] === value;
    });
  }

  start(): void {
    this.#isOver = false;
    this.#loops = [
      this.#repeat(() => this.#change()),
      this.#repeat(() => this.request()),
      this.#repeat(() => this.startRun()),
    ];
  }

  /** Forgets the accepted work, of which a restored Redis has no record. */
  forget(): void {
    this.#requests.clear();
    this.#runs.clear();
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#loops);
  }

  async #repeat(act: () => Promise<void>): Promise<void> {
    while (!this.#isOver) {
      await act();
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  #next(): number {
    this.#serial += 1;
    return this.#serial;
  }

  async #change(): Promise<void> {
    const value = this.#next();
    const target = { namespace: this.#installation.namespace, name: `w-${value % OBJECTS}` };
    try {
      await this.#client.mutate(this.#widgets, target, (draft) => {
        draft.spec = { value };
      });
    } catch {
      this.#count("kubernetes");
    }
  }

  /** Requests a reconcile over HTTP. */
  async request(): Promise<void> {
    const { namespace } = this.#installation;
    const body = { controller: "widgets", namespace, name: `w-${this.#next() % OBJECTS}` };
    const answer = await this.#post("/v1/reconciles", body);
    if (answer !== undefined) this.#requests.add(answer.id);
  }

  /** Starts a run over HTTP. */
  async startRun(): Promise<void> {
    const name = `order-${this.#next()}`;
    const answer = await this.#post("/v1/runs", { workflow: "ship", input: name });
    if (answer !== undefined) this.#runs.set(answer.id, name);
  }

  async #post(path: string, body: object): Promise<{ readonly id: string } | undefined> {
    try {
      const init = { method: "POST", headers: JSON_TYPE, body: JSON.stringify(body) };
      const { ok, text } = await this.#installation.service.call(path, init);
      const answer = JSON.parse(text) as { readonly id: string; readonly code?: string };
      if (ok) return answer;
      this.#count(answer.code ?? "unknown");
    } catch {
      this.#count("refused");
    }
    return undefined;
  }

  #count(error: string): void {
    this.errors.set(error, (this.errors.get(error) ?? 0) + 1);
  }

  /**
   * Waits until all accepted work is complete: each object has the status of its spec, each request and run has ended.
   * @throws Error that names the first missing part
   */
  async settle(): Promise<void> {
    const { namespace } = this.#installation;
    await until("all objects have the status of their specs", async () => {
      const { items } = await this.#client.list(this.#widgets, { namespace });
      return items.every(({ spec, status }) => spec?.["value"] === status?.["value"]);
    });
    for (const id of this.#requests) {
      await until(`the end of request ${id}`, () =>
        this.#has(`/v1/reconciles/${encodeURIComponent(id)}`, "phase", "finished"),
      );
    }
    for (const id of this.#runs.keys()) {
      await until(`the end of run ${id}`, () =>
        this.#has(`/v1/runs/${encodeURIComponent(id)}`, "status", "done"),
      );
    }
  }

  async #has(path: string, field: string, value: string): Promise<boolean> {
    const { ok, text } = await this.#installation.service.call(path);
    return ok && (JSON.parse(text) as Record<string, unknown>)[field] === value;
  }

  /** Returns the steps of accepted runs that did not run, and those that ran more than once. */
  countSteps(): { readonly missing: string[]; readonly repeated: string[] } {
    const counts = new Map<string, number>();
    for (const line of this.#installation.journal()) counts.set(line, (counts.get(line) ?? 0) + 1);
    const steps = [...this.#runs.values()].flatMap((name) => [`charge ${name}`, `send ${name}`]);
    return {
      missing: steps.filter((step) => !counts.has(step)),
      repeated: steps.filter((step) => (counts.get(step) ?? 0) > 1),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
