import { randomInt } from "node:crypto";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { afterAll, afterEach, expect, test } from "vitest";
import type { NamedLimits } from "@konverge/core";
import { openGuardControl, openLimits } from "@konverge/guard";
import { Child } from "../../support/child.ts";
import { until } from "../../support/until.ts";
import { limitNames } from "../../../libs/guard/src/limits/limit-names.ts";
import type { LimitChildConfig, LimitChildWord } from "./limit-child.ts";
import { PATIENT_MS } from "../../support/patient.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const url = process.env["REDIS_URL"] ?? "";
const redis = new Redis(url, { replyMapping: "legacy" });
afterAll(() => redis.quit());
/** Tokens by which the clocks of Redis and of the machine may differ during the test. */
const CLOCK_TOLERANCE = 1;

const CHILD = fileURLToPath(new URL("limit-child.ts", import.meta.url));

interface Use {
  /** Redis has given the permit between these two. */
  readonly askedMs: number;
  readonly fromMs: number;
  untilMs: number;
}

/** Workers in processes of their own, and the permits that they report. */
class LimitFleet {
  readonly prefix = `limit-fleet-${process.pid}-${Date.now()}-${randomInt(1e6)}`;
  readonly uses = new Map<string, Use>();
  readonly children = new Map<string, Child>();
  readonly #limits: NamedLimits;

  constructor(limits: NamedLimits) {
    this.#limits = limits;
  }

  start(workerId: string, { lanes = 4, holdMs = 5 } = {}): void {
    const config: LimitChildConfig = {
      redisUrl: url,
      prefix: this.prefix,
      workerId,
      limits: this.#limits,
      lanes,
      holdMs,
    };
    const child = new Child([CHILD, JSON.stringify(config)], { ipc: true });
    child.process.on("message", ({ kind, permit, atMs, askedMs = 0 }: LimitChildWord) => {
      if (kind === "held") this.uses.set(permit, { askedMs, fromMs: atMs, untilMs: Infinity });
      else (this.uses.get(permit) ?? { untilMs: 0 }).untilMs = atMs;
    });
    this.children.set(workerId, child);
  }

  async kill(workerId: string): Promise<void> {
    await this.children.get(workerId)?.kill();
    this.children.delete(workerId);
    const atMs = Number(process.hrtime.bigint()) / 1e6;
    for (const [permit, use] of this.uses) {
      if (permit.startsWith(`${workerId}/`)) use.untilMs = Math.min(use.untilMs, atMs);
    }
  }

  /** The most permits in use at one moment. */
  most(): number {
    const changes = [...this.uses.values()]
      .flatMap(({ fromMs, untilMs }) => [
        { atMs: fromMs, by: 1 },
        { atMs: untilMs, by: -1 },
      ])
      .toSorted((a, b) => a.atMs - b.atMs || a.by - b.by);
    let used = 0;
    return Math.max(0, ...changes.map(({ by }) => (used += by)));
  }

  async stop(): Promise<void> {
    await Promise.all([...this.children.keys()].map((worker) => this.kill(worker)));
  }
}

const fleets: LimitFleet[] = [];
afterEach(async () => {
  await Promise.all(fleets.splice(0).map((fleet) => fleet.stop()));
});
const fleetOf = (limits: NamedLimits): LimitFleet => {
  const fleet = new LimitFleet(limits);
  fleets.push(fleet);
  return fleet;
};

/** Does as if the time of the leases of all slots had passed. Returns their number. */
async function endLeases({ prefix }: LimitFleet): Promise<number> {
  const { slots } = limitNames(prefix, "api", "");
  const holders = await redis.zrange(slots, "0", "-1");
  for (const holder of holders) await redis.zadd(slots, "1", holder);
  return holders.length;
}

test(`killed workers never lead to more holders than slots, and their slots return (seed ${seed})`, async () => {
  const fleet = fleetOf({ api: { concurrency: 3 } });
  for (const worker of ["a", "b", "c"]) fleet.start(worker);
  const used = (count: number) =>
    until(`${count} permits`, () => fleet.uses.size >= count || undefined);
  await used(50);
  const victim = [...fleet.children.keys()][seed % 3] ?? "";
  await fleet.kill(victim);
  fleet.start("d");
  await fleet.stop();
  expect(await endLeases(fleet)).toBeLessThanOrEqual(3);
  fleet.start("e");
  fleet.start("f");
  await used(fleet.uses.size + 100);
  expect(fleet.most()).toBeLessThanOrEqual(3);
  const reported = fleet.uses.size;
  const control = openGuardControl({
    redis: { url, deadlineMs: PATIENT_MS },
    prefix: fleet.prefix,
  });
  const [view] = await control.limits();
  await control.close();
  expect(view).toMatchObject({ name: "api", options: { concurrency: 3 }, keys: [] });
  expect(view?.permits).toBeGreaterThanOrEqual(reported);
  expect(view?.held).toBeLessThanOrEqual(3);
});

test("a stopped worker loses its slots, and its bodies are aborted when it continues", async () => {
  const fleet = fleetOf({ api: { concurrency: 1 } });
  fleet.start("a", { lanes: 1, holdMs: 600_000 });
  await until("a holds the slot", () => fleet.uses.size === 1);
  const stopped = fleet.children.get("a");
  stopped?.process.kill("SIGSTOP");
  if (!isLongRun) await endLeases(fleet);
  fleet.start("b", { lanes: 1, holdMs: 600_000 });
  await until("b gets the slot", () => fleet.uses.size === 2);
  stopped?.process.kill("SIGCONT");
  await until("a is aborted", () => (fleet.uses.get("a/0/0")?.untilMs ?? Infinity) < Infinity);
  expect(fleet.uses.get("b/0/0")?.untilMs).toBe(Infinity);
});

test("processes together stay below the rate of a limit", async () => {
  const fleet = fleetOf({ api: { rate: 200, burst: 10 } });
  for (const worker of ["a", "b", "c"]) fleet.start(worker, { holdMs: 0 });
  await until("300 permits", () => fleet.uses.size >= 300);
  await fleet.stop();
  const uses = [...fleet.uses.values()].toSorted((one, other) => one.fromMs - other.fromMs);
  // Of each window, only the permits count that were both requested and received in it.
  const excess = uses.map(({ askedMs: beginMs }) => {
    let count = 0;
    return uses.reduce((most, { askedMs, fromMs }) => {
      if (askedMs < beginMs) return most;
      count += 1;
      return Math.max(most, count - 0.2 * (fromMs - beginMs));
    }, 0);
  });
  expect(Math.max(...excess)).toBeLessThanOrEqual(10 + CLOCK_TOLERANCE);
});

test("a request ends with its signal while Redis is unavailable", async () => {
  const limits = openLimits({
    redis: { url: "redis://127.0.0.1:1" },
    prefix: "away",
    limits: { api: { concurrency: 1 } },
    workerId: "a",
    wake: async () => true,
    onError: () => undefined,
  });
  const stop = new AbortController();
  const request = { name: "api", waiter: "a", inPlaceMs: 0, signal: stop.signal };
  const taken = limits.take(request);
  stop.abort(new Error("the worker stops"));
  await expect(taken).rejects.toThrow("the worker stops");
  await limits.close();
});
