import { defined } from "@konverge/core";
import { createApi, openQueueAccess, type ApiOptions, type QueueAccess } from "@konverge/api";
import { problemSchema, type NewToken, type Problem } from "@konverge/contracts";
import { openGuardControl, type GuardControl } from "@konverge/guard";
import { createMetrics } from "@konverge/telemetry";
import { afterEach, beforeEach, expect, onTestFinished } from "vitest";
import { announce, NODE_POOL } from "../queue/announce.ts";
import { useQueues, type QueueHarness } from "../queue/queue-harness.ts";

export interface Sent {
  readonly token?: string | undefined;
  readonly headers?: Record<string, string>;
  readonly method?: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as it is, instead of `body`. */
  readonly bytes?: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly signal?: AbortSignal;
}
export type Call = (path: string, sent?: Sent) => Promise<Response>;

export interface ApiHarness {
  readonly queues: QueueHarness;
  readonly access: QueueAccess;
  readonly guards: GuardControl;
  announce(controller: { readonly name: string; readonly kind: string }): Promise<void>;
  /** An API on loopback by default. */
  serve(options?: Partial<ApiOptions>): Call;
  token(name: string, rest?: Partial<NewToken>): Promise<string>;
}

/**
 * The API on a real Redis, over what a worker leaves there: controllers `node-pool` (namespaced) and `nodes` (not), unless
 * `announces` is false.
 */
export function useApi({
  announces = true,
  ...options
}: {
  readonly answerBudgetBytes?: number;
  readonly announces?: boolean;
  readonly runRetentionMs?: number;
} = {}): ApiHarness {
  const queues = useQueues();
  let access: QueueAccess | undefined;
  let guards: GuardControl | undefined;
  const opened = () => {
    if (access === undefined || guards === undefined) throw new Error("not opened yet");
    return { access, guards };
  };
  const announceKind: ApiHarness["announce"] = ({ name, kind }) =>
    announce(queues, [
      {
        ...NODE_POOL,
        name,
        kind,
        resource: `${kind.toLowerCase()}s`,
        scope: name === "nodes" ? "Cluster" : "Namespaced",
      },
    ]);
  beforeEach(async () => {
    const { prefix, apiTarget: redis } = queues;
    if (announces) {
      await announceKind({ name: "node-pool", kind: "NodePool" });
      await announceKind({ name: "nodes", kind: "Node" });
    }
    access = openQueueAccess({ redis, prefix, onError: () => undefined, ...options });
    guards = openGuardControl({ redis, prefix });
  });
  afterEach(async () => {
    await Promise.all([access?.close(), guards?.close()]);
  });
  return {
    queues,
    get access() {
      return opened().access;
    },
    get guards() {
      return opened().guards;
    },
    announce: announceKind,
    serve(given = {}) {
      const api = createApi({
        ...opened(),
        metrics: createMetrics({ version: "test" }),
        token: undefined,
        cluster: "default",
        onError: (error) => expect.unreachable(String(error)),
        // On a slow machine, searches would end early and return less.
        searchMs: Infinity,
        ...given,
      });
      onTestFinished(() => api.close());
      return async (path, { token, headers = {}, body, bytes, signal, ...sent } = {}) => {
        const { method = body === undefined ? "GET" : "POST" } = sent;
        return await api.fetch(
          new Request(`http://localhost:7070${path}`, {
            method,
            headers: {
              host: "localhost:7070",
              ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
              ...(body === undefined ? {} : { "content-type": "application/json" }),
              ...headers,
            },
            ...(body === undefined ? {} : { body: JSON.stringify(body) }),
            ...defined({ body: bytes, signal }),
            ...(bytes instanceof ReadableStream ? { duplex: "half" } : {}),
          }),
        );
      };
    },
    async token(name, rest = {}) {
      const input = { name, role: "viewer", scope: {}, ...rest } as const;
      return (await opened().access.tokens.create(input, "ada")).token;
    },
  };
}

export async function problemIn(response: Response): Promise<Problem> {
  expect(response.headers.get("content-type")).toBe("application/problem+json");
  const problem = problemSchema.parse(await response.json());
  expect(problem.status).toBe(response.status);
  return problem;
}
