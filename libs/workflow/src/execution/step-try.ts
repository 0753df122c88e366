/* oxlint-disable typescript/unbound-method -- verbs are closures, and may be taken out of the context */
import type { StepContext } from "../define/define-workflow.ts";
import type { Log } from "../define/log.ts";
import type { RunLog } from "../journal/run-log.ts";
import type { OpenVerbs } from "../verbs/create-step-verbs.ts";
import type { StepVerbs } from "../define/step-verbs.ts";
import type { Heartbeats } from "./heartbeats.ts";

export interface StepTryOptions {
  readonly step: string;
  readonly attempt: number;
  readonly makeKey: () => string;
  /** Creates the verbs of this attempt; they end with the signal. */
  readonly openVerbs: (signal: AbortSignal) => OpenVerbs;
  readonly log: RunLog;
  readonly heartbeats: Heartbeats;
}

/**
 * The context of a body for one attempt. Signal, key and verbs are created on first use: most bodies use none, and creating
 * them costs more than the rest of a step.
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

  /** Aborts the signal and rejects verbs, also those used later. The first reason counts. */
  end(why: () => Error): void {
    if (this.#whyOver !== undefined) return;
    this.#whyOver = why;
    this.#over?.abort(why());
  }

  /** @throws KonvergeError `invalid_workflow` if a verb is running */
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

  get log(): Log {
    const { step, log } = this.#options;
    const scrub = (text: string) => this.#open?.scrub(text) ?? text;
    return log.logger(() => ({ step, attempt: this.attempt, scrub }));
  }

  get idempotencyKey(): string {
    return this.#options.makeKey();
  }

  /** A closure, as verbs are. */
  get heartbeat(): StepContext["heartbeat"] {
    return (progress) => this.#options.heartbeats.beat(progress);
  }

  get lastHeartbeat(): unknown {
    return this.#options.heartbeats.earlier;
  }

  get #verbs(): StepVerbs {
    this.#open ??= this.#options.openVerbs(this.signal);
    return this.#open.verbs;
  }

  get get(): StepVerbs["get"] {
    return this.#verbs.get;
  }
  get find(): StepVerbs["find"] {
    return this.#verbs.find;
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
  get mutateStatus(): StepVerbs["mutateStatus"] {
    return this.#verbs.mutateStatus;
  }
  get patch(): StepVerbs["patch"] {
    return this.#verbs.patch;
  }
  get replace(): StepVerbs["replace"] {
    return this.#verbs.replace;
  }
  get pages(): StepVerbs["pages"] {
    return this.#verbs.pages;
  }
  get createOrUpdate(): StepVerbs["createOrUpdate"] {
    return this.#verbs.createOrUpdate;
  }
  get readScale(): StepVerbs["readScale"] {
    return this.#verbs.readScale;
  }
  get deleteCollection(): StepVerbs["deleteCollection"] {
    return this.#verbs.deleteCollection;
  }
  get logs(): StepVerbs["logs"] {
    return this.#verbs.logs;
  }
  get event(): StepVerbs["event"] {
    return this.#verbs.event;
  }
  get extract(): StepVerbs["extract"] {
    return this.#verbs.extract;
  }
  get raw(): StepVerbs["raw"] {
    return this.#verbs.raw;
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
  get api(): StepVerbs["api"] {
    return this.#verbs.api;
  }
  get on(): StepVerbs["on"] {
    return this.#verbs.on;
  }
}
