import {
  AGING_MS,
  CAP_MS,
  CONTROLLERS,
  COUNTER_NAMES,
  LEASE_MS,
  modeOf,
  PLAIN_NAMES,
} from "./fleet-contract.ts";
import { findContention } from "./fleet-invariants.ts";
import { nowUs, readJournals } from "./fleet-journal.ts";
import type { Fleet } from "./fleet.ts";
import { findLeftovers } from "./fleet-leftovers.ts";
import type { FleetLoad } from "./fleet-load.ts";
import { unlessRedisIsLate, until } from "../support/until.ts";

/**
 * The longest wait of a key after recovery: the backoff's cap and the aging bound, the expiry of a lease, BullMQ's check for
 * stalled jobs, and a generous allowance for a busy machine.
 */
const LONGEST_WAIT_MS: number = CAP_MS + AGING_MS + 2 * LEASE_MS + 90_000;

/**
 * Waits until every acknowledged request is finished and nothing is left over. Returns what is missing after the time limit.
 */
export async function settle(fleet: Fleet, load: FleetLoad): Promise<string[]> {
  const untilMs = performance.now() + LONGEST_WAIT_MS;
  for (;;) {
    const missing = (await unlessRedisIsLate(() => findMissing(fleet, load))) ?? [
      "Redis did not respond in time",
    ];
    if (missing.length === 0 || performance.now() > untilMs) return missing;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function findMissing(fleet: Fleet, { acknowledged }: FleetLoad): Promise<string[]> {
  const missing: string[] = [];
  for (const controller of CONTROLLERS) {
    const queue = fleet.queue(controller);
    const last = new Map(
      acknowledged.filter((one) => one.controller === controller).map((one) => [one.key, one.id]),
    );
    for (const id of last.values()) {
      const { phase } = await queue.getRequest(id);
      if (phase !== "finished") missing.push(`waits: request ${id} is ${phase}`);
    }
    const { waiting, active, delayed } = await queue.counts();
    if (waiting + active + delayed > 0)
      missing.push(
        `left: ${controller} has ${waiting} waiting, ${active} active, ${delayed} delayed`,
      );
  }
  return [...missing, ...(await findLeftovers(fleet)).map((what) => `left: ${what}`)];
}

/** Waits until the initial resync is done and all keys have run. Returns the same as `settle`. */
export async function settleFirstRuns(fleet: Fleet, load: FleetLoad): Promise<string[]> {
  const keys = COUNTER_NAMES.length + PLAIN_NAMES.length;
  const begun = () =>
    new Set(readJournals(fleet.journals).flatMap(({ kind, id }) => (kind === "begin" ? [id] : [])));
  await until("every key has run", () => begun().size === keys, LONGEST_WAIT_MS);
  return await settle(fleet, load);
}

/** Requests all writers of one object at the same time, repeatedly and without faults. */
export async function contend(fleet: Fleet, load: FleetLoad, rounds: number): Promise<string[]> {
  const sinceUs = nowUs();
  const names = COUNTER_NAMES.filter((name) => modeOf(name) === "lane");
  for (let round = 0; round < rounds; round++) {
    await Promise.all(names.map((name) => load.request("counter", name, "interactive")));
    const missing = await settle(fleet, load);
    if (missing.length > 0) return missing;
  }
  return findContention(fleet, sinceUs);
}
