import { defined, metadataOf, sleepMs, type JsonObject } from "@konverge/core";
import { ignoreNotFound } from "@konverge/kube";
import type { ApplyChange } from "../change/change.ts";
import type { Verdict } from "../store/mutation-store.ts";
import { isPlanOf, type Plan } from "../store/plan.ts";
import type { Batch, BatchMutation, RedisMutationStore } from "../store/redis-mutation-store.ts";
import { markIn, withMark } from "./mark.ts";
import { failed, hasExpired, isWritten, planPart, refusalOf } from "./plan-part.ts";
import { sendApply, sendDraft, type Target } from "./send-plan.ts";
import { failureOf, isServerFailure, rejectionOf, type WriteFailure } from "./write-error.ts";

/** Conflicts of one part after which the attempt ends as a conflict. */
const MAX_TRIES = 12;
/** Failures of the server during a batch after which a part that fails again is halved. */
const MAX_SERVER_FAILURES = 3;
/** Longest delay after a conflict, with full jitter, in ms. */
const MAX_WAIT_MS = 100;

export interface BatchOptions {
  readonly store: Pick<RedisMutationStore, "journal" | "settle">;
  readonly target: Target;
  /** The key of the object. */
  readonly object: string;
  readonly holder: string;
  readonly batch: Batch;
  readonly mark: string;
  /** The object as another writer of the lane has left it. */
  readonly passed: JsonObject | undefined;
  readonly signal: AbortSignal;
  /** Throws if the lease of the attempt has expired. */
  readonly checkExpiry: () => void;
  readonly random: () => number;
  /** Why the configuration of this worker does not allow a mutation. */
  readonly findRestriction: (mutation: BatchMutation) => Verdict | undefined;
  /** By the clock of Redis. */
  readonly nowMs: () => number;
  readonly onWrite: (write: Written) => void;
  readonly onConflict: () => void;
  /** A mutation has ended with its change on the object. `durationMs`: since its submission. */
  readonly onLanded: (durationMs: number) => void;
}

export interface Written {
  readonly read: JsonObject | undefined;
  readonly written: JsonObject;
  /** The number of mutations in the write. */
  readonly mutations: number;
  /** False if the response lacks the mark of the write. */
  readonly isMarked: boolean;
}

/** The object as it is known. `isFresh`: its newest version in this batch, read or written. */
interface Known {
  readonly object: JsonObject | undefined;
  readonly isFresh: boolean;
}

type PartEnd = "settled" | "recovered" | "split";

/**
 * Applies the mutations of a batch: all with one write, or if the server rejects it or fails repeatedly, each half with its own,
 * until the mutation that causes it is alone.
 *
 * A plan is journaled before it is sent, and its id is in the mark of the write. The journal contains all plans that may still be
 * written: those for the version of the object that was read last. A write requires that version. So one of these plans was made
 * exactly if its mark is on the object, and no other can be made later. A mutation of such a plan can end without its change, as
 * after its deadline; a write that changes only the mark then makes the plan impossible.
 */
export class BatchWriter {
  readonly #options: BatchOptions;
  #left: readonly BatchMutation[];
  #open: readonly Plan[];
  /** Ids of plans that may have been sent without a response. */
  readonly #unsure: Set<string>;
  #known: Known | undefined;
  /** True if a write that is made again may have been made before. */
  #wasRepeated = false;
  #serverFailures = 0;
  #isEmpty = false;
  /** True if another writer than those of the lane has changed the object. */
  sawStranger = false;

  constructor(options: BatchOptions) {
    const { batch, passed } = options;
    this.#options = options;
    this.#left = batch.mutations;
    this.#open = batch.plans;
    this.#unsure = new Set(batch.plans.map(({ id }) => id));
    if (passed !== undefined && batch.plans.length === 0) {
      this.#known = { object: passed, isFresh: false };
    }
  }

  /** The object as the batch has left it, if that is known. */
  get lastKnown(): JsonObject | undefined {
    return this.#known?.isFresh === true ? this.#known.object : undefined;
  }

  /** Returns true if the object has no more mutations. @throws LaneFencedError, the error of a call whose result is unknown, the reason of the signal */
  async run(): Promise<boolean> {
    let parts = this.#firstParts();
    for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
      if (part.length === 0) continue;
      const end = await this.#write(part);
      if (end === "recovered") parts = [this.#left];
      if (end === "split") {
        const half = Math.ceil(part.length / 2);
        parts.unshift(part.slice(0, half), part.slice(half));
      }
    }
    return this.#isEmpty;
  }

  /** A mutation that an earlier attempt has isolated stays alone. */
  #firstParts(): (readonly BatchMutation[])[] {
    const first = this.#left.slice(0, 1);
    const ids = first.map(({ id }) => id);
    const isAlone = this.#open.some((plan) => isPlanOf(plan, ids));
    return isAlone ? [first, this.#left.slice(1)] : [this.#left];
  }

  async #write(part: readonly BatchMutation[]): Promise<PartEnd> {
    for (let tries = 1; ; tries += 1) {
      const known = (this.#known ??= await this.#read(tries === 1));
      if (await this.#recover(known.object)) return "recovered";
      const sent = await this.#try(part, known);
      if (sent.kind === "settled") return "settled";
      if (sent.kind === "stale") {
        this.#known = undefined;
        continue;
      }
      const { error, failure } = sent;
      if (failure === "refused" || failure === "forbidden") {
        // The rejection may be caused by the outdated copy.
        if (!known.isFresh) this.#known = undefined;
        else if (failure === "refused" && part.length > 1) return "split";
        else {
          await this.#settle(part.map(({ id }) => [id, rejectionOf(error)]));
          return "settled";
        }
        continue;
      }
      const isDivisible = part.length > 1 && isServerFailure(error);
      if (failure === "unmade" || (failure === "failed" && !isDivisible) || tries >= MAX_TRIES) {
        throw error;
      }
      this.#known = undefined;
      if (failure === "failed") {
        this.#serverFailures += 1;
        if (this.#serverFailures >= MAX_SERVER_FAILURES) return "split";
      }
      if (failure === "moved") {
        this.#options.onConflict();
        if (known.isFresh) this.sawStranger = true;
      }
      const { random, signal } = this.#options;
      if (tries > 1) await sleepMs(random() * MAX_WAIT_MS, signal);
    }
  }

  /** Plans and sends one write. `stale`: what was decided without a write needs the newest version. */
  async #try(
    part: readonly BatchMutation[],
    { object, isFresh }: Known,
  ): Promise<
    | { readonly kind: "settled" }
    | { readonly kind: "stale" }
    | { readonly kind: "failed"; readonly failure: WriteFailure; readonly error: unknown }
  > {
    const ids = part.map(({ id }) => id);
    const nowMs = this.#options.nowMs();
    const last = this.#open.findLast((plan) => isPlanOf(plan, ids));
    const prior = last !== undefined && isLate(last, part, nowMs) ? undefined : last;
    const change = part[0]?.changes[0];
    const planned =
      change?.kind === "apply"
        ? this.#planApply(part, object)
        : planPart(part, object, { ...this.#options, nowMs, prior });
    const { verdicts } = planned;
    const isUnsure = planned.draft === undefined && this.#mayBeMade(verdicts);
    const draft = isUnsure && !this.#isRepeatable ? object : planned.draft;
    if (draft === undefined) {
      if (!isFresh) return { kind: "stale" };
      await this.#settle(isUnsure ? this.#unsureOf(verdicts) : verdicts, object);
      return { kind: "settled" };
    }
    const base = object && baseOf(object);
    const plan = prior ?? { id: crypto.randomUUID(), verdicts, ...defined({ base }) };
    await this.#journal(plan);
    let written: JsonObject;
    try {
      written = await this.#send(object, { draft, plan, change });
    } catch (error) {
      const failure = failureOf(error, { isNew: object === undefined });
      if (failure === "broken" || failure === "failed") this.#unsure.add(plan.id);
      else if (!this.#unsure.has(plan.id)) {
        this.#open = this.#open.filter(({ id }) => id !== plan.id);
        // The next attempt would not know that the plan was not made.
        if (failure === "unmade") await this.#storePlans();
      }
      return { kind: "failed", failure, error };
    }
    const isMarked = this.#isRepeatable || markIn(written, this.#options.mark) === plan.id;
    const mutations = verdicts.filter(([, { outcome }]) => outcome === "applied").length;
    this.#options.onWrite({ read: object, written, mutations, isMarked });
    this.#known = { object: written, isFresh: true };
    this.#open = [];
    const isSame = !this.#wasRepeated && versionOf(written) === base?.resourceVersion;
    await this.#settle(verdicts, written, isSame);
    return { kind: "settled" };
  }

  #planApply(
    [mutation]: readonly BatchMutation[],
    read: JsonObject | undefined,
  ): ReturnType<typeof planPart> {
    if (mutation === undefined) return { verdicts: [] };
    const nowMs = this.#options.nowMs();
    const refusal = refusalOf(mutation, { ...this.#options, read, draft: read, nowMs });
    const { object } = mutation.changes[0] as ApplyChange;
    return refusal === undefined
      ? { verdicts: [[mutation.id, { outcome: "applied" }]], draft: object }
      : { verdicts: [[mutation.id, refusal]] };
  }

  async #send(
    read: JsonObject | undefined,
    {
      draft,
      plan,
      change,
    }: {
      readonly draft: JsonObject;
      readonly plan: Plan;
      readonly change: BatchMutation["changes"][0] | undefined;
    },
  ): Promise<JsonObject> {
    const { target, mark, signal, checkExpiry } = this.#options;
    signal.throwIfAborted();
    checkExpiry();
    if (change?.kind === "apply") return await sendApply(target, read, change);
    // A subresource cannot have a mark.
    const marked = target.subresource === undefined ? withMark(draft, mark, plan.id) : draft;
    return await sendDraft(target, read, marked);
  }

  /** @param mayBeCached true if the server's watch cache is enough, which is cheaper. Open plans need the newest version. */
  async #read(mayBeCached: boolean): Promise<Known> {
    const { client, type, at, subresource } = this.#options.target;
    const isFresh = !mayBeCached || this.#open.length > 0 || subresource !== undefined;
    const options = isFresh ? defined({ subresource }) : { resourceVersion: "0" };
    const object = await client.get(type, at, options).catch(ignoreNotFound);
    return { object: object as unknown as JsonObject | undefined, isFresh };
  }

  /** Settles the mutations of a plan that was made, or that was perhaps made on an object that is gone. */
  async #recover(object: JsonObject | undefined): Promise<boolean> {
    if (this.#open.length === 0) return false;
    const mark = object && markIn(object, this.#options.mark);
    const made = this.#open.find(({ id }) => id === mark);
    if (made !== undefined) {
      this.#open = [];
      await this.#settle(made.verdicts, object);
      return true;
    }
    const uid = object && metadataOf(object)["uid"];
    const lost = this.#open.filter(
      ({ id, base }) => base !== undefined && base.uid !== uid && this.#unsure.has(id),
    );
    const version = object && versionOf(object);
    this.#open = this.#open.filter(
      ({ base }) => base?.uid === uid && base?.resourceVersion === version,
    );
    if (this.#isRepeatable) {
      this.#wasRepeated ||= this.#open.length === 0;
      return false;
    }
    if (lost.length === 0) return false;
    const verdict = lostVerdict(object);
    const ids = new Set(
      lost.flatMap(({ verdicts }) =>
        verdicts.flatMap(([id, { outcome }]) => (isWritten(outcome) ? [id] : [])),
      ),
    );
    await this.#settle([...ids].map((id) => [id, verdict]));
    return true;
  }

  /** True if a plan that may still be made, or was made without a mark, contains a change that the verdicts deny. */
  #mayBeMade(verdicts: Plan["verdicts"]): boolean {
    return verdicts.some(([id, { outcome }]) => !isWritten(outcome) && this.#isUnsure(id));
  }

  #isUnsure(mutation: string): boolean {
    return this.#open.some(
      (plan) =>
        this.#unsure.has(plan.id) &&
        plan.verdicts.some(([id, { outcome }]) => id === mutation && isWritten(outcome)),
    );
  }

  #unsureOf(verdicts: Plan["verdicts"]): Plan["verdicts"] {
    return verdicts.map(([id, verdict]) => {
      const { outcome, error } = verdict;
      if (error === undefined || isWritten(outcome) || !this.#isUnsure(id)) return [id, verdict];
      const message = `${error.message}; whether an earlier write of the change was made is unknown`;
      return [id, { outcome, error: { ...error, message } }];
    });
  }

  /** Values of subresources are set, and an apply is the same whenever it is made. */
  get #isRepeatable(): boolean {
    const isApply = this.#left[0]?.changes[0]?.kind === "apply";
    return isApply || this.#options.target.subresource !== undefined;
  }

  async #journal(plan: Plan): Promise<void> {
    if (!this.#open.some(({ id }) => id === plan.id)) this.#open = [...this.#open, plan];
    // Also if the plan is in the journal: this is the check that no other worker has taken the object.
    await this.#storePlans();
  }

  async #storePlans(): Promise<void> {
    const { store, object, holder } = this.#options;
    await store.journal(object, holder, this.#open);
  }

  /** @param isSame true if the server already had what was written */
  async #settle(verdicts: Plan["verdicts"], object?: JsonObject, isSame = false): Promise<void> {
    const { store, object: key, holder, nowMs, onLanded } = this.#options;
    const left = new Map(this.#left.map(({ id, createdAtMs }) => [id, createdAtMs]));
    const resourceVersion = object && versionOf(object);
    const settled = new Map(
      verdicts.flatMap(([id, verdict]): [string, Verdict][] => {
        if (!left.has(id)) return [];
        if (!isWritten(verdict.outcome)) return [[id, verdict]];
        const outcome = isSame ? "unchanged" : verdict.outcome;
        return [[id, { outcome, ...defined({ resourceVersion }) }]];
      }),
    );
    this.#left = this.#left.filter(({ id }) => !settled.has(id));
    this.#isEmpty = await store.settle(key, holder, { verdicts: settled, plans: this.#open });
    for (const [id, { outcome }] of settled) {
      const createdAtMs = left.get(id);
      if (createdAtMs !== undefined && isWritten(outcome)) onLanded(nowMs() - createdAtMs);
    }
  }
}

/** True if the plan would make a change after its deadline. */
function isLate({ verdicts }: Plan, part: readonly BatchMutation[], nowMs: number): boolean {
  return part.some((mutation, at) => {
    const outcome = verdicts[at]?.[1].outcome;
    return outcome !== undefined && isWritten(outcome) && hasExpired(mutation, nowMs);
  });
}

function lostVerdict(object: JsonObject | undefined): Verdict {
  const unknown = "while the mutation was applied; it may have been changed before";
  return object === undefined
    ? failed("not_found", `the object was deleted ${unknown}`)
    : failed("replaced", `the object was deleted and recreated ${unknown}`);
}

function baseOf(object: JsonObject): NonNullable<Plan["base"]> {
  const { uid } = metadataOf(object);
  return { uid: typeof uid === "string" ? uid : "", resourceVersion: versionOf(object) ?? "" };
}

function versionOf(object: JsonObject): string | undefined {
  const { resourceVersion } = metadataOf(object);
  return typeof resourceVersion === "string" ? resourceVersion : undefined;
}
