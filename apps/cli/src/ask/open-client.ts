import { createClient, type Client } from "@konverge/client";
import { clusterOf, type Settings } from "@konverge/contracts";
import { userInfo } from "node:os";
import { loadCodec } from "../process/load-codec.ts";
import { readVersion } from "../process/version.ts";
import { printLost } from "./run-with-access.ts";
import { redisOfCommand } from "../process/redis-of-command.ts";

export interface OpenClient {
  readonly client: Client;
  /** The Redis that is used without a server. */
  readonly redisUrl: string | undefined;
  /** The error behind the last `internal` response of the in-process API, which hides it. */
  failure(): unknown;
  close(): Promise<void>;
}

/** The address of the API in this process, which has no listener. */
const HERE = "http://localhost";

/** Opens the HTTP API of `settings.server`, or without one the same API in this process, on Redis alone. */
export async function openClient(settings: Settings): Promise<OpenClient> {
  const { server, token, redisUrl, prefix } = settings;
  const cluster = clusterOf(settings);
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
  // A connection error is reported by the call that needs the connection.
  const access = openQueueAccess({
    redis: redisOfCommand(redisUrl),
    prefix,
    runRetentionMs: settings.runRetention,
    codec: await loadCodec(settings.codec),
    auditKeys: settings.auditKeys,
    onAuditLost: printLost,
    onError: () => undefined,
  });
  const guards = openGuardControl({ redis: redisOfCommand(redisUrl), prefix });
  let hidden: unknown;
  const api = createApi({
    access,
    guards,
    metrics: createMetrics({ version: readVersion(), installation: prefix }),
    token: undefined,
    inProcess: { user: systemName() },
    cluster,
    onError: (error) => {
      hidden = error;
    },
  });
  const client = createClient({
    server: HERE,
    // Without Redis, the error must come within seconds.
    retry: { retries: 0 },
    fetch: async (request) => await api.fetch(request),
  });
  return {
    client,
    redisUrl,
    failure: () => hidden,
    async close() {
      await Promise.all([access.close(), guards.close()]);
    },
  };
}

/** Returns the user of reads; actions name their author. The user ID of a container may have no name. */
function systemName(): string {
  try {
    return userInfo().username;
  } catch {
    return "cli";
  }
}
