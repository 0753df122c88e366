import { serve } from "@hono/node-server";
import { readFileSync } from "node:fs";
import { clusterOf, readSignInSettings, type Settings } from "@konverge/contracts";
import {
  defined,
  ensureError,
  invalidConfig,
  KonvergeError,
  sleepMs,
  type PayloadCodec,
} from "@konverge/core";
import { openGuardControl, type GuardControl } from "@konverge/guard";
import { loadKubeCredentials } from "@konverge/kube";
import {
  createLogger,
  createMetrics,
  loadTracing,
  observeRequests,
  type Metrics,
} from "@konverge/telemetry";
import { createApi, type Api, type ApiOptions } from "./create-api.ts";
import { fileTarget, httpTarget, type AuditTarget } from "./audit/audit-target.ts";
import { RefusalLog } from "./http/refusal-log.ts";
import { createInboundSecrets } from "./inbound/inbound-secrets.ts";
import { isLoopback } from "./access/is-loopback.ts";
import { createKubernetesReviews, type KubernetesReviews } from "./access/kubernetes-reviews.ts";
import { startSampling } from "./views/sample-gauges.ts";
import { openQueueAccess, type QueueAccess } from "./queues/queue-access.ts";

export interface RunningApi {
  readonly url: string;
  /** Serves for `apiDrain` longer, completes running requests, then closes. */
  stop(): Promise<void>;
}

/** Time for running requests to complete on shutdown. */
const CLOSE_MS = 5_000;
const LOOK_FOR_IDLE_MS = 50;
const REQUEST_TIMEOUT_MS = 30_000;

/**
 * Serves the HTTP API. Other addresses than loopback require tokens.
 * @throws KonvergeError `invalid_config` if the port is in use
 */
export async function startApi(options: {
  readonly settings: Settings;
  readonly version: string;
  /** Codec of the workflows. Default: none; values of workflows with a codec stay encoded. */
  readonly codec?: PayloadCodec | undefined;
  /** Longest time to receive a request, in ms. Default 30,000. */
  readonly requestTimeoutMs?: number;
  /** Resolves when callers have noticed that the process stops. Default: after `apiDrain`. */
  readonly drained?: () => Promise<void>;
}): Promise<RunningApi> {
  const { settings, version, requestTimeoutMs = REQUEST_TIMEOUT_MS } = options;
  const { apiHost, apiPort, token } = settings;
  const { drained = () => sleepMs(settings.apiDrain) } = options;
  const log = createLogger({
    service: "api",
    version,
    level: settings.logLevel,
    linesPerSecond: settings.logLimit,
  });
  const tracing = await loadTracing(version);
  const metrics = createMetrics({ version, installation: settings.prefix, ofProcess: true });
  const access = openQueueAccess({
    redis: { url: settings.redisUrl },
    prefix: settings.prefix,
    maxQueueLength: settings.maxQueueLength,
    runRetentionMs: settings.runRetention,
    restoreToleranceMs: settings.restoreTolerance,
    codec: options.codec,
    onError: (error) => log.warn({ err: error }, "redis connection error"),
    onAuditEntry: (change) =>
      change.action === "refused"
        ? log.info({ change }, "change refused")
        : log.info({ change }, "change made"),
    onAuditLost: (entries) => log.error({ entries }, "audit entries not written"),
    auditKeys: settings.auditKeys,
    observe: observeRequests(metrics, tracing),
    ...defined({ tracing }),
  });
  const guards = openGuardControl({
    redis: { url: settings.redisUrl },
    prefix: settings.prefix,
  });
  const reviews = openReviews(settings, log);
  const signIn = openSignIn(settings, log);
  const refusals = new RefusalLog((refusal) => log.warn({ ...refusal }, "requests rejected"));
  const api = createApi({
    access,
    guards,
    metrics,
    token,
    isLoopback: isLoopback(apiHost),
    reviews,
    signIn,
    inboundSecrets: createInboundSecrets({
      given: settings.inboundSecrets,
      folder: settings.inboundSecretsDir,
    }),
    rate: { ratePerSecond: settings.apiRateLimit, burst: 2 * settings.apiRateLimit },
    cluster: clusterOf(settings),
    onRefused: (refusal) => refusals.note(refusal),
    onError: (error) => log.error({ err: error }, "request failed"),
  });
  const { server, port } = await listen(api.fetch, {
    hostname: apiHost,
    port: apiPort,
    requestTimeoutMs,
  });
  const stopBackground = startBackground({ access, guards, metrics, settings, log });
  const url = `http://${apiHost.includes(":") ? `[${apiHost}]` : apiHost}:${port}`;
  log.info({ url }, "api listening");
  if ((token ?? signIn) === undefined && !isLoopback(apiHost)) void warnWithoutTokens(access, log);
  return {
    url,
    async stop() {
      log.info({}, "api stopping");
      api.drain();
      await drained();
      api.close();
      await new Promise<void>((resolve) => {
        const timer = setTimeout(() => {
          if ("closeAllConnections" in server) server.closeAllConnections();
        }, CLOSE_MS);
        // A keep-alive connection becomes idle only after its last response.
        const idle = setInterval(() => {
          if ("closeIdleConnections" in server) server.closeIdleConnections();
        }, LOOK_FOR_IDLE_MS);
        server.close(() => {
          clearTimeout(timer);
          clearInterval(idle);
          resolve();
        });
      });
      await stopBackground();
      await Promise.all([access.close(), guards.close(), reviews?.close()]);
      refusals.flush();
      await tracing?.flush();
    },
  };
}

/** @throws KonvergeError `invalid_config` if Kubernetes tokens are accepted, but there are no credentials of the API server */
function openReviews(
  { kubeAudiences: audiences, kubeconfig, context }: Settings,
  log: ReturnType<typeof createLogger>,
): KubernetesReviews | undefined {
  if (audiences === undefined) return undefined;
  return createKubernetesReviews({
    credentials: loadKubeCredentials(defined({ kubeconfigPath: kubeconfig, context })),
    audiences,
    onError: (error) => log.warn({ err: error }, "kubernetes review failed"),
  });
}

/** @throws KonvergeError `invalid_config` if settings or the file of the client secret are missing */
function openSignIn(
  settings: Settings,
  log: ReturnType<typeof createLogger>,
): ApiOptions["signIn"] {
  const signIn = readSignInSettings(settings);
  if (signIn === undefined) return undefined;
  const { clientSecretFile: path } = signIn;
  const name = "KONVERGE_OIDC_CLIENT_SECRET_FILE";
  const report = (problem: string) =>
    invalidConfig([
      { pointer: `/${name}`, detail: `${name}: ${path} ${problem}; write the client secret to it` },
    ]);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw report(`cannot be read: ${ensureError(error).message}`);
  }
  if (text.trim() === "") throw report("is empty");
  return {
    settings: signIn,
    onError: (error) => log.warn({ err: error }, "sign-in failed"),
  };
}

/** Measures the queues and streams the audit log. Returns a function that stops both. */
function startBackground({
  access,
  guards,
  metrics,
  settings,
  log,
}: {
  readonly access: QueueAccess;
  readonly guards: GuardControl;
  readonly metrics: Metrics;
  readonly settings: Settings;
  readonly log: ReturnType<typeof createLogger>;
}): () => Promise<void> {
  const stopSampling = startSampling({
    access,
    guards,
    onError: (error) => log.warn({ err: error }, "queue measurement failed"),
  });
  const streams = targetsOf(settings).map((to) =>
    access.audit.stream(to, (error, target) =>
      log.warn({ err: error, target }, "audit entries not delivered"),
    ),
  );
  const unobserve = streams.map(({ target, read }) =>
    metrics.observeAuditStream(target.sink, read),
  );
  return async () => {
    for (const stop of unobserve) stop();
    await stopSampling();
    await Promise.all(streams.map((each) => each.stop()));
  };
}

/** The targets of the audit log. */
function targetsOf({ auditFile, auditUrl, auditUrlToken: token }: Settings): AuditTarget[] {
  return [
    ...(auditFile === undefined ? [] : [fileTarget(auditFile)]),
    ...(auditUrl === undefined ? [] : [httpTarget(auditUrl, { token })]),
  ];
}

/** All requests are rejected until a token exists. A token can be created later, and Redis can be unavailable now. */
async function warnWithoutTokens(
  access: QueueAccess,
  log: ReturnType<typeof createLogger>,
): Promise<void> {
  try {
    const tokens = await access.tokens.list();
    if (tokens.length === 0) log.warn({}, "no API token configured; all requests are rejected");
  } catch (error) {
    log.warn({ err: error }, "redis connection error");
  }
}

async function listen(
  fetch: Api["fetch"],
  options: {
    readonly hostname: string;
    readonly port: number;
    readonly requestTimeoutMs: number;
  },
) {
  return await new Promise<{ readonly server: ReturnType<typeof serve>; readonly port: number }>(
    (resolve, reject) => {
      const { requestTimeoutMs: requestTimeout, hostname, port } = options;
      // Two checks per timeout; the default of Node is 30 s.
      const connectionsCheckingInterval = requestTimeout / 2;
      const serverOptions = {
        requestTimeout,
        headersTimeout: requestTimeout,
        connectionsCheckingInterval,
      };
      const server = serve({ fetch, hostname, port, serverOptions }, (info) =>
        resolve({ server, port: info.port }),
      );
      server.once("error", (error: NodeJS.ErrnoException) => {
        reject(
          error.code === "EADDRINUSE"
            ? new KonvergeError(
                "invalid_config",
                `KONVERGE_API_PORT: port ${port} is in use; set another port, or 0 for a free one`,
                {
                  cause: error,
                },
              )
            : error,
        );
      });
    },
  );
}
