import { CONFIG_MAP } from "../bench/config-map.ts";
import { hotObject, LEASE_MS, MODES } from "./fleet-contract.ts";
import type { Fleet } from "./fleet.ts";
import { readJournals, type Journaled } from "./fleet-journal.ts";
import type { Acknowledged, FleetLoad, StrangerWrite } from "./fleet-load.ts";

/**
 * What must hold once everything has healed, whatever happened before. Each line is one violation; none means that all
 * promises were kept.
 *
 * - Overlap (P2): of two handlers of one key at the same time, the first must be fenced, and no key may be handed out again
 *   within the lease of an attempt that still runs, fenced or not.
 * - Commit (P8): an attempt whose handler another epoch overtook was refused by `end`.
 * - Whole run (P1): after each acknowledged request a handler began that came to an end which was stored.
 * - Timers: after each stored `requeueAfter` a handler of that key began.
 * - Exactly N (P3): the count of a hot object is the number of stamps in it, no two stamps have the same count, and every
 *   write that a handler was told of is there with its count. A stamp that no handler was told of is one of an attempt that
 *   began (its answer was lost, or its process died): it ran at least once, and its count is exact all the same. Strangers,
 *   who take no turns, count with them.
 */
export async function findViolations(
  fleet: Fleet,
  { acknowledged, strangers }: Pick<FleetLoad, "acknowledged" | "strangers">,
): Promise<string[]> {
  const lines = readJournals(fleet.journals);
  const runs = runsOf(lines, fleet);
  return [
    ...findOverlaps(runs),
    ...findLostRequests(runs, acknowledged),
    ...findLostTimers(runs, lines),
    ...(await findMiscounts(fleet, { lines, runs, strangers })),
  ];
}

/** One run of a handler; times on the clock of the journals. */
interface Run {
  readonly id: string;
  readonly epoch: number;
  readonly worker: string;
  readonly beganAtUs: number;
  /** The clock of Redis, in ms. */
  readonly leasedAtMs: number;
  /** The end of the run or of its process. */
  endedAtUs: number;
  /** How it was stored, if reported. */
  closed: Extract<Journaled, { kind: "closed" }> | undefined;
}

const MOST_TRIES_PER_WRITE = 1.1;

const nameOf = ({ id, epoch, worker }: Run) => `${id} epoch ${epoch} (${worker})`;
const runId = ({ id, epoch }: { readonly id: string; readonly epoch: number }) => `${id}#${epoch}`;

function runsOf(lines: readonly Journaled[], fleet: Fleet): ReadonlyMap<string, Run> {
  const runs = new Map<string, Run>();
  for (const line of lines) {
    if (line.kind === "begin") {
      const diedAtUs = fleet.past.find(({ id }) => id === line.worker)?.diedAtUs;
      runs.set(runId(line), {
        id: line.id,
        epoch: line.epoch,
        worker: line.worker,
        beganAtUs: line.atUs,
        leasedAtMs: line.startedAtMs,
        endedAtUs: diedAtUs ?? Infinity,
        closed: undefined,
      });
      continue;
    }
    const run = runs.get(runId(line));
    if (run === undefined) continue;
    if (line.kind === "end") run.endedAtUs = line.atUs;
    if (line.kind === "closed") run.closed = line;
  }
  return runs;
}

function findOverlaps(runs: ReadonlyMap<string, Run>): string[] {
  const violations: string[] = [];
  for (const [, ofKey] of Map.groupBy(runs.values(), ({ id }) => id)) {
    const ordered = ofKey.toSorted((one, other) => one.beganAtUs - other.beganAtUs);
    for (const [index, first] of ordered.entries()) {
      for (const second of ordered.slice(index + 1)) {
        if (second.beganAtUs >= first.endedAtUs) break;
        // The older one may have been delayed before its handler started.
        const [older, newer] = first.epoch < second.epoch ? [first, second] : [second, first];
        if (older.closed?.fenced === false)
          violations.push(
            `overlap: ${nameOf(older)} and ${nameOf(newer)} ran at once, and both were stored`,
          );
        const takenAfterMs = newer.leasedAtMs - older.leasedAtMs;
        if (takenAfterMs < LEASE_MS)
          violations.push(
            `overlap: ${nameOf(newer)} got the key ${takenAfterMs} ms after ${nameOf(older)}, which still ran`,
          );
      }
    }
  }
  return violations;
}

/** True for a run that was stored as the end of its requests. */
const isWhole = ({ closed }: Run): boolean =>
  closed !== undefined && !closed.fenced && ["done", "requeueAfter"].includes(closed.outcome);

function findLostRequests(
  runs: ReadonlyMap<string, Run>,
  acknowledged: readonly Acknowledged[],
): string[] {
  const whole = [...runs.values()].filter(isWhole);
  const lastBegin = new Map<string, number>();
  for (const { id, beganAtUs } of whole)
    lastBegin.set(id, Math.max(lastBegin.get(id) ?? 0, beganAtUs));
  return acknowledged
    .filter(({ key, askedAtUs }) => (lastBegin.get(key) ?? 0) <= askedAtUs)
    .map(({ id }) => `lost: no whole run began after request ${id} was made`);
}

function findLostTimers(runs: ReadonlyMap<string, Run>, lines: readonly Journaled[]): string[] {
  const begins = lines.filter(({ kind }) => kind === "begin");
  return lines
    .filter(({ kind }) => kind === "armed")
    .filter((armed) => {
      const run = runs.get(runId(armed));
      const stored = run?.closed;
      if (stored === undefined || stored.fenced || stored.outcome !== "requeueAfter") return false;
      return !begins.some(({ id, atUs }) => id === armed.id && atUs > armed.atUs);
    })
    .map(({ id, epoch }) => `lost: the timer that ${id} epoch ${epoch} armed never ran`);
}

/**
 * Whether the writers of one object took turns, from `sinceUs` on, when nothing disturbed them and no stranger wrote: then
 * none of them loses a race. Lanes save calls, they do not keep the promises; so a few are forgiven, for a process that stood
 * still for longer than it may hold a lane.
 */
export function findContention(fleet: Fleet, sinceUs: number): string[] {
  const writes = readJournals(fleet.journals)
    .filter((line) => line.kind === "wrote")
    .filter(({ atUs, object }) => atUs > sinceUs && object === hotObject("lane"));
  const tries = writes.reduce((sum, write) => sum + write.tries, 0);
  if (writes.length === 0) return ["fight: nobody wrote"];
  if (tries <= MOST_TRIES_PER_WRITE * writes.length) return [];
  return [`fight: the writers of one object tried ${tries} times for ${writes.length} writes`];
}

async function findMiscounts(
  { plane, namespace }: Fleet,
  {
    lines,
    runs,
    strangers,
  }: {
    readonly lines: readonly Journaled[];
    readonly runs: ReadonlyMap<string, Run>;
    readonly strangers: readonly StrangerWrite[];
  },
): Promise<string[]> {
  const violations: string[] = [];
  const began = new Set(
    [...runs.values()].map(({ id, epoch }) => `${id.split("/").at(-1)}.${epoch}`),
  );
  for (const mode of MODES) {
    const name = hotObject(mode);
    const { data = {} } = await plane.admin.get(CONFIG_MAP, { namespace, name });
    const { count, ...stamps } = data;
    const counts = Object.values(stamps);
    if (Number(count) !== counts.length)
      violations.push(`miscount: ${name} says ${count}, but ${counts.length} writes are in it`);
    if (new Set(counts).size !== counts.length)
      violations.push(`miscount: two writes of ${name} were built on the same count`);
    for (const stamp of Object.keys(stamps)) {
      if (!began.has(stamp) && !stamp.startsWith("stranger"))
        violations.push(`miscount: ${name} was written as ${stamp}, which never began`);
    }
    const told = [
      ...lines.filter((line) => line.kind === "wrote").filter(({ object }) => object === name),
      ...(mode === "lane" ? strangers : []),
    ];
    for (const { stamp, count: toldCount } of told) {
      if (stamps[stamp] !== String(toldCount))
        violations.push(`miscount: ${name} lost the acknowledged write ${stamp}`);
    }
  }
  return violations;
}
