import * as fc from "fast-check";
import { jsonEquals } from "@konverge/core";
import type { RedisClient } from "@konverge/redis";
import { planResume } from "../../../libs/workflow/src/store/plan-resume.ts";
import { createRedisRunStore } from "../../../libs/workflow/src/store/redis-run-store.ts";
import type { Held } from "../../../libs/workflow/src/store/run-journal-store.ts";
import { runNames } from "../../../libs/workflow/src/store/run-names.ts";
import type { RunStore } from "../../../libs/workflow/src/store/run-store.ts";

const ref = (id: string) => ({ workflow: "w", id });
const failed = { code: "step_failed", message: "no" };

export function openStore(redis: RedisClient, prefix: string): RunStore {
  return createRedisRunStore({
    call: (run) => run(redis),
    prefix,
    cluster: "c",
    retentionMs: 3_600_000,
  });
}

const GROUPS = ["", "acme"];
const IDS = ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"];
/** Runs below one with the same key, and one below a run with another key. */
const PARENTS: Readonly<Record<string, string>> = { r1: "r2", r6: "r2", r7: "r6" };
const idOf = fc.constantFrom(...IDS);
/** Random starts, executions and operator actions. */
export const fleetSteps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    { weight: 2, arbitrary: fc.record({ op: fc.constant("start"), id: idOf }) },
    {
      weight: 10,
      arbitrary: fc.record({
        op: fc.constant("execute"),
        id: idOf,
        end: fc.constantFrom("done", "failed", "step", "step", "block", "continue", "die", "undo"),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        op: fc.constantFrom("cancel", "terminate", "pause", "resume", "retry"),
        id: idOf,
      }),
    },
    { weight: 1, arbitrary: fc.record({ op: fc.constant("sweep") }) },
    {
      weight: 1,
      arbitrary: fc.record({ op: fc.constant("deploy"), slots: fc.constantFrom(1, 1, 2) }),
    },
  ),
  { minLength: 40, maxLength: 80 },
);
interface Step {
  readonly op: string;
  readonly id?: string;
  readonly end?: string;
  readonly slots?: number;
}

/** A fleet whose workers execute runs in a random order, and die in some of them. */
export class SlotFleet {
  readonly store: RunStore;
  readonly #redis: RedisClient;
  readonly #prefix: string;
  slots = 1;
  #lease = 0;
  #deploys = 0;
  /** Number of holders at the last check, with the runs in their slots, by group. */
  readonly #held = new Map<string, number>();
  /** Number of cancelled runs that have entered since then, by group. */
  readonly #ending = new Map<string, number>();
  /** Runs whose function has been called. */
  readonly #begun = new Set<string>();

  constructor(redis: RedisClient, prefix: string) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.store = openStore(redis, prefix);
  }

  async apply({ op, id = "", end = "", slots = 1 }: Step): Promise<void> {
    const { store } = this;
    switch (op) {
      case "start": {
        const parent = PARENTS[id];
        const isBelow = parent !== undefined && this.#begun.has(parent);
        const above = isBelow ? { parent: { ...ref(parent), step: id } } : {};
        await store.start({ ...ref(id), version: 1, input: null, ...above });
        return;
      }
      case "execute":
        return await this.execute(id, end);
      case "cancel":
        await store.cancel(ref(id), {}, { resumes: true });
        return;
      case "terminate":
        await store.terminate(ref(id), {});
        return;
      case "pause":
        await store.pause("w", [id], { request: {} });
        return;
      case "resume":
        await store.resume("w", [id]);
        return;
      case "retry":
        return await this.#retry(id);
      case "sweep":
        await store.overdue("w");
        return;
      case "deploy":
        return await this.deploy(slots);
    }
  }

  /** Starts all runs with one slot per group. */
  async begin(): Promise<void> {
    await this.deploy(1);
    for (const id of IDS) {
      await this.apply({ op: "start", id });
      await this.apply({ op: "execute", id, end: "step" });
    }
  }

  async deploy(runs: number): Promise<void> {
    this.slots = runs;
    const code = { version: 1, accepts: [], concurrency: { runs } };
    await this.store.announce("w", `worker ${(this.#deploys += 1)}`, code);
  }

  async execute(id: string, end: string): Promise<void> {
    const { store } = this;
    this.#lease += 1;
    const held = await store.claim(ref(id), { lease: this.#lease, owner: `o${this.#lease}` });
    if (held.kind !== "held") return;
    const slot = { slots: 1, group: groupOf(id) };
    const entered = held.hasSlot === true ? "entered" : await store.enter(held, slot);
    if (entered === "waiting") return;
    if (entered === "cancelled") {
      await store.leave(held, { kind: "cancelled", error: failed });
      return;
    }
    if (held.run.cancel !== undefined && held.steps.size > 0 && held.hasSlot !== true) {
      this.#ending.set(slot.group, (this.#ending.get(slot.group) ?? 0) + 1);
    }
    this.#begun.add(id);
    await this.#end(held, end);
  }

  async #end(held: Held, end: string): Promise<void> {
    const { store } = this;
    switch (end) {
      case "done":
        await store.leave(held, { kind: "done", result: 1 });
        return;
      case "failed":
        await store.leave(held, { kind: "failed", error: failed });
        return;
      case "undo":
        await store.leave(held, {
          kind: "compensating",
          failing: { status: "failed", error: failed },
        });
        return;
      case "continue":
        await store.leave(held, { kind: "continued", input: 1 });
        return;
      case "block":
        await store.leave(held, { kind: "blocked", reason: "no", untilMs: 1 });
        return;
      case "step":
        await store.commit(held, `s${held.epoch}`, { kind: "step", value: 1 });
        await store.leave(held, { kind: "waiting" });
    }
  }

  async #retry(id: string): Promise<void> {
    const { store } = this;
    const { epoch = 0 } = (await store.retryFacts(ref(id))) ?? {};
    const plan = planResume(await store.steps(ref(id)));
    if (plan.kind === "undone") return;
    const { drop, kept } = plan;
    await store.reopen(ref(id), { epoch, drop, kept, author: {} });
  }

  async holders(group: string): Promise<string[]> {
    const { statuses } = runNames(this.#prefix, "c", "w");
    return await this.#redis.smembers(`${statuses}slots/${group}`);
  }

  /** No run that has begun is without a slot, no ended one holds one, and no run waits while a slot is free. */
  async check(): Promise<void> {
    const active = await this.#active();
    const { statuses } = runNames(this.#prefix, "c", "w");
    const rests = await this.#redis.smembers(`${statuses}slotRests`);
    for (const group of GROUPS) {
      const holders = await this.holders(group);
      const own = active.filter(({ id }) => groupOf(id) === group);
      const ids = own.map(({ id }) => id);
      const waiting = own.filter(({ slotWait }) => slotWait !== undefined);
      const suspended = own.filter(({ id, status }) => this.#begun.has(id) && status === "waiting");
      const line = await this.#redis.zrange(`${statuses}slotLine/${group}`, "0", "-1");
      const below = await this.#below(holders);
      const most = (this.#held.get(group) ?? 0) + (this.#ending.get(group) ?? 0);
      this.#held.set(group, holders.length + below.length);
      this.#ending.delete(group);
      // A lower number ends no run. Runs that outlive the run in whose slot they are, and retried runs that are cancelled, take one.
      assertThat(holders.length <= Math.max(this.slots, most), "more holders than slots");
      assertThat(
        below.every((id) => ids.includes(id)),
        "an ended run, or one with another key, is in a slot",
      );
      assertThat(
        holders.every((id) => ids.includes(id)),
        "an ended run holds a slot",
      );
      assertThat(
        suspended.every(({ id }) => [...holders, ...below].includes(id)),
        "a run that has begun holds no slot",
      );
      assertThat(
        waiting.every(({ status }) => status === "queued"),
        "a waiting run is not queued",
      );
      assertThat(
        jsonEquals(line.toSorted(), waiting.map(({ id }) => id).toSorted()),
        "the line has other runs than those that wait",
      );
      const isFree = waiting.length > 0 && holders.length < this.slots;
      assertThat(!isFree || rests.includes(group), "a run waits while a slot is free");
    }
  }

  /** The runs in the slots of these holders. */
  async #below(holders: readonly string[]): Promise<readonly string[]> {
    const { statuses } = runNames(this.#prefix, "c", "w");
    const below = holders.map((id) => this.#redis.smembers(`${statuses}slotBelow/${id}`));
    return (await Promise.all(below)).flat();
  }

  /** Lets all runs end. Nothing of the slots may be left. */
  async drain(): Promise<void> {
    for (let round = 0; round < 60; round += 1) {
      await this.store.overdue("w");
      const ids = (await this.#active()).map(({ id }) => id);
      if (ids.length === 0) break;
      await this.store.resume("w", ids);
      for (const id of ids) await this.execute(id, "done");
    }
    const left = await this.#active();
    assertThat(left.length === 0, `${left.map(({ id }) => id).join(", ")} never ended`);
    const { statuses } = runNames(this.#prefix, "c", "w");
    const kept = GROUPS.flatMap((group) => [
      `${statuses}slots/${group}`,
      `${statuses}slotLine/${group}`,
    ]);
    const below = IDS.map((id) => `${statuses}slotBelow/${id}`);
    const count = await this.#redis.exists(...kept, ...below, `${statuses}slotLines`);
    assertThat(count === 0, "a slot or place is left");
  }

  async #active() {
    const { runs } = await this.store.list("w", { limit: 100, filter: {} });
    return runs.filter((run) => run.endedAtMs === undefined);
  }
}

function groupOf(id: string): string {
  return id === "r0" || id === "r1" ? "acme" : "";
}

function assertThat(holds: boolean, problem: string): void {
  if (!holds) throw new Error(problem);
}
