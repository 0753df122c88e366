import {
  defined,
  ensureError,
  isKonvergeError,
  KonvergeError,
  parseJson,
  resourceId,
  type CallResult,
  type Gate,
  type JsonValue,
  type Permit,
  type FaultScope,
} from "@konverge/core";
import { startCallReport } from "./call-report.ts";
import type { ApiCall } from "../contract/api-call.ts";
import { createConnectionPool } from "./connection-pool.ts";
import { createConnectionSlots } from "./connection-slots.ts";
import { ConnectionBroken, exchange, type HttpAnswer, type HttpRequest } from "./http-exchange.ts";
import { openStream } from "./http-stream.ts";
import type { KubeCredentials } from "../credentials/kube-credentials.ts";
import { createListCosts } from "./list-costs.ts";
import { parseApiError } from "../errors/parse-api-error.ts";

export interface ApiAnswer {
  readonly status: number;
  readonly headers: HttpAnswer["headers"];
  readonly text: string;
  /** The text as JSON, where the server says that it is JSON. */
  readonly value: JsonValue | undefined;
}

export interface TransportOptions {
  readonly credentials: KubeCredentials;
  readonly gate: Gate;
  readonly userAgent: string;
  readonly maxConnections: number;
  readonly requestTimeoutMs: number;
}

/** The only way to the API server: connection slot, token, send (P5). */
export interface Transport {
  /** @throws KubeApiError; KonvergeError `kube_timeout`, `kube_unreachable`, `deferred`; the signal's reason */
  send(call: ApiCall): Promise<ApiAnswer>;
  /** As `send`, and the JSON of the answer. */
  json(call: ApiCall): Promise<JsonValue>;
  /** As `send` for a watch, on connections of its own. Silence of `silentMs` breaks the stream. */
  stream(call: ApiCall, silentMs: number): Promise<AsyncIterable<Uint8Array>>;
  close(): Promise<void>;
}

/** Lease renewals must not stand in line behind a hundred slow calls. */
const CRITICAL_SLOTS = 4;

export function createTransport(options: TransportOptions): Transport {
  const { credentials, gate, userAgent, maxConnections, requestTimeoutMs } = options;
  const calls = createConnectionPool({ credentials, connections: maxConnections + CRITICAL_SLOTS });
  const watches = createConnectionPool({ credentials });
  const ordinarySlots = createConnectionSlots(maxConnections);
  const criticalSlots = createConnectionSlots(CRITICAL_SLOTS);
  const closed = new AbortController();
  const listCosts = createListCosts();

  const requestOf = (
    call: ApiCall,
    headers: Readonly<Record<string, string>>,
    pool: typeof calls,
  ): HttpRequest => ({
    origin: pool.origin,
    method: call.method,
    path: pool.basePath + call.path,
    headers: {
      Accept: "application/json",
      "User-Agent": userAgent,
      ...headers,
      ...(call.contentType === undefined ? {} : { "Content-Type": call.contentType }),
    },
    ...defined({ body: call.body }),
    signal: call.signal,
    deadlineMs: requestTimeoutMs,
  });
  const admit = (call: ApiCall): Promise<Permit> =>
    gate.admit(
      {
        verb: call.verb,
        resource: resourceOf(call),
        priority: call.scope.priority ?? "event",
        running: call.scope.isRunning?.() ?? false,
        probe: call.scope.isProbe ?? false,
        cost: call.verb === "list" ? listCosts.of(resourceOf(call)) : 1,
      },
      call.signal === undefined ? {} : { signal: call.signal },
    );
  const assertOpen = () => {
    if (closed.signal.aborted)
      throw new KonvergeError("cancelled", "the Kubernetes client is closed");
  };

  const sendOnce = async (call: ApiCall): Promise<ApiAnswer> => {
    assertOpen();
    const askedAtMs = performance.now();
    const { headers, tls } = await credentials.authorize();
    const slots = call.scope.priority === "critical" ? criticalSlots : ordinarySlots;
    await slots.take(call.signal);
    let permit: Permit;
    try {
      permit = await admit(call);
    } catch (error) {
      slots.give();
      throw error;
    }
    const report = startCallReport(call, performance.now() - askedAtMs);
    let answer: HttpAnswer;
    try {
      answer = await exchange(
        calls.for(tls),
        requestOf(call, report.withTrace(headers), calls),
        () => slots.give(),
      );
    } catch (thrown) {
      const error: unknown = closed.signal.aborted ? closed.signal.reason : thrown;
      permit.settle(failureOf(error, call.signal));
      report.ended({ status: 0 });
      throw error;
    }
    const error = errorOf(call, answer);
    permit.settle(responseOf(answer, error));
    if (error === undefined && call.verb === "list")
      listCosts.note(resourceOf(call), answer.body.length);
    if (error !== undefined) {
      if (answer.status === 401) credentials.forget();
      report.ended({ status: answer.status, reason: error.reason });
      throw error;
    }
    const value = isJson(answer) ? parseAnswer(answer.body, call) : undefined;
    report.ended({ status: answer.status, value });
    return { status: answer.status, headers: answer.headers, text: answer.body, value };
  };

  const send = async (call: ApiCall): Promise<ApiAnswer> => {
    try {
      return await sendOnce(call);
    } catch (error) {
      // A kept-alive connection that the server had just closed. Only a read may be sent twice (client-go does the same).
      if (!(error instanceof ConnectionBroken) || call.method !== "GET") throw error;
      return sendOnce(call);
    }
  };

  return {
    send,
    async json(call) {
      const { value, text } = await send(call);
      return value ?? parseAnswer(text, call);
    },
    async stream(call, silentMs) {
      assertOpen();
      const askedAtMs = performance.now();
      const { headers, tls } = await credentials.authorize();
      const permit = await admit(call);
      const report = startCallReport(call, performance.now() - askedAtMs);
      const request = requestOf(call, report.withTrace(headers), watches);
      const opened = await openStream(watches.for(tls), request, {
        silentMs,
        closed: closed.signal,
      }).catch((error: unknown) => {
        permit.settle(failureOf(error, call.signal));
        report.ended({ status: 0 });
        throw error;
      });
      if (opened.kind === "stream") {
        permit.settle({ kind: "response", status: 200 });
        report.ended({ status: 200 });
        return opened.chunks;
      }
      const error = errorOf(call, opened.answer);
      permit.settle(responseOf(opened.answer, error));
      report.ended({
        status: opened.answer.status,
        ...(error === undefined ? {} : { reason: error.reason }),
      });
      if (opened.answer.status === 401) credentials.forget();
      throw (
        error ??
        new KonvergeError(
          "kube_unreachable",
          `watch answered ${opened.answer.status} instead of a stream`,
        )
      );
    },
    async close() {
      closed.abort(new KonvergeError("cancelled", "the Kubernetes client is closed"));
      await Promise.all([calls.close(), watches.close()]);
    },
  };
}

function isJson({ headers }: HttpAnswer): boolean {
  const type = headers["content-type"];
  return typeof type === "string" && type.startsWith("application/json");
}

/** @throws KonvergeError `kube_unreachable` for a success whose body is not JSON, as of a captive proxy */
function parseAnswer(text: string, { verb, path, sensitive }: ApiCall): JsonValue {
  try {
    return parseJson(text);
  } catch (error) {
    const start = sensitive ? "" : `: ${JSON.stringify(text.slice(0, 80))}`;
    throw new KonvergeError(
      "kube_unreachable",
      `${verb} ${path} answered a body that is not JSON${start}; is this an API server?`,
      sensitive ? {} : { cause: ensureError(error) },
    );
  }
}

function errorOf(
  call: ApiCall,
  { status, headers, body }: HttpAnswer,
): ReturnType<typeof parseApiError> | undefined {
  if (status >= 200 && status < 300) return undefined;
  const retryAfter = headers["retry-after"];
  return parseApiError({
    status,
    body,
    retryAfter: typeof retryAfter === "string" ? retryAfter : undefined,
    verb: call.verb,
    ref: call.ref,
    sensitive: call.sensitive,
  });
}

function resourceOf({ ref }: ApiCall): string {
  return ref === undefined ? "" : resourceId(ref);
}

function responseOf(
  { status, headers }: HttpAnswer,
  error: ReturnType<typeof parseApiError> | undefined,
): CallResult {
  if (error === undefined) return { kind: "response", status };
  const { retryAfterMs } = error;
  const concern = concernOf(error, headers);
  return {
    kind: "response",
    status,
    ...defined({ retryAfterMs, concern }),
  };
}

/** Whose trouble an error tells of, where it is not the API server's own. */
function concernOf(
  { status, trait }: ReturnType<typeof parseApiError>,
  headers: HttpAnswer["headers"],
): FaultScope | undefined {
  switch (trait) {
    case "extension":
      return "part";
    case "disruptionBudget":
      return "object";
    case "resourceVersionTooLarge":
    case "cacheNotReady":
      return "stale";
    case "replaced":
    case "quotaExceeded":
    case undefined:
      break;
  }
  // A replica that shuts down asks everybody to call again, over a new connection.
  return status === 429 && headers["connection"] === "close" ? "connection" : undefined;
}

function failureOf(error: unknown, signal: AbortSignal | undefined): CallResult {
  if (signal?.aborted === true) return { kind: "aborted" };
  if (isKonvergeError(error) && error.code === "kube_timeout") return { kind: "timeout" };
  if (isKonvergeError(error) && error.code === "cancelled") return { kind: "aborted" };
  return { kind: "network" };
}
