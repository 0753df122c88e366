import {
  AGEING_MS,
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
import { until } from "../support/until.ts";

/**
 * Longest wait of any key once everything has healed: its ladder's cap and the ageing bound; a lease to run out and BullMQ's
 * look for what has stalled; and, generously, what a crowded machine needs for all of that.
 */
const LONGEST_WAIT_MS: number = CAP_MS + AGEING_MS + 2 * LEASE_MS + 20_000;

/**
 * Waits until every acknowledged request is finished and nothing is left over. Answers what is still missing when the time
 * is up, or nothing.
 */
export async function settle(fleet: Fleet, load: FleetLoad): Promise<string[]> {
  const untilMs = performance.now() + LONGEST_WAIT_MS;
  for (;;) {
    const missing = await findMissing(fleet, load);
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

/** Waits until the elected producers have made their first requests and all keys have run. Answers as `settle`. */
export async function settleFirstRuns(fleet: Fleet, load: FleetLoad): Promise<string[]> {
  const keys = COUNTER_NAMES.length + PLAIN_NAMES.length;
  const begun = () =>
    new Set(readJournals(fleet.journals).flatMap(({ kind, id }) => (kind === "begin" ? [id] : [])));
  await until("every key has run", () => begun().size === keys, LONGEST_WAIT_MS);
  return await settle(fleet, load);
}

/** All writers of one object at once, again and again, with nothing in their way. */
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
