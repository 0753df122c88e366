import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApiServer } from "@konverge/apiserver";
import { createLocalGate } from "@konverge/core";
import { startControlPlane } from "@konverge/infra-envtest";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { onTestFinished, type TestContext } from "vitest";

/** A completed request in the audit log of an API server. */
export interface AuditedCall {
  readonly verb: string;
  readonly requestURI: string;
  readonly userAgent?: string;
  readonly objectRef?: {
    readonly resource: string;
    readonly namespace?: string;
    readonly name?: string;
    readonly subresource?: string;
  };
  readonly responseStatus: { readonly code: number };
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
}

/** An API server of one test, with its audit log. */
export interface AuditedServer {
  readonly kubeconfig: string;
  /** A client that is closed after the test. */
  connect(userAgent: string): KubeClient;
  /** In the order of their ends. */
  calls(): AuditedCall[];
}

type Started = { readonly kubeconfig: string; stop(): Promise<unknown> };
const STARTS: Readonly<Record<string, (auditLog: string) => Promise<Started>>> = {
  "embedded API server": async (auditLog) => {
    const server = await createApiServer({ auditLog });
    return { kubeconfig: server.kubeconfig, stop: () => server.close() };
  },
  "kube-apiserver": async (auditLog) => {
    const plane = await startControlPlane({ log: () => undefined, env: process.env, auditLog });
    return { kubeconfig: plane.kubeconfig, stop: () => plane.stop() };
  },
};

export const AUDITED_SERVERS = Object.keys(STARTS);

/** Starts a server, which is stopped after the test. Skips the test if there is no kube-apiserver. */
export async function startAuditedServer(name: string, ctx: TestContext): Promise<AuditedServer> {
  if (name === "kube-apiserver" && process.env["KUBEBUILDER_ASSETS"] === undefined) {
    ctx.skip("no kube-apiserver was started");
  }
  const folder = await mkdtemp(join(tmpdir(), "konverge-audit-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const auditLog = join(folder, "audit.jsonl");
  const server = await STARTS[name]?.(auditLog);
  if (server === undefined) throw new Error(`unknown server ${name}`);
  onTestFinished(async () => void (await server.stop()));
  const { kubeconfig } = server;
  return {
    kubeconfig,
    connect(userAgent) {
      const client = createKubeClient({
        credentials: loadKubeCredentials({ kubeconfigText: kubeconfig }),
        gate: createLocalGate({ ratePerSecond: 2_000, burst: 2_000 }),
        userAgent,
      });
      onTestFinished(() => client.close());
      return client;
    },
    calls: () =>
      readFileSync(auditLog, "utf8")
        .split("\n")
        .filter((line) => line.endsWith("}"))
        .map((line) => JSON.parse(line) as AuditedCall),
  };
}
