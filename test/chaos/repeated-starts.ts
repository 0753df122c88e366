import type { Installation } from "../game-day/installation.ts";
import { until } from "../support/until.ts";

const PAUSE_MS = 100;
/** The key of a call remains in flight for 90 s if its process is killed. */
const ANSWERED_MS = 180_000;

/** Callers that repeat each call with its Idempotency-Key until it is answered twice: the start of a run, then its approval. */
export class RepeatedStarts {
  readonly #installation: Installation;
  /** Names of runs by ID. */
  readonly #runs = new Map<string, string>();
  readonly #approved = new Set<string>();
  readonly differences: string[] = [];
  #isOver = false;
  #loop: Promise<void> | undefined;

  constructor(installation: Installation) {
    this.#installation = installation;
  }

  /** Names of the runs that were started. */
  get names(): readonly string[] {
    return [...this.#runs.values()];
  }

  start(): void {
    this.#loop = (async () => {
      for (let serial = 1; !this.#isOver; serial += 1) {
        await this.#startRun(`once-${serial}`);
        await pause();
      }
    })();
  }

  /** Ends all calls. The one that was not answered is not repeated. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#loop;
  }

  async #startRun(name: string): Promise<void> {
    const start = () => this.#call("/v1/runs", { workflow: "ship", input: name }, name);
    const id = await start();
    if (id === undefined) return;
    this.#runs.set(id, name);
    const again = await start();
    if (again !== undefined && again !== id) {
      this.differences.push(`${name} was started as ${id} and as ${again}`);
    }
    if ((await this.#approve(id, name)) === undefined) return;
    this.#approved.add(id);
    await this.#approve(id, name);
  }

  async #approve(id: string, key: string): Promise<string | undefined> {
    const path = `/v1/runs/${encodeURIComponent(id)}/signal`;
    return await this.#call(path, { name: "approve", by: "ada" }, `approve-${key}`);
  }

  /** Repeats the call until it is answered, and returns the `id` of the answer; undefined if the calls were ended. */
  async #call(path: string, body: object, key: string): Promise<string | undefined> {
    const headers = { "content-type": "application/json", "idempotency-key": key };
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    const find = async () => {
      const answer = await this.#installation.service.call(path, init).catch(() => undefined);
      if (answer?.status === 422) throw new Error(answer.text);
      if (answer?.ok === true)
        return { id: String((JSON.parse(answer.text) as { id?: string }).id) };
      if (this.#isOver) return {};
      await pause();
      return undefined;
    };
    const { id } = await until<{ id?: string }>(`an answer to ${key}`, find, ANSWERED_MS);
    return id;
  }

  /** Sends the signal for which a run waits. */
  async approve(id: string): Promise<void> {
    await until(`the approval of ${id}`, () => this.#approve(id, `late-${id}`));
  }

  /** Waits until all runs are done. @throws Error that names the first other one */
  async settle(): Promise<void> {
    for (const id of this.#runs.keys()) {
      if (!this.#approved.has(id)) await this.approve(id);
      await until(`the end of run ${id}`, async () => {
        const path = `/v1/runs/${encodeURIComponent(id)}`;
        const { ok, text } = await this.#installation.service.call(path);
        return ok && (JSON.parse(text) as { readonly status: string }).status === "done";
      });
    }
  }
}

const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
