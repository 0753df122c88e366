import { KonvergeError } from "@konverge/core";

/** The effect of a fault on a request. */
export type FaultEffect =
  /** Answered without being processed. 429 is text/plain with Retry-After, as in priority and fairness. */
  | {
      readonly kind: "answer";
      readonly code: 409 | 429 | 500 | 503 | 504;
      readonly retryAfterSeconds?: number;
    }
  /** Served after this delay. */
  | { readonly kind: "latency"; readonly ms: number }
  /** The connection is closed: before the request is served, or afterwards without a response. */
  | { readonly kind: "drop"; readonly when: "after" | "before" }
  /** Served without a response: the connection stays open until either side ends it. */
  | { readonly kind: "silence" }
  /** A watch that ends after this many events. */
  | { readonly kind: "cutWatch"; readonly afterEvents: number }
  /** A watch that stays open but sends nothing after this many events. */
  | { readonly kind: "silentWatch"; readonly afterEvents: number };

/** A fault to inject: the requests it matches, how often, and its effect. */
export interface Fault {
  /** For example `update`; default all verbs. Watches are verb `watch`. */
  readonly verbs?: readonly string[];
  /** `plural.group`, for example `nodepools.demo.konverge.dev`; default all resources. */
  readonly resources?: readonly string[];
  /** Part of the user agent; default all clients. */
  readonly userAgent?: string;
  /** Share of the matching requests, from 0 to 1. Default 1. */
  readonly probability?: number;
  /** Maximum number of matched requests. Default no limit. */
  readonly count?: number;
  readonly effect: FaultEffect;
}

/** The properties of a request that faults match. */
export interface FaultTarget {
  readonly verb: string;
  readonly resource: string;
  readonly userAgent: string;
}

interface Rule {
  readonly fault: Fault;
  left: number;
}

/** The faults of one server, in the order of their injection. The first that matches a request is applied. */
export class FaultRules {
  #rules: Rule[] = [];
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Adds a fault. Returns a function that removes it. @throws KonvergeError `invalid_request` for an impossible one */
  inject(fault: Fault): () => void {
    const { probability = 1, count = Number.POSITIVE_INFINITY } = fault;
    if (!(probability >= 0 && probability <= 1)) {
      throw new KonvergeError(
        "invalid_request",
        `fault.probability is ${probability}: give a share from 0 to 1`,
      );
    }
    if (!(count >= 1)) {
      throw new KonvergeError("invalid_request", `fault.count is ${count}: give at least 1`);
    }
    const rule: Rule = { fault, left: count };
    this.#rules.push(rule);
    return () => {
      this.#rules = this.#rules.filter((one) => one !== rule);
    };
  }

  clear(): void {
    this.#rules = [];
  }

  /** Returns the effect for this request, and counts it; undefined for none. */
  meet(target: FaultTarget): FaultEffect | undefined {
    for (const rule of this.#rules) {
      if (rule.left <= 0 || !matches(rule.fault, target)) continue;
      if (this.#random() >= (rule.fault.probability ?? 1)) continue;
      rule.left--;
      return rule.fault.effect;
    }
    return undefined;
  }
}

function matches(fault: Fault, { verb, resource, userAgent }: FaultTarget): boolean {
  const isWatchFault = fault.effect.kind === "cutWatch" || fault.effect.kind === "silentWatch";
  return (
    (fault.verbs?.includes(verb) ?? true) &&
    (fault.resources?.includes(resource) ?? true) &&
    (fault.userAgent === undefined || userAgent.includes(fault.userAgent)) &&
    (!isWatchFault || verb === "watch")
  );
}
