import { readFile } from "node:fs/promises";
import { createClient, ProblemError, type Client, type ControllerObject } from "@konverge/client";
import { KonvergeError, parseKey } from "@konverge/core";
import type { LocalStack } from "@konverge/local-stack";
import type { Check } from "../rollout/rollout-report.ts";
import { pollUntil } from "../stage/poll-until.ts";
import type { DemoProgress } from "../stage/progress.ts";
import { demoFile } from "../stage/scripts.ts";
import { readAuditedWrites, type AuditedWrite } from "./audited-writes.ts";
import { runCli } from "./run-cli.ts";
import { APPROVED, createShop, NAMESPACES, readServices, type ShopSize } from "./shop.ts";

const FIRST = demoFile("plan/first.config");
const SECOND = demoFile("plan/second.config");
/** The user who deploys version 2, and the user who approves its plans. */
const AUTHOR = "anna";
const APPROVER = "ben";
/** The server is polled while it works. */
const EVERY_MS = 500;

interface Playing {
  readonly stack: LocalStack;
  readonly size: ShopSize;
  /** For the file with the plans. */
  readonly folder: string;
  readonly cleanup: AsyncDisposableStack;
  readonly progress: DemoProgress;
  readonly signal: AbortSignal;
}

/** The parts that are printed of the output of `konverge plan --all`. */
interface PlanDocument {
  readonly planned: number;
  readonly changes: number;
  readonly deletes: number;
  readonly groups: readonly {
    readonly action: string;
    readonly kind: string;
    readonly count: number;
  }[];
  readonly exceeded?: readonly string[];
}

/** A planned change, or a write in the audit log, as `delete team-a/app-1`. */
type Change = string;

export interface PlanPlayed {
  readonly plan: PlanDocument;
  readonly checks: readonly Check[];
}

/** Plans version 2 of an operator, approves its deletions in one namespace, and compares the report with the audit log. */
export async function playPlan(playing: Playing): Promise<PlanPlayed> {
  const { stack, size, progress, signal } = playing;
  const { print } = progress;
  const polling = { signal, everyMs: EVERY_MS };
  const { allApps, allStopped, stopped } = size;
  progress.begin(`version 1 of an operator makes a Service for each of ${allApps} apps`);
  await createShop(stack.client, size);
  const first = await startVersion(playing, FIRST);
  await pollUntil("all apps have a Service", () => hasServices(stack, allApps), polling);
  const author = await createUser(playing, AUTHOR, []);
  const approver = await createUser(playing, APPROVER, ["--namespace", APPROVED]);

  progress.begin("version 2 is planned, while version 1 runs");
  const planned = await planVersion(playing, author.token);
  for (const { count, kind, action } of planned.plan.groups) print(`  ${count} ${kind} ${action}`);
  print(`deploy check --max-deletes 0: ${planned.check.exceeded.join("; ")}`);

  progress.begin("version 2 is deployed all the same, and its deletions wait for an approval");
  await first.stop();
  const deployedMs = Date.now();
  await startVersion(playing, SECOND);
  const waiting = async () => (await author.client.approvals.list()).items;
  const allWait = async () => (await waiting()).length === allStopped;
  await pollUntil("all deletions wait", allWait, polling);
  const isChanged = () => hasVersion(stack, "2", allApps - allStopped);
  await pollUntil("the other Services are changed", isChanged, polling);
  const clients = { author: author.client, approver: approver.client };
  const decided = await decide({ ...clients, progress, signal });
  const isApplied = () => hasServices(stack, allApps - stopped);
  await pollUntil("the approved plans are applied", isApplied, polling);
  const left = (await waiting()).length;
  const writes = await readWrites(stack, "konverge-worker/", deployedMs);
  const services = await readServices(stack.client);
  return {
    plan: planned.plan,
    checks: [
      ...plannedChecks(planned, size),
      ...decidedChecks({ ...decided, left, services }, size),
      ...auditChecks(planned.changes, writes),
    ],
  };
}

type Planned = Awaited<ReturnType<typeof planVersion>>;

function plannedChecks(
  { plan, check, audited }: Planned,
  { allApps, allStopped }: ShopSize,
): Check[] {
  return [
    checkOf("version 2 was planned for all objects", allApps, plan.planned),
    checkOf("the dangerous change was found: deletions", allStopped, plan.deletes),
    checkOf("plans were dry runs at the API server", true, audited.dryRuns > 0),
    checkOf("writes to the apps while planning, in the audit log", 0, audited.writes),
    checkOf("exit code of deploy check --max-deletes 0", 1, check.code),
  ];
}

type Decided = Awaited<ReturnType<typeof decide>> & {
  /** Plans that still wait. */
  readonly left: number;
  readonly services: Awaited<ReturnType<typeof readServices>>;
};

function decidedChecks(
  { author, elsewhere, approved, left, services }: Decided,
  { apps, stopped, allApps, allStopped }: ShopSize,
): Check[] {
  return [
    checkOf(`${AUTHOR}, who requested them, could not approve`, "forbidden", author),
    checkOf(`${APPROVER} could not approve another namespace`, "forbidden", elsewhere),
    checkOf(`plans that ${APPROVER} approved in ${APPROVED}`, stopped, approved),
    checkOf("plans of other namespaces that still wait", allStopped - stopped, left),
    checkOf("Services of other namespaces", allApps - apps, othersOf(services)),
  ];
}

/** Compares the planned changes, without the deletions that are not approved, with the writes of version 2. */
function auditChecks(changes: readonly Change[], writes: readonly AuditedWrite[]): Check[] {
  const expected = changes.filter(
    (change) => change.startsWith("change ") || change.startsWith(`delete ${APPROVED}/`),
  );
  const found = writes.filter(({ isDryRun }) => !isDryRun).map(changeOf);
  return [
    checkOf("writes of version 2, in the audit log", expected.length, found.length),
    checkOf("writes that differ from the report", "none", differenceOf(expected, found)),
  ];
}

function checkOf<T extends string | number | boolean>(what: string, expected: T, found: T): Check {
  const text = expected === found ? String(found) : `${found}, not ${expected}`;
  return { ok: expected === found, what, found: text };
}

async function startVersion({ stack, cleanup }: Playing, config: string) {
  const worker = stack.start(["worker", "--config", config], { KONVERGE_METRICS_PORT: "0" });
  cleanup.defer(() => worker.stop());
  await worker.logged("worker ready");
  return worker;
}

interface User {
  readonly token: string;
  readonly client: Client;
}

async function createUser(
  { stack, signal }: Playing,
  name: string,
  scope: readonly string[],
): Promise<User> {
  const args = ["token", "create", name, "--role", "operator", ...scope, "-o", "name"];
  const { code, stdout, stderr } = await runCli(stack, args, { signal });
  if (code !== 0) throw new KonvergeError("demo_failed", `konverge ${args.join(" ")}: ${stderr}`);
  const token = stdout.trim();
  return { token, client: createClient({ server: stack.apiUrl, token }) };
}

/** Compares version 2 with the running version, and checks the result against a limit. */
async function planVersion({ stack, folder, progress, signal }: Playing, token: string) {
  const file = `${folder}/plans.jsonl`;
  const shared = ["--config", SECOND, "--resume", file, "-o", "json"];
  const run = async (...words: string[]) => {
    progress.print(`$ konverge ${words.join(" ")} --config second.config.ts`);
    const { code, stdout, stderr } = await runCli(stack, [...words, ...shared], { token, signal });
    if (stdout === "") throw new KonvergeError("demo_failed", `konverge ${words[0]}: ${stderr}`);
    return { code, document: JSON.parse(stdout) as PlanDocument };
  };
  const fromMs = Date.now();
  const { document: plan } = await run("plan", "--all");
  const { code, document } = await run("deploy", "check", "--max-deletes", "0");
  // With those of the workers, which plan with version 1 at the same time.
  const requests = await readWrites(stack, "konverge-", fromMs);
  const dryRuns = requests.filter(({ isDryRun }) => isDryRun).length;
  const audited = { dryRuns, writes: requests.length - dryRuns };
  const changes = await readReport(file);
  return { plan, changes, check: { code, exceeded: document.exceeded ?? [] }, audited };
}

/** Returns the changes of the plans that `--resume` has stored. */
async function readReport(file: string): Promise<Change[]> {
  const [, ...lines] = (await readFile(file, "utf8")).trimEnd().split("\n");
  return lines.flatMap((line) => {
    const { changes } = JSON.parse(line) as {
      readonly changes: readonly { readonly action: string; readonly object: string }[];
    };
    return changes.map(({ action, object }) =>
      action === "deleted" ? `delete ${object}` : `change ${object}`,
    );
  });
}

interface Deciding {
  readonly author: Client;
  readonly approver: Client;
  readonly progress: DemoProgress;
  readonly signal: AbortSignal;
}

/** The author requests the objects of one namespace, and a second user approves their plans. */
async function decide({ author, approver, progress, signal }: Deciding) {
  const { items } = await author.approvals.list();
  const objects = items.map(({ key }): ControllerObject => parseKey(key));
  const own = objects.filter(({ namespace }) => namespace === APPROVED);
  const [other] = objects.filter(({ namespace }) => namespace !== APPROVED);
  for (const object of own) {
    await author.objects.reconcile(object, { reason: "deploy version 2" });
  }
  const hashOf = async (object: ControllerObject) => {
    const { hash, requesters } = await author.approvals.get(object);
    return { hash, isRequested: requesters.includes(AUTHOR) };
  };
  const approve = async (client: Client, object: ControllerObject) => {
    const { hash } = await hashOf(object);
    try {
      const action = { by: "the demo", reason: "the app is not used any more" };
      await client.approvals.approve(object, { hash, ...action });
      return "approved";
    } catch (error) {
      if (error instanceof ProblemError) return error.code;
      throw error;
    }
  };
  let [byAuthor, elsewhere, approved] = ["", "", 0];
  for (const object of own) {
    await pollUntil(
      "the request has been planned",
      async () => (await hashOf(object)).isRequested,
      {
        signal,
      },
    );
    byAuthor ||= await approve(author, object);
    elsewhere ||= other === undefined ? "" : await approve(approver, other);
    if ((await approve(approver, object)) === "approved") approved += 1;
    progress.print(`${APPROVER} approved the plan of ${object.namespace}/${object.name}`);
  }
  return { author: byAuthor, elsewhere, approved };
}

async function hasServices({ client }: LocalStack, count: number): Promise<boolean> {
  return (await readServices(client)).size === count;
}

async function hasVersion({ client }: LocalStack, version: string, count: number) {
  const versions = [...(await readServices(client)).values()];
  return versions.filter((each) => each === version).length === count;
}

function othersOf(services: ReadonlyMap<string, unknown>): number {
  return [...services.keys()].filter((name) => !name.startsWith(`${APPROVED}/`)).length;
}

/** Returns the writes to the apps. Workers also write their own records, in another namespace. */
async function readWrites(
  { apiServer }: LocalStack,
  agent: string,
  fromMs: number,
): Promise<AuditedWrite[]> {
  const { auditLog } = apiServer;
  if (auditLog === undefined) throw new KonvergeError("demo_failed", "the server has no audit log");
  const writes = await readAuditedWrites(auditLog, { agent, fromMs, toMs: Date.now() });
  return writes.filter(({ object }) => NAMESPACES.some((name) => object.startsWith(`${name}/`)));
}

function changeOf({ verb, object }: AuditedWrite): Change {
  return verb === "delete" ? `delete ${object}` : `change ${object}`;
}

/** Both lists name each object once. */
function differenceOf(expected: readonly Change[], found: readonly Change[]): string {
  const missing = expected.filter((change) => !found.includes(change));
  const unexpected = found.filter((change) => !expected.includes(change));
  const different = [
    ...missing.map((change) => `missing: ${change}`),
    ...unexpected.map((change) => `unexpected: ${change}`),
  ];
  return different.length === 0 ? "none" : different.slice(0, 5).join(", ");
}
