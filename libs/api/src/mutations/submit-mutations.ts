import { randomUUID } from "node:crypto";
import type { MutationDetail, MutationResults, SubmitMutation } from "@konverge/contracts";
import { ensureError, isKonvergeError, KonvergeError, namespaceSegment } from "@konverge/core";
import { MUTATIONS } from "@konverge/mutations";
import type {
  Mutations,
  MutationView,
  NewMutation,
  OpenKind,
  Submitted,
} from "@konverge/mutations";
import { digest } from "../access/digest.ts";
import { jsonResponse } from "../http/json-response.ts";
import { problemOf } from "../http/problem.ts";
import type { RouteInput } from "../http/route.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { preferredWaitMs } from "../queues/wait-for-end.ts";
import { formatMutationId, mutationResult, mutationView } from "./mutation-view.ts";
import { prepareMutation } from "./prepare-mutation.ts";

type Asked = Pick<
  RouteInput<string, unknown, unknown>,
  "caller" | "context" | "headers" | "openWait" | "audit"
>;

const ID_CHARS = 32;

/** Submits one mutation, and waits for its end if the caller prefers it. */
export async function submitOne(
  access: QueueAccess,
  body: SubmitMutation,
  { caller, context, headers, openWait, audit }: Asked,
): Promise<MutationDetail | Response> {
  const { cluster } = body;
  const waitMs = preferredWaitMs(context);
  using wait = openWait(waitMs);
  const { mutations, kinds } = await access.mutations(cluster);
  const id = idOf(body, { callerId: caller.id, key: context.req.header("idempotency-key"), at: 0 });
  const mutation = prepareMutation(body, { caller, kinds, id, standard: "interactive" });
  const [submitted] = await mutations.submit([mutation]);
  const refusal = refusalOf(submitted, mutation);
  if (refusal !== undefined) throw refusal;
  audit(noteOf(cluster, mutation));
  headers["location"] = `/v1/mutations/${encodeURIComponent(formatMutationId(cluster, id))}`;
  if (waitMs > 0) headers["preference-applied"] = `wait=${waitMs / 1_000}`;
  const view = await wait.until({
    id: `mutation ${cluster}/${id}`,
    read: () => readMutation(mutations, id),
    isEnd: hasEnded,
  });
  const detail = mutationView(view, cluster, kinds);
  return hasEnded(view) ? jsonResponse(detail, 200, headers) : detail;
}

/** Submits many mutations, with one result each. Refused ones do not affect the others. */
export async function submitMany(
  access: QueueAccess,
  bodies: readonly SubmitMutation[],
  { caller, context, headers, openWait, audit }: Asked,
): Promise<MutationResults | Response> {
  const waitMs = preferredWaitMs(context);
  using wait = openWait(waitMs);
  const key = context.req.header("idempotency-key");
  const batch = new Batch(bodies.length);
  for (const [cluster, indexes] of indexesByCluster(bodies)) {
    await batch.refusing(indexes, async () => {
      const { mutations, kinds } = await access.mutations(cluster);
      const prepared = indexes.flatMap((index) => {
        const body = bodies[index];
        if (body === undefined) return [];
        const id = idOf(body, { callerId: caller.id, key, at: index });
        return batch.preparing(index, () =>
          prepareMutation(body, { caller, kinds, id, standard: "event" }),
        );
      });
      const made = prepared.map(({ mutation }) => mutation);
      const answers = made.length === 0 ? [] : await mutations.submit(made);
      for (const [at, { index, mutation }] of prepared.entries()) {
        const refusal = refusalOf(answers[at], mutation);
        if (refusal === undefined) {
          batch.accept(index, { cluster, mutations, kinds, id: mutation.id });
          audit(noteOf(cluster, mutation));
        } else batch.refuse(index, refusal);
      }
    });
  }
  batch.throwIfAllRefused();
  const { isDone, results } = await wait.until({
    id: `batch ${randomUUID()}`,
    read: async () => ({ isDone: await batch.refresh(), results: batch.results() }),
    isEnd: (state) => state.isDone,
  });
  if (waitMs > 0) headers["preference-applied"] = `wait=${waitMs / 1_000}`;
  return isDone ? jsonResponse(results, 200, headers) : results;
}

interface Accepted {
  readonly cluster: string;
  readonly mutations: Mutations;
  readonly kinds: readonly OpenKind[];
  readonly id: string;
  view?: MutationView;
}

/** The results of a batch by the index of their item. */
class Batch {
  readonly #accepted = new Map<number, Accepted>();
  readonly #refused = new Map<number, KonvergeError>();
  readonly #size: number;

  constructor(size: number) {
    this.#size = size;
  }

  accept(index: number, accepted: Accepted): void {
    this.#accepted.set(index, accepted);
  }

  refuse(index: number, error: KonvergeError): void {
    this.#refused.set(index, error);
  }

  /** Refuses all items of a cluster that cannot be reached. */
  async refusing(indexes: readonly number[], work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!isKonvergeError(error)) throw error;
      for (const index of indexes) if (!this.#accepted.has(index)) this.refuse(index, error);
    }
  }

  preparing(
    index: number,
    prepare: () => NewMutation,
  ): readonly { readonly index: number; readonly mutation: NewMutation }[] {
    try {
      return [{ index, mutation: prepare() }];
    } catch (error) {
      if (!isKonvergeError(error)) throw ensureError(error);
      this.refuse(index, error);
      return [];
    }
  }

  /** Every item failed because of Redis, not because of its content. */
  throwIfAllRefused(): void {
    const [first] = this.#refused.values();
    if (this.#refused.size === this.#size && first?.code === "redis_unavailable") throw first;
  }

  /** Reads the mutations that have not ended. Returns true if all have. */
  async refresh(): Promise<boolean> {
    const open = [...this.#accepted.values()].filter(({ view }) => !view || !hasEnded(view));
    const byCluster = Map.groupBy(open, ({ mutations }) => mutations);
    for (const [mutations, part] of byCluster) {
      const views = await mutations.get(part.map(({ id }) => id));
      for (const [at, accepted] of part.entries()) {
        const view = views[at];
        if (view !== undefined) accepted.view = view;
      }
    }
    return open.every(({ view }) => view !== undefined && hasEnded(view));
  }

  results(): MutationResults {
    const items = Array.from({ length: this.#size }, (_, index) => {
      const accepted = this.#accepted.get(index);
      if (accepted === undefined) {
        const error = this.#refused.get(index) ?? new KonvergeError("internal", "no result");
        return { error: problemOf(error) };
      }
      const { cluster, kinds, id, view } = accepted;
      if (view !== undefined) return mutationResult(view, cluster, kinds);
      return { id: formatMutationId(cluster, id), state: "waiting" as const };
    });
    return { accepted: this.#accepted.size, items };
  }
}

/** @throws KonvergeError `not_found` */
export async function readMutation(mutations: Mutations, id: string): Promise<MutationView> {
  const [view] = await mutations.get([id]);
  if (view !== undefined) return view;
  throw new KonvergeError("not_found", `mutation ${id} does not exist or was deleted`);
}

export function hasEnded({ state }: MutationView): boolean {
  return state !== "waiting" && state !== "applying";
}

function indexesByCluster(bodies: readonly SubmitMutation[]): Map<string, number[]> {
  return Map.groupBy(bodies.keys(), (index) => bodies[index]?.cluster ?? "");
}

/** A repeated request has the same IDs, even if the process died before it stored the response. */
function idOf(
  { id }: SubmitMutation,
  {
    callerId,
    key,
    at,
  }: { readonly callerId: string; readonly key: string | undefined; readonly at: number },
): string {
  if (id !== undefined) return id;
  if (key === undefined) return randomUUID();
  return digest(JSON.stringify(["mutation", callerId, key, at]))
    .toString("hex")
    .slice(0, ID_CHARS);
}

function refusalOf(
  submitted: Submitted | undefined,
  { id, object }: NewMutation,
): KonvergeError | undefined {
  if (submitted === undefined || !("refused" in submitted)) return undefined;
  if (submitted.refused === "id_conflict") {
    const detail = `a mutation with the ID "${id}" exists and has other content; use a new ID`;
    return new KonvergeError("mutation_mismatch", detail, {
      issues: [{ pointer: "/id", detail }],
    });
  }
  if (submitted.refused === "memory_full") {
    const detail =
      "the mutations of the cluster that have not ended use 256 MiB; retry when some of them have ended";
    return new KonvergeError("queue_full", detail, { retryAfterMs: 1_000 });
  }
  const detail = `10,000 mutations of ${object.kind} ${object.name} wait; retry when some of them have been applied`;
  return new KonvergeError("queue_full", detail, { retryAfterMs: 1_000 });
}

/** Mutations of one object, author and second share an entry. */
function noteOf(cluster: string, { object: { kind, namespace, name } }: NewMutation) {
  const place = { cluster, controller: MUTATIONS, namespace: namespaceSegment(namespace) };
  return { action: "mutate", ...place, name, filter: kind, count: 1 } as const;
}
