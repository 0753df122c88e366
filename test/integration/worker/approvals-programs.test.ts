import { ProblemError } from "@konverge/client";
import { describe, expect, test, type TestContext } from "vitest";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { unlessRedisIsLate, until } from "../../support/until.ts";
import { randomProgram, type Step } from "../engine/plan-programs.ts";
import { AUDITED_SERVERS, startAuditedServer } from "../kube/audited-servers.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { findUngranted, plannedWrites, writesFor, type Grant } from "./approval-checks.ts";
import { ApprovalUsers, own, USERS, type UserName } from "./approval-users.ts";
import {
  ApprovalWorld,
  changesBetween,
  plannedChanges,
  type Fault,
  type Rule,
} from "./approval-world.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const queues = useQueues();
const ROUNDS = isLongRun ? 60 : 12;
const MAPS = ["a", "b", "c", "d"];
const FAULTS: readonly Fault["kind"][] = ["throw", "stray", "foreign", "foreign"];

/** A change or deletion of the object by the test. */
interface Change {
  readonly generation: number;
  readonly sinceMs: number;
  readonly steps: readonly Step[];
  /** Whether the attempt can follow its plan. */
  readonly isQuiet: boolean;
}

/** Users, other clients and a worker, which act by a seed. */
class Play {
  readonly world: ApprovalWorld;
  readonly users: ApprovalUsers;
  readonly violations: string[] = [];
  readonly #random: () => number;
  #change: Change | undefined;
  readonly #approved = new Map<string, Grant>();
  /** The number of grants at the last request of a user: an attempt that is applied later may end the request. */
  readonly #requests = new Map<UserName, number>();

  constructor(world: ApprovalWorld, users: ApprovalUsers, random: () => number) {
    this.world = world;
    this.users = users;
    this.#random = random;
  }

  get grants(): Grant[] {
    return [...this.#approved.values(), ...this.world.unselected];
  }

  pick<T>(values: readonly T[]): T {
    return values[Math.floor(this.#random() * values.length)] as T;
  }

  chance(share: number): boolean {
    return this.#random() < share;
  }

  shuffled<T>(values: readonly T[]): T[] {
    return values
      .map((value) => [this.#random(), value] as const)
      .toSorted(([one], [other]) => one - other)
      .map(([, value]) => value);
  }

  /** Gives the object a new program, and creates it if it does not exist. */
  async change(): Promise<Change> {
    const all = randomProgram(this.#random);
    const steps = this.chance(0.1) ? all : all.filter(({ op }) => op !== "deleteAll");
    const at = Math.floor(this.#random() * steps.length);
    const fault = this.chance(0.4)
      ? { kind: this.pick(FAULTS), at, name: this.pick(MAPS) }
      : undefined;
    const sinceMs = Date.now();
    const { generation, isNew } = await this.world.program({ steps, ...(fault && { fault }) });
    this.#change = { generation, sinceMs, steps, isQuiet: fault === undefined && !isNew };
    return this.#change;
  }

  /** Deletes the object; its cleanup, if any, runs the last program. Returns undefined if the object no longer exists. */
  async remove(): Promise<Change | undefined> {
    const sinceMs = Date.now();
    const generation = await this.world.remove();
    if (generation === undefined || this.#change === undefined) return undefined;
    return { ...this.#change, generation, sinceMs };
  }

  async request(user: UserName): Promise<void> {
    if (await this.users.request(user)) this.#requests.set(user, this.grants.length);
  }

  /** Makes a change as another client. Returns the name of a changed map. */
  async interfere(): Promise<string | undefined> {
    const name = this.pick(MAPS);
    if (this.chance(0.2)) await this.world.label();
    else if (this.chance(0.3)) await this.world.deleteMap(name);
    else {
      await this.world.writeMap(name);
      return name;
    }
    return undefined;
  }

  /** Returns true if the plan is approved now. */
  async decide(user: UserName, verb: "approve" | "reject"): Promise<boolean> {
    const shown = await this.users.waiting();
    // A plan that has just been replaced is not shown.
    if (shown?.plan === undefined) return false;
    const { hash, plan } = shown;
    const isRequester = this.#requests.get(user) === this.grants.length;
    const { answer } = await this.users.decide(user, verb, hash);
    if (typeof answer !== "object") {
      const isExpected = ["forbidden", "approval_stale"].includes(answer);
      this.#demand(isExpected, `${user} could not ${verb}: ${answer}`);
      return false;
    }
    this.#demand(this.users.can(user, this.world.rule.role), `${user} has no role to ${verb}`);
    if (verb === "reject") return false;
    this.#demand(!isRequester, `${user} has requested the plan and approved it`);
    const givers = new Set(answer.approvals.map(({ by }) => by as UserName));
    const isEnough = givers.size >= this.world.rule.by;
    this.#demand(
      isEnough === (answer.state === "approved"),
      `${answer.state} by ${[...givers].join()}`,
    );
    for (const giver of givers) {
      const counts =
        this.users.can(giver, this.world.rule.role) && !answer.requesters.includes(giver);
      this.#demand(counts, `the approval of ${giver} must not count`);
    }
    if (answer.state !== "approved") return false;
    const at = answer.approvals.at(this.world.rule.by - 1)?.at ?? "";
    const { changes, finishedAt } = plan;
    // A further approval of the same plan grants nothing more.
    this.#approved.set(`${hash} ${at}`, {
      changes,
      atMs: Date.parse(at),
      plannedAtMs: Date.parse(finishedAt),
      isApproved: true,
    });
    return true;
  }

  /** Waits until an attempt or a plan of this generation has ended. Returns the plan that waits. */
  async settled({ generation, sinceMs }: Change) {
    return await until(`generation ${generation} is planned`, async () => {
      const waiting = await this.users.waiting();
      if ((waiting?.plan?.generation ?? 0) >= generation) return { waiting };
      const [last] = await this.attempts();
      // An attempt that cannot be planned has no generation.
      const isRejected = last?.outcome === "rejected" && Date.parse(last.startedAt) >= sinceMs;
      const isOver = last?.outcome !== "awaitApproval" && (last?.generation ?? 0) >= generation;
      const isEnded = isRejected || isOver || (await this.world.generation()) === undefined;
      return isEnded ? { waiting: undefined } : undefined;
    });
  }

  async attempts() {
    try {
      const found = await unlessRedisIsLate(() => this.users.admin.objects.get(own));
      return found?.attempts ?? [];
    } catch (error) {
      if (error instanceof ProblemError && error.code === "not_found") return [];
      throw error;
    }
  }

  #demand(holds: boolean, violation: string): void {
    if (!holds) this.violations.push(violation);
  }
}

function randomRule(random: () => number): Rule {
  const role = random() < 0.3 ? "admin" : "operator";
  const by = 1 + Math.floor(random() * (role === "admin" ? 2 : 3));
  const when = (["always", "maps", "deletes"] as const)[Math.floor(random() * 3)] ?? "always";
  return { when, role, by, cleans: random() < 0.7 };
}

async function open(name: string, ctx: TestContext): Promise<Play> {
  const random = seededRandom(seed);
  const rule = randomRule(random);
  const server = await startAuditedServer(name, ctx);
  const world = await ApprovalWorld.open(server, queues, rule);
  return new Play(world, await ApprovalUsers.open(queues), random);
}

/** One program: planned, disturbed, decided about and applied. */
async function playRound(play: Play): Promise<void> {
  const { world, users } = play;
  const change = play.chance(0.2) ? await play.remove() : await play.change();
  if (change === undefined) return;
  const { steps, isQuiet } = change;
  const about = JSON.stringify({ seed, rule: world.rule, steps });
  const { waiting } = await play.settled(change);
  if (waiting === undefined) return;
  const before = await world.objects();
  if (play.chance(0.3)) await play.request(play.pick(USERS));
  const disturbedMs = Date.now();
  const isDisturbed = play.chance(0.3);
  const changed = isDisturbed ? await play.interfere() : undefined;
  if (play.chance(0.1)) {
    await play.decide(play.pick(USERS), "reject");
    return;
  }
  const sinceMs = Date.now();
  let isApproved = false;
  for (const user of play.shuffled(USERS)) {
    isApproved ||= await play.decide(user, "approve");
  }
  const grant = play.grants.find(({ atMs }) => atMs >= sinceMs);
  if (!isApproved || grant === undefined) return;
  await until("the approved plan is applied or replaced", async () => {
    const now = await users.waiting();
    const isOpen = now?.state === "approved" || now?.state === "applying";
    return !isOpen || now.hash !== waiting.hash;
  });
  const made = () => sortedWrites(writesFor(world.server.calls(), grant, play.grants));
  const isPlanned = grant.changes.some(
    (each) => each.kind === "ConfigMap" && each.name === changed,
  );
  if (isPlanned && grant.plannedAtMs < disturbedMs) expect(made(), about).toEqual([]);
  if (!isQuiet || isDisturbed) return;
  const applied = await until("the attempt after the approval has ended", async () =>
    (await play.attempts()).findLast(({ finishedAt }) => Date.parse(finishedAt) >= grant.atMs),
  );
  // Otherwise it was planned again, which is always safe.
  if (applied.outcome !== "done") return;
  const planned = sortedWrites(plannedWrites(grant.changes));
  await until(
    `the audit log has exactly the planned writes: ${about}`,
    () => JSON.stringify(made()) === JSON.stringify(planned),
  );
  const after = await world.objects();
  if (play.grants.some(({ atMs }) => atMs > grant.atMs)) return;
  expect(changesBetween(before, after), about).toEqual(plannedChanges(grant.changes));
}

function sortedWrites(writes: ReadonlyMap<string, string[]>): [string, string[]][] {
  return [...writes].toSorted(([one], [other]) => (one < other ? -1 : 1));
}

describe.each(AUDITED_SERVERS)("approvals on the %s", (name) => {
  test(`exactly the approved plans are applied (KONVERGE_TEST_SEED=${seed})`, async (ctx) => {
    const play = await open(name, ctx);
    for (let round = 0; round < ROUNDS; round += 1) await playRound(play);
    expect(play.violations).toEqual([]);
    expect(findUngranted(play.world.server.calls(), play.grants)).toEqual([]);
    const { logged, made } = await play.users.audited();
    expect(logged).toEqual(made);
  });
});
