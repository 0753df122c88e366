/* oxlint-disable typescript/unbound-method -- verbs are closures, and may be taken out of the context */
import type { StepContext } from "../define/define-workflow.ts";
import type { OpenVerbs } from "../verbs/create-step-verbs.ts";
import type { StepVerbs } from "../define/step-verbs.ts";

export interface StepTryOptions {
  readonly attempt: number;
  readonly makeKey: () => string;
  /** Makes the verbs of this try; they end with the signal. */
  readonly openVerbs: (signal: AbortSignal) => OpenVerbs;
}

/**
 * What a body is given for one try. Signal, key and verbs are made when they are asked for: most bodies ask for none, and to
 * make them costs more than the rest of a step.
 */
export class StepTry implements StepContext {
  readonly attempt: number;
  readonly #options: StepTryOptions;
  #over: AbortController | undefined;
  #open: OpenVerbs | undefined;
  #whyOver: (() => Error) | undefined;

  constructor(options: StepTryOptions) {
    this.attempt = options.attempt;
    this.#options = options;
  }

  /** From now on the signal is aborted and verbs are refused, also for those who ask for them later. The first reason counts. */
  end(why: () => Error): void {
    if (this.#whyOver !== undefined) return;
    this.#whyOver = why;
    this.#over?.abort(why());
  }

  /** @throws KonvergeError `invalid_workflow` when a verb goes on */
  assertVerbsEnded(): void {
    this.#open?.assertEnded();
  }

  get signal(): AbortSignal {
    if (this.#over === undefined) {
      this.#over = new AbortController();
      if (this.#whyOver !== undefined) this.#over.abort(this.#whyOver());
    }
    return this.#over.signal;
  }

  get idempotencyKey(): string {
    return this.#options.makeKey();
  }

  get #verbs(): StepVerbs {
    this.#open ??= this.#options.openVerbs(this.signal);
    return this.#open.verbs;
  }

  get get(): StepVerbs["get"] {
    return this.#verbs.get;
  }
  get list(): StepVerbs["list"] {
    return this.#verbs.list;
  }
  get apply(): StepVerbs["apply"] {
    return this.#verbs.apply;
  }
  get create(): StepVerbs["create"] {
    return this.#verbs.create;
  }
  get mutate(): StepVerbs["mutate"] {
    return this.#verbs.mutate;
  }
  get delete(): StepVerbs["delete"] {
    return this.#verbs.delete;
  }
  get scale(): StepVerbs["scale"] {
    return this.#verbs.scale;
  }
  get runJob(): StepVerbs["runJob"] {
    return this.#verbs.runJob;
  }
  get evict(): StepVerbs["evict"] {
    return this.#verbs.evict;
  }
  get on(): StepVerbs["on"] {
    return this.#verbs.on;
  }
}
