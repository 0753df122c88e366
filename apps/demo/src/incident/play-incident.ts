import { randomBytes } from "node:crypto";
import { createClient, type Client } from "@konverge/client";
import { KonvergeError } from "@konverge/core";
import { parseLogLine, type LocalProcess, type LocalStack } from "@konverge/local-stack";
import type { DemoProgress } from "../stage/progress.ts";
import { pollUntil } from "../stage/poll-until.ts";
import { demoFile } from "../stage/scripts.ts";
import { startCompetingWriter } from "./competing-writer.ts";
import { createTenants, createTroubled, installKinds, type Troubled } from "./populate.ts";
import { startLateRuns, startRuns } from "./start-runs.ts";

export interface IncidentOptions {
  readonly stack: LocalStack;
  /** Token of an admin. */
  readonly token: string;
  readonly objects: number;
  /** Few troubled objects and runs: the same causes, cheap enough for a test. */
  readonly reduced: boolean;
  readonly progress: DemoProgress;
  /** Disposed at the end: workers, the competing writer. */
  readonly cleanup: AsyncDisposableStack;
  readonly signal: AbortSignal;
}

const FULL: Troubled = { certificates: [12, 4, 6], databases: 18, policies: 3, quotas: 3 };
const REDUCED: Troubled = { certificates: [2, 1, 1], databases: 3, policies: 1, quotas: 1 };

/** Plays everything up to the outage, and returns when all causes are visible. */
export async function playIncident(options: IncidentOptions): Promise<void> {
  const { stack, token, objects, reduced, progress, cleanup, signal } = options;
  const counts = reduced ? REDUCED : FULL;
  const admin = createClient({ server: stack.apiUrl, token });
  progress.begin("a healthy installation");
  await installKinds(stack.client, signal);
  const [[mia, noah], old] = await Promise.all([
    openOperators(stack, ["mia", "noah"]),
    startWorkers(stack, "before", 1, cleanup),
  ]);
  if (mia === undefined || noah === undefined) throw new KonvergeError("demo_failed", "no token");
  await createTenants(stack.client, objects, {
    onCount: (count) => progress.update(`${count} of ${objects} tenants created`),
    signal,
  });
  await startRuns({ mia, noah, reduced, signal });

  progress.begin("a release with bugs");
  await startWorkers(stack, "after", reduced ? 1 : 2, cleanup);
  await Promise.all(old.map((worker) => worker.stop()));
  await createTroubled(stack.client, counts);
  const { kubeconfigPath } = stack.apiServer;
  cleanup.use(
    startCompetingWriter({
      kubeconfigPath,
      policies: counts.policies,
      everyMs: reduced ? 100 : 500,
    }),
  );
  await startLateRuns({ mia, noah, reduced, signal });
  const reason = "customer is migrated tonight, ask #team-payments before you resume";
  await mia.queues.pause({ controller: "tenant", namespace: "payments", by: "mia", reason });
  await untilVisible(admin, objects, { progress, signal });
}

/** Freezes the API server: its connections stay open, without an answer. Returns when the outage is reported. */
export async function playOutage({
  stack,
  token,
  progress,
  cleanup,
  signal,
}: IncidentOptions): Promise<void> {
  const { pid } = stack.apiServer;
  if (pid === undefined)
    throw new KonvergeError("demo_failed", "the demo did not start this API server");
  progress.begin("an outage of the API server");
  process.kill(pid, "SIGSTOP");
  cleanup.defer(() => void process.kill(pid, "SIGCONT"));
  const admin = createClient({ server: stack.apiUrl, token });
  await pollUntil(
    "the outage is reported",
    async () => {
      const { problems } = await admin.overview();
      return problems.some(({ code }) => code === "api_server_outage");
    },
    { signal, everyMs: 500 },
  );
}

/** The problems that the incident causes before its outage. */
const EXPECTED = ["dead_letters", "run_blocked", "run_failed", "contention", "loop", "paused"];

async function untilVisible(
  client: Client,
  objects: number,
  { progress, signal }: Pick<IncidentOptions, "progress" | "signal">,
): Promise<void> {
  await pollUntil(
    `the overview has ${EXPECTED.join(", ")}, and ${objects} tenants were reconciled`,
    async () => {
      const { problems, controllers } = await client.overview();
      const missing = EXPECTED.filter((code) => problems.every((each) => each.code !== code));
      const waiting = controllers.find(({ name }) => name === "tenant")?.waiting ?? 0;
      progress.update(`${waiting} tenants waiting; missing: ${missing.join(", ") || "nothing"}`);
      return missing.length === 0 && waiting === 0;
    },
    { deadlineMs: 300_000, everyMs: 1_000, signal },
  );
}

async function startWorkers(
  stack: LocalStack,
  release: "before" | "after",
  count: number,
  cleanup: AsyncDisposableStack,
): Promise<LocalProcess[]> {
  const config = demoFile(`incident/${release}.config`);
  const workers = Array.from({ length: count }, () =>
    stack.start(["worker", "--config", config], {
      KONVERGE_METRICS_PORT: "0",
      KONVERGE_LEASE_NAMESPACE: "payments",
      KONVERGE_LEASE_DURATION: "4s",
      // Outages are detected within seconds, and the long steps do not delay the end.
      KONVERGE_REQUEST_TIMEOUT: "2s",
      KONVERGE_SHUTDOWN_GRACE: "1s",
      KONVERGE_BUILD_ID: release === "before" ? "shop-4.6" : "shop-4.7",
    }),
  );
  for (const worker of workers) cleanup.defer(() => worker.stop());
  await Promise.all(workers.map((worker) => worker.logged("worker ready")));
  return workers;
}

/** Creates a token per operator: actions carry the name of their token. */
async function openOperators(stack: LocalStack, names: readonly string[]): Promise<Client[]> {
  return await Promise.all(
    names.map(async (name) => {
      const command = stack.start(["token", "create", name, "--role", "operator", "-o", "jsonl"]);
      let token: unknown;
      command.onLine((line) => {
        token ??= parseLogLine(line)?.["token"];
      });
      const ended = await command.ended;
      if (typeof token !== "string")
        throw new KonvergeError("demo_failed", `konverge token ${ended}`);
      return createClient({ server: stack.apiUrl, token });
    }),
  );
}

/** Returns a token as the API requires it: at least 32 characters. */
export function randomToken(): string {
  return randomBytes(24).toString("base64url");
}
