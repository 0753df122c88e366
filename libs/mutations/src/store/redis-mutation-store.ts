import {
  defined,
  formatKey,
  KonvergeError,
  MUTATION_OUTCOMES,
  parseKey,
  type ObjectKey,
} from "@konverge/core";
import type { ScanOptions } from "@konverge/queue";
import { runScript, type RedisClient } from "@konverge/redis";
import type { OpenKind } from "../change/open-kind.ts";
import { mutationNames, type MutationNames } from "./mutation-names.ts";
import { parseMutation, textOf, viewOf } from "./mutation-rows.ts";
import type {
  CancelAnswer,
  MutationCounts,
  MutationPage,
  MutationQuery,
  MutationView,
  NewMutation,
  Submitted,
  Verdict,
} from "./mutation-store.ts";
import { parsePlans, type Plan } from "./plan.ts";
import { announceKindsScript } from "./scripts/announce-kinds.ts";
import { cancelScript } from "./scripts/cancel.ts";
import { journalScript } from "./scripts/journal.ts";
import { listScript } from "./scripts/list.ts";
import { settleScript } from "./scripts/settle.ts";
import { submitScript } from "./scripts/submit.ts";
import { sweepScript } from "./scripts/sweep.ts";
import { takeScript } from "./scripts/take.ts";
import { isSameMutation, withoutValues } from "./without-values.ts";

/** The queue of the worker that applies mutations. */
export const MUTATIONS = "mutations";
const MAX_PER_CALL = 100;
const MAX_CALL_CHARS = 1_048_576;
const MAX_SWEPT = 500;
const DEFAULT_LISTED = 50;
const MAX_LISTED = 500;
/** Calls for one page of a list that few mutations match. */
const MAX_PAGE_CALLS = 20;
const EXPIRY: Omit<Verdict, "outcome"> = {
  error: { code: "expired", message: "the deadline passed before the mutation was applied" },
};

export interface RedisMutationStoreOptions {
  /** Makes a call, with the caller's policy for an unavailable Redis. */
  readonly call: <T>(run: (redis: RedisClient) => Promise<T>) => Promise<T>;
  readonly prefix: string;
  readonly cluster: string;
  /** How long a mutation is kept after its end, in ms. */
  readonly retentionMs: number;
}

/** The batch of an object, held by one worker. */
export interface Batch {
  /** True if an earlier holder has taken it, and may have sent its plans. */
  readonly isInherited: boolean;
  /** By the clock of Redis. */
  readonly takenAtMs: number;
  /** Random id of this Redis. */
  readonly installation: string;
  readonly plans: readonly Plan[];
  readonly mutations: readonly BatchMutation[];
}

export interface BatchMutation extends NewMutation {
  readonly createdAtMs: number;
}

/** Another worker has taken the object. */
export class LaneFencedError extends Error {}

/** The mutations of one cluster in Redis. */
export class RedisMutationStore {
  readonly names: MutationNames;
  readonly #options: RedisMutationStoreOptions;

  constructor(options: RedisMutationStoreOptions) {
    this.#options = options;
    this.names = mutationNames(options.prefix, options.cluster);
  }

  /** The key of an object in the queue of mutations. */
  keyOf({ group, resource, namespace, name }: NonNullable<MutationQuery["object"]>): ObjectKey {
    const { cluster } = this.#options;
    return { controller: MUTATIONS, cluster, group, resource, name, ...defined({ namespace }) };
  }

  async submit(mutations: readonly NewMutation[]): Promise<readonly Submitted[]> {
    const items = mutations.map((mutation) => ({ mutation, text: textOf(mutation) }));
    const submitted: Submitted[] = [];
    for (const part of partsOf(items)) submitted.push(...(await this.#submitPart(part)));
    return submitted;
  }

  async #submitPart(items: readonly Item[]): Promise<readonly Submitted[]> {
    const { root, sequence } = this.names;
    const each = items.map(({ mutation, text }) => ({
      id: mutation.id,
      text,
      kept: mutation.sensitive === true ? textOf(withoutValues(mutation)) : "",
      group: groupOf(mutation),
      object: formatKey(this.keyOf(mutation.object)),
      deadlineMs: mutation.deadlineMs ?? 0,
    }));
    const answers = await this.#options.call((redis) =>
      runScript(redis, submitScript, { keys: { sequence }, args: { root }, each }),
    );
    return items.map(({ mutation }, at): Submitted => {
      const { id } = mutation;
      const answer = answers[at] ?? "";
      if (answer === "created") return { id, created: true };
      if (answer === "full") return { id, refused: "queue_full" };
      if (answer === "memory") return { id, refused: "memory_full" };
      return isSameMutation(answer, mutation)
        ? { id, created: false }
        : { id, refused: "id_conflict" };
    });
  }

  async get(ids: readonly string[]): Promise<readonly (MutationView | undefined)[]> {
    return await this.#options.call(async (redis) => {
      const fields = ["text", "state", "createdAt", "endedAt", "result"];
      const rows = await Promise.all(
        ids.map((id) => redis.hmget(this.names.mutation(id), ...fields)),
      );
      return rows.map(([text, state, createdAt, endedAt, result]) =>
        text && state && createdAt
          ? viewOf({ text, state, createdAt, endedAt: endedAt ?? "", result: result ?? "" })
          : undefined,
      );
    });
  }

  async list(
    { object, state, limit = DEFAULT_LISTED, cursor }: MutationQuery,
    { turn = (read) => read(), budgetMs = Infinity, onScanned }: ScanOptions = {},
  ): Promise<MutationPage> {
    if (!(Number.isSafeInteger(limit) && limit > 0 && limit <= MAX_LISTED)) {
      throw invalid("limit", `must be an integer from 1 to ${MAX_LISTED} (got ${limit})`);
    }
    if (cursor !== undefined && !/^\d{1,16}$/.test(cursor)) {
      throw invalid("cursor", "is not a cursor of this list; use the one of the previous page");
    }
    const index =
      object === undefined ? this.names.index : this.names.of(formatKey(this.keyOf(object)));
    const mutations: MutationView[] = [];
    let before = cursor === undefined ? "+inf" : `(${cursor}`;
    const startedAtMs = performance.now();
    for (let calls = 0; calls < MAX_PAGE_CALLS && mutations.length < limit; calls += 1) {
      if (calls > 0 && performance.now() - startedAtMs > budgetMs) break;
      const args = {
        root: this.names.root,
        before,
        state: state ?? "",
        limit: limit - mutations.length,
      };
      const { rows, next, scanned } = await turn(() =>
        this.#options.call((redis) => runScript(redis, listScript, { keys: { index }, args })),
      );
      onScanned?.(scanned);
      mutations.push(...rows.map(viewOf));
      if (next === "") return { mutations };
      before = next;
    }
    return { mutations, cursor: before.slice(1) };
  }

  async cancel(id: string, by: string | undefined): Promise<CancelAnswer> {
    const message = by === undefined ? "cancelled" : `cancelled by ${by}`;
    const result = JSON.stringify({ error: { code: "cancelled", message } });
    const { root, objects } = this.names;
    return await this.#options.call((redis) =>
      runScript(redis, cancelScript, { keys: { objects }, args: { root, id, result } }),
    );
  }

  /** Takes the object for `holder`, and returns its batch; undefined if it has no mutations. */
  async take(object: string, holder: string): Promise<Batch | undefined> {
    const { root, objects } = this.names;
    const keys = { lane: this.names.lane(object), waiting: this.names.waiting(object), objects };
    const stored = await this.#options.call((redis) =>
      runScript(redis, takeScript, { keys, args: { root, object, holder } }),
    );
    if (stored === undefined) return undefined;
    const { mutations, plans, ...batch } = stored;
    return {
      ...batch,
      plans: parsePlans(plans),
      mutations: mutations.map(({ text, createdAtMs }) => ({
        ...parseMutation(text),
        createdAtMs,
      })),
    };
  }

  /** Stores the plans that may be written from now on. @throws LaneFencedError if the holder has no batch of the object (any more) */
  async journal(object: string, holder: string, plans: readonly Plan[]): Promise<void> {
    const keys = { lane: this.names.lane(object) };
    const args = { holder, plans: JSON.stringify(plans) };
    const answer = await this.#options.call((redis) =>
      runScript(redis, journalScript, { keys, args }),
    );
    if (answer === "fenced") throw new LaneFencedError(`another worker has taken ${object}`);
  }

  /**
   * Ends mutations of the batch. `plans`: those of the rest that may still be written. Returns true if the object has no more
   * mutations. @throws LaneFencedError
   */
  async settle(
    object: string,
    holder: string,
    {
      verdicts,
      plans,
    }: { readonly verdicts: ReadonlyMap<string, Verdict>; readonly plans: readonly Plan[] },
  ): Promise<boolean> {
    const { root, objects } = this.names;
    const keys = { lane: this.names.lane(object), waiting: this.names.waiting(object), objects };
    const each = [...verdicts].map(([id, { outcome, ...result }]) => ({
      id,
      outcome,
      result: JSON.stringify(result),
    }));
    const args = { root, object, holder, plans: JSON.stringify(plans) };
    const answer = await this.#options.call((redis) =>
      runScript(redis, settleScript, { keys, args, each }),
    );
    if (answer === "fenced") throw new LaneFencedError(`another worker has taken ${object}`);
    return answer === "empty";
  }

  /**
   * Ends expired mutations, forgets old ones, and returns objects whose request may be lost; up to 500 each. `isMore`: a further
   * call finds more.
   */
  async sweep(): Promise<{ readonly due: readonly ObjectKey[]; readonly isMore: boolean }> {
    const { root, objects, ended, deadlines } = this.names;
    const { retentionMs } = this.#options;
    const args = { root, most: MAX_SWEPT, retentionMs, expiry: JSON.stringify(EXPIRY) };
    const { due, isMore } = await this.#options.call((redis) =>
      runScript(redis, sweepScript, { keys: { objects, ended, deadlines }, args }),
    );
    return { due: due.map(parseKey), isMore };
  }

  async counts(): Promise<MutationCounts> {
    const { sequence, index, ended, outcomes } = this.names;
    const [accepted, kept, over, counted] = await this.#options.call((redis) =>
      Promise.all([
        redis.get(sequence),
        redis.zcard(index),
        redis.zcard(ended),
        redis.hgetall(outcomes),
      ]),
    );
    return {
      accepted: Number(accepted ?? 0),
      // The reads are separate calls, so one may have ended between them.
      waiting: Math.max(0, kept - over),
      ended: Object.fromEntries(
        MUTATION_OUTCOMES.map((outcome) => [outcome, Number(counted[outcome] ?? 0)]),
      ) as MutationCounts["ended"],
    };
  }

  async announce(kinds: readonly OpenKind[]): Promise<void> {
    const each = kinds.map((kind) => ({
      name: `${kind.resource}.${kind.group}`,
      text: JSON.stringify(kind),
    }));
    await this.#options.call((redis) =>
      runScript(redis, announceKindsScript, { keys: { kinds: this.names.kinds }, each }),
    );
  }

  async openKinds(): Promise<readonly OpenKind[]> {
    const stored = await this.#options.call((redis) => redis.hgetall(this.names.kinds));
    return Object.entries(stored)
      .toSorted(([one], [other]) => one.localeCompare(other))
      .map(([, text]) => JSON.parse(text.slice(text.indexOf(" ") + 1)) as OpenKind);
  }
}

interface Item {
  readonly mutation: NewMutation;
  readonly text: string;
}

function partsOf(items: readonly Item[]): Item[][] {
  const parts: Item[][] = [];
  let chars = Infinity;
  for (const item of items) {
    const last = parts.at(-1);
    chars += item.text.length;
    if (last === undefined || last.length >= MAX_PER_CALL || chars > MAX_CALL_CHARS) {
      parts.push([item]);
      chars = item.text.length;
    } else {
      last.push(item);
    }
  }
  return parts;
}

/** Mutations of one group can be one write: drafts of one version of the kind, to one address. An apply is a write of its own. */
function groupOf({ id, object, subresource, changes }: NewMutation): string {
  return changes[0]?.kind === "apply" ? `apply ${id}` : `${object.version} ${subresource ?? ""}`;
}

function invalid(field: string, detail: string): KonvergeError {
  return new KonvergeError("invalid_request", `${field} ${detail}`, {
    issues: [{ pointer: `/${field}`, detail }],
  });
}
