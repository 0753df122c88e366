import { KonvergeError, type RunLabels } from "@konverge/core";
import { assertJson } from "../define/json-value.ts";
import { RunLabelling } from "./run-labelling.ts";
import type { Held, RunOutputText } from "../store/run-journal-store.ts";

const MAX_NAME = 100;
const BAD_NAME = /[\p{Cc}]/u;
/** Most bytes of all published values with their names, as JSON. */
const MAX_BYTES = 16_384;
/** A value that no record has stored in this time, for example during a long body, is stored alone; in ms. */
const STORE_ALONE_MS = 1_000;

export interface RunOutputOptions {
  readonly held: Pick<Held, "run">;
  /** Stores output without a record. */
  readonly store: (output: RunOutputText) => Promise<void>;
  readonly storeLabels: (labels: RunLabels) => Promise<void>;
}

/**
 * The output of an execution in addition to its records: the published values and the labels. They are stored with the next record, or
 * when the execution leaves the run; labels by a call of their own, because they change indexes.
 *
 * A replay publishes the earlier values again. They are compared only when something is stored, so a replay that ends at the
 * last record stores nothing.
 */
export class RunOutput {
  readonly #store: RunOutputOptions["store"];
  readonly #labelling: RunLabelling;
  readonly #published: Map<string, unknown>;
  /** As it is in the store; undefined if that is unknown. */
  #stored: string | undefined;
  #isChanged = false;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;
  /** The store of output that has not ended. */
  #storing: Promise<void> | undefined;

  constructor({ held, store, storeLabels }: RunOutputOptions) {
    const { published = {}, labels } = held.run;
    this.#labelling = new RunLabelling(labels, storeLabels);
    this.#store = store;
    this.#published = new Map(Object.entries(published));
    this.#stored = textOf(this.#published);
  }

  /** Publishes the last value of a name; undefined removes it. @throws KonvergeError `invalid_workflow`, `invalid_result` */
  publish(name: string, value: unknown): void {
    if (typeof name !== "string" || name === "" || name.length > MAX_NAME || BAD_NAME.test(name)) {
      throw new KonvergeError(
        "invalid_workflow",
        `name "${name}" of a published value must be 1 to ${MAX_NAME} characters without line breaks`,
      );
    }
    assertJson(value, `the published value "${name}"`);
    const published = new Map(this.#published);
    if (value === undefined) published.delete(name);
    // A copy, because the function may change the object later.
    else published.set(name, JSON.parse(JSON.stringify(value)));
    const bytes = Buffer.byteLength(textOf(published));
    if (bytes > MAX_BYTES) {
      throw new KonvergeError(
        "invalid_workflow",
        `the published values have ${bytes} bytes with "${name}", the limit is ${MAX_BYTES}; publish a summary`,
      );
    }
    this.#published.clear();
    for (const [each, last] of published) this.#published.set(each, last);
    this.#isChanged = true;
    this.#storeSoon();
  }

  /** Sets a label; undefined removes it. @throws KonvergeError `invalid_workflow` */
  label(name: string, value: string | undefined): void {
    this.#labelling.set(name, value);
    this.#storeSoon();
  }

  /**
   * Stores the labels, and gives `store` the values that the store does not have yet; undefined if it has all. One store of output
   * ends before the next begins, because a late one would replace newer values.
   */
  async storeWith<T>(store: (output: RunOutputText | undefined) => Promise<T>): Promise<T> {
    while (this.#hasNews && this.#storing !== undefined) await this.#storing;
    if (!this.#hasNews) return await store(undefined);
    const stored = this.#storeAll(store);
    const end = () => {
      this.#storing = undefined;
    };
    this.#storing = stored.then(end, end);
    return await stored;
  }

  /** As `storeWith`, for the end of the run, after which all other stores are refused. */
  async storeLast<T>(store: (output: RunOutputText | undefined) => Promise<T>): Promise<T> {
    while (this.#storing !== undefined) await this.#storing;
    return await this.storeWith(store);
  }

  get #hasNews(): boolean {
    return this.#isChanged || this.#labelling.isChanged;
  }

  async #storeAll<T>(store: (output: RunOutputText | undefined) => Promise<T>): Promise<T> {
    if (this.#labelling.isChanged) await this.#labelling.store();
    const output = this.#take();
    try {
      return await store(output);
    } catch (error) {
      this.#stored = undefined;
      this.#isChanged = true;
      throw error;
    }
  }

  #take(): RunOutputText | undefined {
    if (!this.#isChanged) return undefined;
    this.#isChanged = false;
    const text = textOf(this.#published);
    if (text === this.#stored) return undefined;
    this.#stored = text;
    return { published: text };
  }

  /** Stops storing values without a record. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #storeSoon(): void {
    if (this.#isClosed) return;
    const storeAlone = async (output: RunOutputText | undefined) => {
      if (output !== undefined) await this.#store(output);
    };
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      // The next record stores it, or fails for the same reason.
      this.storeWith(storeAlone).catch(() => undefined);
    }, STORE_ALONE_MS).unref();
  }
}

function textOf(published: ReadonlyMap<string, unknown>): string {
  return JSON.stringify(Object.fromEntries(published));
}
