import { createClient, type Client } from "@konverge/client";
import type { Settings } from "@konverge/contracts";
import { userInfo } from "node:os";
import { readVersion } from "../process/version.ts";

export interface OpenClient {
  readonly client: Client;
  /** Where Redis is asked without a server between. */
  readonly redisUrl: string | undefined;
  /** What the API in this process answered `internal` for, which it keeps from strangers. */
  failure(): unknown;
  close(): Promise<void>;
}

/** Of the API in this process, which nobody else reaches. */
const HERE = "http://localhost";

/**
 * The HTTP API of `settings.server`, or without one the same API in this process, on Redis alone: commands cannot tell them
 * apart.
 */
export async function openClient(settings: Settings): Promise<OpenClient> {
  const { server, token, redisUrl, prefix, cluster } = settings;
  if (server !== undefined) {
    const headers = { "user-agent": `konverge-cli/${readVersion()}` };
    const client = createClient({ server, token, headers });
    return {
      client,
      redisUrl: undefined,
      failure: () => undefined,
      close: async () => undefined,
    };
  }
  const [{ createApi, openQueueAccess }, { openGuardControl }, { createMetrics }] =
    await Promise.all([
      import("@konverge/api"),
      import("@konverge/guard"),
      import("@konverge/telemetry"),
    ]);
  // What happens to the connection is told by the call that needed it.
  const access = openQueueAccess({ redisUrl, prefix, onError: () => undefined });
  const guards = openGuardControl({ redis: { url: redisUrl }, prefix });
  const thrown: unknown[] = [];
  const api = createApi({
    access,
    guards,
    metrics: createMetrics({ version: readVersion() }),
    token: undefined,
    inProcess: { user: systemName() },
    cluster,
    onError: (error) => thrown.push(error),
  });
  const client = createClient({
    server: HERE,
    // Redis away is told within seconds; a machine that is busy starting us gets a second chance.
    retry: { retries: 1 },
    fetch: async (request) => await api.fetch(request),
  });
  return {
    client,
    redisUrl,
    failure: () => thrown[0],
    async close() {
      await Promise.all([access.close(), guards.close()]);
    },
  };
}

/** Of the requests; orders name their author. A container may run under an id that has no name. */
function systemName(): string {
  try {
    return userInfo().username;
  } catch {
    return "cli";
  }
}
