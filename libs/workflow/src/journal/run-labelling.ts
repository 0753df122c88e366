import { findLabelIssue, KonvergeError, MAX_LABELS, type RunLabels } from "@konverge/core";

/** The labels of a run as its function sets them. A replay sets the earlier values again, so only the last ones are stored. */
export class RunLabelling {
  readonly #store: (labels: RunLabels) => Promise<void>;
  readonly #labels: Map<string, string>;
  #stored: ReadonlyMap<string, string>;

  constructor(labels: RunLabels | undefined, store: (labels: RunLabels) => Promise<void>) {
    this.#store = store;
    this.#labels = new Map(Object.entries(labels ?? {}));
    this.#stored = new Map(this.#labels);
  }

  /** Sets a label; undefined removes it. @throws KonvergeError `invalid_workflow` */
  set(name: string, value: string | undefined): void {
    const issue = value === undefined ? undefined : findLabelIssue(name, value);
    if (issue !== undefined) throw new KonvergeError("invalid_workflow", issue);
    if (value === undefined) this.#labels.delete(name);
    else this.#labels.set(name, value);
    if (this.#labels.size <= MAX_LABELS) return;
    this.#labels.delete(name);
    const message = `label "${name}" would be one too many: a run has at most ${MAX_LABELS} labels`;
    throw new KonvergeError("invalid_workflow", message);
  }

  /** True if `store` would store something. */
  get isChanged(): boolean {
    const [labels, stored] = [this.#labels, this.#stored];
    return (
      labels.size !== stored.size || [...labels].some(([name, value]) => stored.get(name) !== value)
    );
  }

  async store(): Promise<void> {
    const before = this.#stored;
    this.#stored = new Map(this.#labels);
    try {
      await this.#store(Object.fromEntries(this.#labels));
    } catch (error) {
      this.#stored = before;
      throw error;
    }
  }
}
