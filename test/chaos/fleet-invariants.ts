import { ConfigMap } from "@konverge/kube/kinds";
import { hotObject, LEASE_MS, MODES } from "./fleet-contract.ts";
import type { Fleet } from "./fleet.ts";
import { readJournals, type Journaled } from "./fleet-journal.ts";
import type { Acknowledged, FleetLoad, StrangerWrite } from "./fleet-load.ts";

/**
 * Checks the guarantees after the fleet has recovered. Returns one line per violation.
 *
 * - Overlap (P2): if two handlers of one key run at the same time, the first must be fenced. No key may be assigned again
 *   within the lease of a running attempt, fenced or not.
 * - Commit (P8): `end` rejects an attempt whose handler a later epoch overtook.
 * - Whole run (P1): after each acknowledged request, a handler started whose end was stored.
 * - Timers: after each stored `requeueAfter`, a handler of that key started.
 * - Exactly N (P3): the count of a hot object is the number of stamps in it, no two stamps have the same count, and every
 *   write acknowledged to a handler is present with its count. A stamp without an acknowledgement belongs to an attempt that
 *   started (its response was lost, or its process died); its count is exact as well. External writers, which use no lane,
 *   are counted too.
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

/** One run of a handler, with times on the clock of the journals. */
interface Run {
  readonly id: string;
  readonly epoch: number;
  readonly worker: string;
  readonly beganAtUs: number;
  /** The time of Redis in ms. */
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
            `overlap: ${nameOf(older)} and ${nameOf(newer)} ran at the same time, and both were stored`,
          );
        const takenAfterMs = newer.leasedAtMs - older.leasedAtMs;
        if (takenAfterMs < LEASE_MS)
          violations.push(
            `overlap: ${nameOf(newer)} acquired the key ${takenAfterMs} ms after ${nameOf(older)}, which was still running`,
          );
      }
    }
  }
  return violations;
}

/** Reports whether a run was stored as the end of its requests. */
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
    .map(({ id }) => `lost: no complete run started after request ${id}`);
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
 * Checks that the writers of one object queued in its lane since `sinceUs`, without faults and external writers: then none
 * of them conflicts. Lanes save calls and are not needed for correctness, so a few conflicts are tolerated, for a process
 * that was paused for longer than it may hold a lane.
 */
export function findContention(fleet: Fleet, sinceUs: number): string[] {
  const writes = readJournals(fleet.journals)
    .filter((line) => line.kind === "wrote")
    .filter(({ atUs, object }) => atUs > sinceUs && object === hotObject("lane"));
  const tries = writes.reduce((sum, write) => sum + write.tries, 0);
  if (writes.length === 0) return ["contention: no writes"];
  if (tries <= MOST_TRIES_PER_WRITE * writes.length) return [];
  return [
    `contention: the writers of one object needed ${tries} tries for ${writes.length} writes`,
  ];
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
    const { data = {} } = await plane.admin.get(ConfigMap, { namespace, name });
    const { count, ...stamps } = data;
    const counts = Object.values(stamps);
    if (Number(count) !== counts.length)
      violations.push(`miscount: ${name} has the count ${count}, but ${counts.length} writes`);
    if (new Set(counts).size !== counts.length)
      violations.push(`miscount: two writes of ${name} are based on the same count`);
    for (const stamp of Object.keys(stamps)) {
      if (!began.has(stamp) && !stamp.startsWith("stranger"))
        violations.push(`miscount: ${name} was written by ${stamp}, which never started`);
    }
    const shown = [
      ...lines.filter((line) => line.kind === "wrote").filter(({ object }) => object === name),
      ...(mode === "lane" ? strangers : []),
    ];
    for (const { stamp, count: shownCount } of shown) {
      if (stamps[stamp] !== String(shownCount))
        violations.push(`miscount: ${name} lost the acknowledged write ${stamp}`);
    }
  }
  return violations;
}
