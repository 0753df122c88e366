import {
  defined,
  isKonvergeError,
  KonvergeError,
  resourceId,
  type Gate,
  type GateCall,
  type Permit,
} from "@konverge/core";
import type { ApiCall } from "../contract/api-call.ts";
import type { Authorization } from "../credentials/authorization-cache.ts";
import type { KubeCredentials } from "../credentials/kube-credentials.ts";
import { ConnectionBroken } from "../errors/connection-broken.ts";
import { admitUrgently } from "./admit-urgently.ts";
import { assertPlannable } from "./assert-plannable.ts";
import { startCallReport } from "./call-report.ts";
import { contentOf, failureOf, responseOf, type Content } from "./call-result.ts";
import {
  createConnectionPool,
  type CallDispatcher,
  type ConnectionPool,
} from "./connection-pool.ts";
import { createConnectionSlots, type ConnectionSlots } from "./connection-slots.ts";
import type { ApiAnswer, HttpAnswer } from "../contract/http-answer.ts";
import { exchange, type HttpRequest } from "./http-exchange.ts";
import { openStream } from "./http-stream.ts";
import { createListCosts, type ListCosts } from "./list-costs.ts";

export interface TransportOptions {
  readonly credentials: KubeCredentials;
  readonly gate: Gate;
  readonly userAgent: string;
  readonly maxConnections: number;
  readonly requestTimeoutMs: number;
  readonly dispatcher?: CallDispatcher | undefined;
  readonly isDryRunOnly?: boolean | undefined;
}

/** Extra connections, so that Lease renewals do not queue behind slow calls. */
const CRITICAL_SLOTS = 4;

/** The only way to the API server. Each call takes a connection slot, then a token, and is then sent (P5). */
export class Transport {
  readonly #options: TransportOptions;
  readonly #calls: ConnectionPool;
  readonly #watches: ConnectionPool;
  readonly #ordinarySlots: ConnectionSlots;
  readonly #criticalSlots: ConnectionSlots = createConnectionSlots(CRITICAL_SLOTS);
  readonly #listCosts: ListCosts = createListCosts();
  readonly #closed: AbortController = new AbortController();

  constructor(options: TransportOptions) {
    const { credentials, maxConnections, dispatcher } = options;
    this.#options = options;
    this.#calls = createConnectionPool({
      credentials,
      connections: maxConnections + CRITICAL_SLOTS,
      dispatcher,
    });
    this.#watches = createConnectionPool({ credentials, dispatcher });
    this.#ordinarySlots = createConnectionSlots(maxConnections);
  }

  /** @throws KubeApiError; KonvergeError `kube_timeout`, `kube_unreachable`, `deferred`; the signal's reason */
  async send(call: ApiCall): Promise<ApiAnswer> {
    try {
      return await this.#sendOnce(call);
    } catch (error) {
      // The server had just closed the kept-alive connection.
      const isRepeatable = call.method === "GET" || call.guarded === true;
      if (!(error instanceof ConnectionBroken) || !isRepeatable) throw error;
      return await this.#sendOnce(call).catch((again: unknown) => {
        // A rejection of the second request does not tell whether the first one changed the object.
        throw call.method === "GET" || call.signal?.aborted === true ? again : error;
      });
    }
  }

  /** Like `send`, for a watch, on separate connections. A stream without data for `silentMs` is aborted. */
  async stream(call: ApiCall, silentMs: number): Promise<AsyncIterable<Uint8Array>> {
    this.#assertOpen();
    assertPlannable(call, this.#options);
    const requestedAtMs = performance.now();
    const { headers, tls } = await this.#authorize();
    const permit = await this.#admit(call);
    const report = startCallReport(call, performance.now() - requestedAtMs);
    const request = this.#toRequest(call, report.withTrace(headers), this.#watches);
    const opened = await openStream(this.#watches.for(tls), request, {
      silentMs,
      closed: this.#closed.signal,
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
    const { status } = opened.answer;
    const content = contentOf(call, opened.answer);
    this.#settle(permit, opened.answer, content);
    report.ended({ status, reason: reasonOf(content) });
    throw content.kind === "success"
      ? new KonvergeError("kube_unreachable", `watch returned ${status} instead of a stream`)
      : content.error;
  }

  async close(): Promise<void> {
    this.#closed.abort(new KonvergeError("cancelled", "the Kubernetes client is closed"));
    await Promise.all([this.#calls.close(), this.#watches.close()]);
  }

  async #sendOnce(call: ApiCall): Promise<ApiAnswer> {
    this.#assertOpen();
    assertPlannable(call, this.#options);
    const requestedAtMs = performance.now();
    const { headers, tls } = await this.#authorize();
    const slots = call.scope.priority === "critical" ? this.#criticalSlots : this.#ordinarySlots;
    await slots.take(call.signal);
    let permit: Permit;
    try {
      permit = await this.#admit(call);
    } catch (error) {
      slots.give();
      throw error;
    }
    const report = startCallReport(call, performance.now() - requestedAtMs);
    const request = this.#toRequest(call, report.withTrace(headers), this.#calls);
    let answer: HttpAnswer;
    try {
      answer = await exchange(
        () => this.#calls.for(tls),
        request,
        () => slots.give(),
      );
    } catch (thrown) {
      const { aborted, reason } = this.#closed.signal;
      const error: unknown = aborted ? reason : thrown;
      permit.settle(failureOf(error, call.signal));
      report.ended({ status: 0 });
      throw error;
    }
    call.onAnswer?.(answer);
    const content = contentOf(call, answer);
    this.#settle(permit, answer, content);
    const { status } = answer;
    if (content.kind !== "success") {
      report.ended({ status, reason: reasonOf(content) });
      throw content.error;
    }
    if (call.verb === "list") this.#listCosts.note(resourceOf(call), answer.body.length);
    const { value } = content;
    report.ended({ status, value });
    return { status, headers: answer.headers, text: answer.body, value };
  }

  #assertOpen(): void {
    if (this.#closed.signal.aborted)
      throw new KonvergeError("cancelled", "the Kubernetes client is closed");
  }

  /** Before the gate, because a plugin takes longer than a token is valid. */
  async #authorize(): Promise<Authorization> {
    const { credentials, gate } = this.#options;
    try {
      return await credentials.authorize();
    } catch (error) {
      throw isKonvergeError(error) ? (gate.withoutCredentials?.(error) ?? error) : error;
    }
  }

  #admit(call: ApiCall): Promise<Permit> {
    const { gate } = this.#options;
    const { scope, signal } = call;
    const { priority = "event", isRunning, isProbe = false, urgency } = scope;
    const resource = resourceOf(call);
    const gateCall: GateCall = {
      verb: call.verb,
      resource,
      priority,
      running: isRunning?.() ?? false,
      probe: isProbe,
      cost: call.verb === "list" ? this.#listCosts.of(resource) : 1,
    };
    return urgency?.isHeld === true
      ? admitUrgently(gate, gateCall, { urgency, signal })
      : gate.admit(gateCall, defined({ signal }));
  }

  #settle(permit: Permit, answer: HttpAnswer, content: Content): void {
    if (content.kind === "foreign") return permit.settle({ kind: "network" });
    permit.settle(responseOf(answer, content.kind === "error" ? content.error : undefined));
    if (answer.status === 401) this.#options.credentials.forget();
  }

  #toRequest(
    call: ApiCall,
    headers: Readonly<Record<string, string>>,
    pool: ConnectionPool,
  ): HttpRequest {
    return {
      origin: pool.origin,
      method: call.method,
      path: pool.basePath + call.path,
      headers: {
        Accept: call.accept ?? "application/json",
        ...call.headers,
        "User-Agent": this.#options.userAgent,
        ...headers,
        ...defined({ "Content-Type": call.contentType }),
      },
      ...defined({ body: call.body }),
      signal: call.signal,
      deadlineMs: this.#options.requestTimeoutMs,
    };
  }
}

function resourceOf({ ref }: ApiCall): string {
  return ref === undefined ? "" : resourceId(ref);
}

function reasonOf(content: Content): string {
  return content.kind === "error" ? content.error.reason : "";
}
