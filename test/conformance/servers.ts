import { readFileSync } from "node:fs";
import { EnvtestUnavailable, startControlPlane } from "@konverge/infra-envtest";
import { createApiServer } from "@konverge/apiserver";
import { connect, type ApiConnection } from "./api-connection.ts";
import type { ActStep } from "./case.ts";

/** One API server under test. */
export interface TestedServer {
  readonly kind: "embedded" | "kube-apiserver";
  readonly version: string;
  readonly api: ApiConnection;
  /** In YAML, for other programs. */
  readonly kubeconfig: string;
  /** Actions of the embedded server only. */
  readonly act?: (act: ActStep["act"]) => void;
  stop(): Promise<void>;
}

export async function startEmbedded(): Promise<TestedServer> {
  const server = await createApiServer();
  const api = await connect(server.kubeconfig).catch(async (error: unknown) => {
    await server.close();
    throw error;
  });
  return {
    kind: "embedded",
    version: server.version,
    api,
    kubeconfig: server.kubeconfig,
    act: (act) => {
      if (act === "bookmark") server.sendBookmarks();
      else if (act === "compact") server.compact();
      else server.cutWatches();
    },
    async stop() {
      api.close();
      await server.close();
    },
  };
}

/**
 * Returns the real server: the one started by the test runner (`KONVERGE_TEST_KUBECONFIG`), or else a new one.
 * Undefined if none is available; with `CI=true` that is an error.
 */
export async function startReal(log: (line: string) => void): Promise<TestedServer | undefined> {
  const path = process.env["KONVERGE_TEST_KUBECONFIG"];
  if (path) return realServer(readFileSync(path, "utf8"), () => Promise.resolve());
  try {
    const plane = await startControlPlane({ log });
    const stop = () => plane.stop();
    return await realServer(plane.kubeconfig, stop).catch(async (error: unknown) => {
      await stop();
      throw error;
    });
  } catch (error) {
    if (!(error instanceof EnvtestUnavailable) || process.env["CI"] === "true") throw error;
    log(`no real API server: ${error.message}`);
    return undefined;
  }
}

async function realServer(kubeconfig: string, stop: () => Promise<void>): Promise<TestedServer> {
  const api = await connect(kubeconfig);
  const { gitVersion } = JSON.parse((await api.send({ method: "GET", path: "/version" })).text) as {
    readonly gitVersion: string;
  };
  return {
    kind: "kube-apiserver",
    version: gitVersion,
    api,
    kubeconfig,
    async stop() {
      api.close();
      await stop();
    },
  };
}
