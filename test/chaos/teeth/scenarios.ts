import { COUNTER_NAMES, fleetKey, modeOf } from "../fleet-contract.ts";
import type { Fleet } from "../fleet.ts";
import { readJournals, type Journaled } from "../fleet-journal.ts";
import type { FleetLoad } from "../fleet-load.ts";
import { formatKey } from "@konverge/core";
import { FORGOTTEN, openRogue, ROGUE_JOB } from "../rogue-queue.ts";
import { contend } from "../settle.ts";
import type { PatchName } from "./patches.ts";
import { until } from "../../support/until.ts";

/** Causes the situation that one protection handles. Returns the problems found meanwhile. */
type Scenario = (fleet: Fleet, load: FleetLoad) => Promise<string[]>;

const CONTENTIONS = 4;
const TAKINGS = 5;

type Begin = Extract<Journaled, { kind: "begin" }>;

async function waitForLine<Kind extends Journaled["kind"]>(
  fleet: Fleet,
  what: string,
  kind: Kind,
  fits: (line: Extract<Journaled, { kind: Kind }>) => boolean,
): Promise<Extract<Journaled, { kind: Kind }>> {
  type Line = Extract<Journaled, { kind: Kind }>;
  const isIt = (line: Journaled): line is Line => line.kind === kind && fits(line as Line);
  let found: Line | undefined;
  await until(what, () => {
    found = readJournals(fleet.journals).find(isIt);
    return found !== undefined;
  });
  if (found === undefined) throw new Error(`not found: ${what}`);
  return found;
}

/** Requests a key that has run `epoch` times and waits until its handler has started again. */
async function begin(fleet: Fleet, load: FleetLoad, name: string): Promise<Begin> {
  const id = formatKey(fleetKey("plain", fleet.namespace, name));
  const before = readJournals(fleet.journals).length;
  await load.request("plain", name);
  const known = new Set(
    readJournals(fleet.journals)
      .slice(0, before)
      .map(({ atUs }) => atUs),
  );
  return await waitForLine(
    fleet,
    `${name} runs`,
    "begin",
    (line) => line.id === id && !known.has(line.atUs),
  );
}

/** A worker is stopped during a run until another one has taken over and ended the key; then it continues. */
const fencing: Scenario = async (fleet, load) => {
  const zombie = await begin(fleet, load, "deaf-0");
  const worker = [...fleet.workers].find(({ id }) => id === zombie.worker);
  if (worker === undefined) throw new Error(`${zombie.worker} is not running`);
  const { child } = worker;
  child.signal("SIGSTOP");
  try {
    const later = ({ id, epoch }: Journaled) => id === zombie.id && epoch > zombie.epoch;
    await waitForLine(fleet, "another worker takes the key over", "begin", later);
  } finally {
    child.signal("SIGCONT");
  }
  const own = ({ id, epoch }: Journaled) => id === zombie.id && epoch === zombie.epoch;
  await waitForLine(fleet, "the zombie has ended", "closed", own);
  return [];
};

/** A foreign job is added for a key whose handler runs. */
const lease: Scenario = async (fleet, load) => {
  const { id } = await begin(fleet, load, "plain-0");
  const rogue = openRogue(fleet, "plain");
  try {
    const job = await rogue.add(ROGUE_JOB, { key: id }, FORGOTTEN);
    const isGone = async () => (await rogue.getJob(job.id ?? "")) === undefined;
    await until("the second job is done", isGone);
  } finally {
    await rogue.close();
  }
  return [];
};

/** All writers of one object at the same time. */
const lane: Scenario = (fleet, load) => contend(fleet, load, CONTENTIONS);

/** A foreign writer writes between two of our writers, which pass the object on. */
const carry: Scenario = async (fleet, load) => {
  const names = COUNTER_NAMES.filter((name) => modeOf(name) === "lane");
  for (const name of names.slice(0, TAKINGS)) {
    const stamped = readJournals(fleet.journals).filter(({ kind }) => kind === "wrote").length;
    await load.request("counter", name, "interactive");
    const wrote = () =>
      readJournals(fleet.journals).filter(({ kind }) => kind === "wrote").length > stamped;
    await until(`${name} has written`, wrote);
    await load.writeAsStranger();
  }
  return [];
};

/** For each protection, the scenario that shows its absence, and the finding of the checks. */
export const SCENARIOS: Readonly<
  Record<PatchName, { readonly run: Scenario; readonly violation: RegExp }>
> = {
  fencing: { run: fencing, violation: /^overlap: .* ran at the same time, and both were stored$/ },
  lease: {
    run: lease,
    violation: /^overlap: .* acquired the key \d+ ms after .* which was still running$/,
  },
  lane: { run: lane, violation: /^contention: / },
  carry: { run: carry, violation: /^miscount: hot-lane / },
};
