import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApiServer } from "@konverge/apiserver";
import { createLocalGate } from "@konverge/core";
import { startControlPlane } from "@konverge/infra-envtest";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { describe, expect, onTestFinished, test } from "vitest";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { installWidgets } from "../kube/kube-servers.ts";
import { checkProgram } from "./plan-check.ts";
import { randomProgram, randomWorld } from "./plan-programs.ts";

const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? randomInt(2 ** 31));
const PROGRAMS = process.env["KONVERGE_TEST_LONG"] === "1" ? 10 : 4;
const READS = new Set(["get", "list", "watch"]);

interface AuditedCall {
  readonly verb: string;
  readonly requestURI: string;
  readonly userAgent?: string;
}

type Started = { readonly kubeconfig: string; stop(): Promise<unknown> };
const SERVERS: Readonly<Record<string, (auditLog: string) => Promise<Started>>> = {
  "embedded API server": async (auditLog) => {
    const server = await createApiServer({ auditLog });
    return { kubeconfig: server.kubeconfig, stop: () => server.close() };
  },
  "kube-apiserver": async (auditLog) => {
    const plane = await startControlPlane({ log: () => undefined, env: process.env, auditLog });
    return { kubeconfig: plane.kubeconfig, stop: () => plane.stop() };
  },
};

function connect(kubeconfigText: string, userAgent: string): KubeClient {
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigText }),
    gate: createLocalGate({ ratePerSecond: 2_000, burst: 2_000 }),
    userAgent,
  });
  onTestFinished(() => client.close());
  return client;
}

describe.each(Object.entries(SERVERS))("the audit log of the %s", (name, start) => {
  test(`has no write of a plan without dryRun=All (KONVERGE_TEST_SEED=${seed})`, async (ctx) => {
    if (name === "kube-apiserver" && process.env["KUBEBUILDER_ASSETS"] === undefined) {
      ctx.skip("no kube-apiserver was started");
    }
    const folder = await mkdtemp(join(tmpdir(), "konverge-plan-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const auditLog = join(folder, "audit.jsonl");
    const server = await start(auditLog);
    onTestFinished(async () => void (await server.stop()));
    const client = connect(server.kubeconfig, "konverge-test/1");
    const planner = connect(server.kubeconfig, "konverge-planner/1");
    const Widgets = await installWidgets(client, "audit.test.konverge.dev");
    const random = seededRandom(seed);
    for (let round = 0; round < PROGRAMS; round += 1) {
      const program = { steps: randomProgram(random), objects: randomWorld(random) };
      await checkProgram(client, Widgets, { namespace: `audit-${round}`, planner, ...program });
    }
    const calls = readFileSync(auditLog, "utf8")
      .split("\n")
      .filter((line) => line.includes('"konverge-planner/'))
      .map((line) => JSON.parse(line) as AuditedCall);
    const writes = calls.filter(({ verb }) => !READS.has(verb));
    expect(writes.length).toBeGreaterThan(0);
    expect(writes.filter(({ requestURI }) => !requestURI.includes("dryRun=All"))).toEqual([]);
  });
});
