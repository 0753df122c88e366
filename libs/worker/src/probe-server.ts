import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Settings } from "@konverge/contracts";
import { ensureError, KonvergeError } from "@konverge/core";
import type { Metrics } from "@konverge/telemetry";

const DEFAULT_PORT = 9090;

export interface ProbeServerOptions {
  readonly settings: Pick<Settings, "metricsPort" | "metricsHost">;
  readonly metrics: Metrics;
  readonly isReady: () => boolean;
}

/** The HTTP endpoints of a process: /metrics, /livez and /readyz. */
export interface ProbeServer {
  readonly url: string;
  close(): Promise<void>;
}

/** @throws KonvergeError `invalid_config` if the port is in use */
export async function startProbeServer({
  settings,
  metrics,
  isReady,
}: ProbeServerOptions): Promise<ProbeServer> {
  const server = createServer((request, response) => {
    try {
      answerProbe(request, response, { metrics, isReady });
    } catch {
      // A synchronous listener must not throw: the exception would end the process.
      response.destroy();
    }
  });
  await listen(server, settings);
  return {
    url: urlOf(server, settings.metricsHost),
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve, reject) => {
        server.close((error) => (error === undefined ? resolve() : reject(error)));
      });
    },
  };
}

function answerProbe(
  request: IncomingMessage,
  response: ServerResponse,
  { metrics, isReady }: Pick<ProbeServerOptions, "metrics" | "isReady">,
): void {
  // Not parsed as a URL, because a client may send any text, such as "//".
  const [path] = (request.url ?? "/").split("?", 1);
  const answer = (status: number, text: string, contentType = "text/plain; charset=utf-8") =>
    response.writeHead(status, { "content-type": contentType }).end(text);
  switch (path) {
    case "/metrics":
      metrics.text().then(
        (text) => answer(200, text, metrics.contentType),
        (error: unknown) => answer(500, ensureError(error).message),
      );
      return;
    case "/livez":
      answer(200, "ok\n");
      return;
    case "/readyz":
      answer(
        isReady() ? 200 : 503,
        isReady()
          ? "ok\n"
          : "not ready: first lists incomplete, stopping, or API server unreachable\n",
      );
      return;
    default:
      answer(404, "not found; valid paths: /metrics, /livez, /readyz\n");
  }
}

/** Workers on one machine share the default port, so only an explicit one must be free. */
async function listen(
  server: Server,
  { metricsPort, metricsHost }: Pick<Settings, "metricsPort" | "metricsHost">,
): Promise<void> {
  try {
    await listenOn(server, metricsPort ?? DEFAULT_PORT, metricsHost);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    if (metricsPort === undefined) return await listenOn(server, 0, metricsHost);
    throw new KonvergeError(
      "invalid_config",
      `KONVERGE_METRICS_PORT: port ${metricsPort} is in use; set another port, or 0 for a free one`,
      { cause: error },
    );
  }
}

function listenOn(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

function urlOf(server: Server, host: string): string {
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
