import { createClient } from "@konverge/client";
import { KonvergeError } from "@konverge/core";
import { embeddedApiServer, startLocalStack, type LocalStack } from "@konverge/local-stack";
import { countAuditedCalls } from "../acts/call-counter.ts";
import { isolatedEnv } from "../stage/isolated-env.ts";
import { pollUntil } from "../stage/poll-until.ts";
import { createProgress } from "../stage/progress.ts";
import { renderChecks, type Check } from "../rollout/rollout-report.ts";
import { CLI_SCRIPT, demoFile } from "../stage/scripts.ts";
import { addressLine, stayUp, untilInterrupted } from "../stage/stay-up.ts";
import { playMutations, RELEASES, REQUESTS, type MutationsPlayed } from "./play-mutations.ts";
import { APPS, createShop, imageOf, NAMESPACE, readShop } from "./shop.ts";

export interface MutationsOptions {
  readonly exit: boolean;
  readonly output: "table" | "json";
  readonly logs: string | undefined;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

const CONFIG = demoFile("mutations/mutations.config");
const TOTAL = APPS.length * (RELEASES + REQUESTS);

/** Plays three systems that change the same objects, and returns the exit code: 0 if no change was lost. */
export async function runMutations(options: MutationsOptions): Promise<number> {
  const { signal } = options;
  const progress = createProgress(process.stderr);
  const { print } = progress;
  return await untilInterrupted({ signal, progress }, async () => {
    await using stack = await startLocalStack({
      name: "demo",
      cli: CLI_SCRIPT,
      startApiServer: embeddedApiServer({ latencyMs: 2 }),
      env: isolatedEnv(),
      logs: options.logs,
      log: print,
      apiPort: 0,
    });
    await using cleanup = new AsyncDisposableStack();
    print(addressLine(stack.apiUrl, options));
    await createShop(stack.client);
    const [worker] = await startWorkers(stack, cleanup);
    const fromMs = Date.now();
    const client = createClient({ server: stack.apiUrl });
    const played = await playMutations({ client, worker, progress, signal });
    await pollUntil("the operator has seen the last images", () => isObserved(stack), { signal });
    progress.end();
    const writes = await countWrites(stack, fromMs);
    const checks = await checkShop(stack, played);
    if (options.output === "json") {
      const document = { scenario: "mutations", mutations: TOTAL, writes, ...played, checks };
      process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
    } else {
      const summary = `${TOTAL} mutations, ${played.repeated} of them delivered twice, and the operator: ${writes} writes`;
      process.stdout.write(`\n${renderChecks(checks)}\n\n${summary}\n\n`);
    }
    if (!options.exit) await stayUp(stack.apiUrl, { signal, print });
    return checks.every(({ ok }) => ok) ? 0 : 1;
  });
}

async function startWorkers(stack: LocalStack, cleanup: AsyncDisposableStack) {
  const start = () => {
    const worker = stack.start(["worker", "--config", CONFIG], {
      KONVERGE_METRICS_PORT: "0",
      KONVERGE_LEASE_NAMESPACE: NAMESPACE,
      // A killed worker must be detected soon in a scenario of a minute.
      KONVERGE_LEASE_DURATION: "4s",
    });
    cleanup.defer(() => worker.stop());
    return worker;
  };
  const workers = [start(), start()] as const;
  await Promise.all(workers.map((worker) => worker.logged("worker ready")));
  return workers;
}

async function isObserved({ client }: LocalStack): Promise<boolean> {
  const shop = await readShop(client);
  return [...shop].every(([app, { observed }]) => observed === imageOf(app, RELEASES));
}

/** Returns the writes of the workers, from the audit log of the API server. */
async function countWrites({ apiServer }: LocalStack, fromMs: number): Promise<number> {
  const { auditLog } = apiServer;
  if (auditLog === undefined) throw new KonvergeError("demo_failed", "the server has no audit log");
  const counted = { agent: "konverge-worker", fromMs, toMs: Date.now() };
  return (await countAuditedCalls(auditLog, counted)).writes;
}

/** Compares the objects on the API server with what the systems have requested. */
async function checkShop(
  { client }: LocalStack,
  { outcomes }: MutationsPlayed,
): Promise<readonly Check[]> {
  const shop = await readShop(client);
  const found = Object.entries(outcomes).map(([state, count]) => `${count} ${state}`);
  const applied = { what: `all ${TOTAL} mutations are applied`, found: found.join(", ") };
  return [
    { ok: outcomes["applied"] === TOTAL, ...applied },
    ...[...shop].flatMap(([app, { image, observed, usage }]) => {
      const last = imageOf(app, RELEASES);
      return [
        {
          ok: usage === REQUESTS,
          what: `${app} counts ${REQUESTS} requests`,
          found: String(usage),
        },
        { ok: image === last, what: `${app} runs the last release`, found: image },
        { ok: observed === last, what: `the operator has seen it on ${app}`, found: observed },
      ];
    }),
  ];
}
