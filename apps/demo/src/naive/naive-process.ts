import { createLogger } from "@konverge/telemetry";
import {
  CoreV1Api,
  createConfiguration,
  CustomObjectsApi,
  KubeConfig,
  ServerConfiguration,
  type Middleware,
} from "@kubernetes/client-node";
import { DEMO_VERSION } from "../stage/scripts.ts";
import { aborted, stopSignal } from "../stage/stop-signal.ts";
import { NaiveControllers } from "./naive-controllers.ts";
import { NAIVE_AGENT, type NaiveReport } from "./naive-report.ts";

/** Runs the naive controllers until a signal, then logs their counts. */
export async function runNaiveProcess(namespace: string): Promise<void> {
  const log = createLogger({ service: NAIVE_AGENT, version: DEMO_VERSION });
  const config = new KubeConfig();
  config.loadFromDefault();
  // Without it, the client rejects plain HTTP, which the embedded API server uses.
  for (const cluster of config.clusters.filter(({ server }) => server.startsWith("http:"))) {
    Object.assign(cluster, { skipTLSVerify: true });
  }
  const counted = { calls: 0, writes: 0, conflicts: 0 };
  const configuration = createConfiguration({
    baseServer: new ServerConfiguration(config.getCurrentCluster()?.server ?? "", {}),
    authMethods: { default: config },
    promiseMiddleware: [countCalls(counted)],
  });
  const controllers = new NaiveControllers({
    config,
    custom: new CustomObjectsApi(configuration),
    core: new CoreV1Api(configuration),
    namespace,
  });
  await controllers.start();
  log.info({}, "naive controllers ready");
  await aborted(stopSignal());
  await controllers.stop();
  const { reconciles, gaveUp } = controllers;
  const report: NaiveReport = { reconciles, gaveUp, calls: counted };
  log.info({ ...report }, "naive controllers stopped");
  process.exit(0);
}

/** Counts as the audit log does, for API servers without one. */
function countCalls(counted: { calls: number; writes: number; conflicts: number }): Middleware {
  return {
    async pre(request) {
      request.setHeaderParam("User-Agent", NAIVE_AGENT);
      counted.calls += 1;
      if (request.getHttpMethod().toString() !== "GET") counted.writes += 1;
      return request;
    },
    async post(response) {
      if (response.httpStatusCode !== 409) return response;
      counted.conflicts += 1;
      counted.writes -= 1;
      return response;
    },
  };
}
