import { resourceOfPath, type InProcessAnswer, type InProcessRequest } from "@konverge/apiserver";
import type { CallDispatcher } from "@konverge/kube";
import { canConflict, failedAnswer } from "./failed-answer.ts";
import type { SimulatedFault } from "./fault.ts";
import type { SimulatedRun } from "./simulated-run.ts";
import { places, type Actor, type Place } from "./virtual-clock.ts";
import { WatchDelivery } from "./watch-delivery.ts";

type Dispatch = CallDispatcher["dispatch"];
type Options = Parameters<Dispatch>[0];
type Handler = Parameters<Dispatch>[1];
type Controller = Parameters<NonNullable<Handler["onRequestStart"]>>[0];
type Answered = Awaited<ReturnType<CallDispatcher["request"]>>;

/** The effects of an actor's crash or suspension on the others. */
export interface ActorFaults {
  readonly crash: (actor: Actor, downMs: number) => void;
  readonly suspend: (actor: Actor, ms: number) => void;
}

export interface SimulatedWireOptions {
  readonly run: SimulatedRun;
  readonly actor: Actor;
  readonly faults?: ActorFaults;
}

interface Exchange {
  readonly request: InProcessRequest;
  readonly handler: Handler;
  readonly controller: Controller;
  readonly place: Place;
  readonly text: string;
  isOver: boolean;
}

/** The connection of an actor to the API server: no sockets, virtual latency, and the faults of the run. */
export class SimulatedWire implements CallDispatcher {
  readonly #run: SimulatedRun;
  readonly #actor: Actor;
  readonly #faults: ActorFaults | undefined;
  /** Time before which no watch event arrives. */
  #eventsFromMs = 0;

  constructor({ run, actor, faults }: SimulatedWireOptions) {
    this.#run = run;
    this.#actor = actor;
    this.#faults = faults;
  }

  dispatch: Dispatch = (options: Options, handler: Handler) => {
    const request = toRequest(options);
    const exchange: Exchange = {
      request,
      handler,
      text: describeRequest(request),
      isOver: false,
      place: places.getStore() ?? this.#run.place(this.#actor),
      controller: controllerOf((reason) => {
        exchange.isOver = true;
        queueMicrotask(() => handler.onResponseError?.(exchange.controller, reason));
      }),
    };
    handler.onRequestStart?.(exchange.controller, {});
    if (!exchange.isOver) this.#send(exchange);
    return true;
  };

  #send(exchange: Exchange): void {
    const run = this.#run;
    const { place, text } = exchange;
    if (place.attempt === undefined || this.#faults === undefined) {
      this.#land(exchange, { number: undefined, faults: [] });
      return;
    }
    const call = run.nextCall({ canConflict: canConflict(exchange.request) });
    const { faults } = call;
    const find = <K extends SimulatedFault["kind"]>(kind: K) =>
      faults.find((fault): fault is Extract<SimulatedFault, { kind: K }> => fault.kind === kind);
    if (find("early") !== undefined) run.onEarly();
    const crash = find("crash");
    const suspend = find("suspend");
    if (crash?.when === "before") {
      run.note(this.#actor.name, `call ${call.number}: ${text}, not sent: the worker crashes`);
      this.#faults.crash(this.#actor, crash.downMs);
      return;
    }
    if (suspend !== undefined) this.#faults.suspend(this.#actor, suspend.ms);
    // The request leaves when the process runs again.
    if (suspend?.when === "before") {
      run.clock.after(place, 0, () => this.#land(exchange, call));
    } else this.#land(exchange, call);
  }

  #land(
    exchange: Exchange,
    call: {
      readonly number: number | undefined;
      readonly faults: readonly SimulatedFault[];
    },
  ): void {
    const run = this.#run;
    const { request, place, text } = exchange;
    const slow = call.faults.find((fault) => fault.kind === "slow");
    const fail = call.faults.find((fault) => fault.kind === "fail");
    const crash = call.faults.find((fault) => fault.kind === "crash");
    const isStale = call.faults.some((fault) => fault.kind === "stale");
    const beforeMs = run.latencyMs + (slow?.when === "before" ? slow.ms : 0);
    const afterMs = run.latencyMs + (slow?.when === "after" ? slow.ms : 0);
    run.clock.after(run.cloud, beforeMs, () => {
      const isLanded = fail === undefined || fail.landed;
      const stale = isStale ? readStale(run, request) : undefined;
      const serve = async () => {
        if (!isLanded) return undefined;
        return stale ?? (await run.land(place, () => run.server.request(request)));
      };
      const answered = async () => {
        const answer = await serve();
        const sent = fail === undefined ? answer : failedAnswer(fail.answer, request);
        if (call.number !== undefined) {
          const landed = fail === undefined ? "" : isLanded ? " (executed)" : " (not executed)";
          const status = sent?.status ?? "no response";
          run.note(this.#actor.name, `call ${call.number}: ${text} → ${status}${landed}`);
        }
        if (crash?.when === "after") this.#faults?.crash(this.#actor, crash.downMs);
        if (sent !== undefined) {
          run.clock.after(place, afterMs, () => deliver(exchange, sent));
        } else if (fail?.answer === "reset") {
          run.clock.after(place, afterMs, () => breakOff(exchange));
        }
      };
      void answered();
    });
  }

  request = ((options: Options & { signal?: AbortSignal }) =>
    this.#open(options)) as CallDispatcher["request"];

  async #open(options: Options & { signal?: AbortSignal }): Promise<Answered> {
    const run = this.#run;
    const request = toRequest(options);
    const place = run.place(this.#actor);
    const delivery = new WatchDelivery(place);
    const cut = { run: () => undefined as void, isOver: false };
    const opened = Promise.withResolvers<InProcessAnswer | undefined>();
    const { resource } = resourceOfPath(request.path);
    const broken = `${this.#actor.name} watches ${resource} again`;
    const end = () => delivery.end();
    const line = (text: string) => {
      if (cut.isOver || this.#actor.deadAtMs !== undefined) return;
      if (!text.startsWith('{"type":"BOOKMARK"') && this.#isCut(resource)) {
        cut.isOver = true;
        run.pending.add(broken);
        run.server.compact();
        queueMicrotask(() => cut.run());
        delivery.break();
        return;
      }
      delivery.send(text, Math.max(run.latencyMs, this.#eventsFromMs - run.clock.nowMs));
    };
    run.clock.after(run.cloud, run.latencyMs, () => {
      const open = async () => {
        const answer = await run.land(place, () => run.server.watch(request, { line, end }));
        run.pending.delete(broken);
        if (typeof answer === "function") cut.run = answer;
        const refused = typeof answer === "function" ? undefined : answer;
        run.clock.after(place, run.latencyMs, () => opened.resolve(refused));
      };
      void open();
    });
    options.signal?.addEventListener("abort", () => {
      cut.isOver = true;
      places.run(run.cloud, () => cut.run());
      const reason = options.signal?.reason as Error;
      delivery.stream.fail(reason);
      opened.reject(reason);
    });
    const refused = await opened.promise;
    return {
      statusCode: refused?.status ?? 200,
      headers: refused?.headers ?? { "content-type": "application/json" },
      body: refused === undefined ? delivery.stream : { text: async () => refused.body },
    } as unknown as Answered;
  }

  /** Applies the faults of a watch event. True if the watch breaks before it. */
  #isCut(resource: string): boolean {
    if (this.#faults === undefined || resource === "leases.coordination.k8s.io") return false;
    const run = this.#run;
    let isCut = false;
    for (const fault of run.nextEvent()) {
      if (fault.kind === "gap") isCut = true;
      if (fault.kind === "late") {
        // An earlier fault still holds back all later events.
        this.#eventsFromMs = Math.max(this.#eventsFromMs, run.clock.nowMs + fault.ms);
      }
    }
    return isCut;
  }
}

function toRequest({ method, path, headers, body }: Options): InProcessRequest {
  const lower = Object.entries((headers ?? {}) as Record<string, string>).map(
    ([name, value]) => [name.toLowerCase(), value] as const,
  );
  return {
    method,
    path,
    headers: Object.fromEntries(lower),
    body: typeof body === "string" ? body : "",
  };
}

function controllerOf(onAbort: (reason: Error) => void): Controller {
  const state = { aborted: false, reason: null as Error | null };
  return {
    get aborted() {
      return state.aborted;
    },
    get reason() {
      return state.reason;
    },
    paused: false,
    pause: () => undefined,
    resume: () => undefined,
    abort(reason: Error) {
      if (state.aborted) return;
      Object.assign(state, { aborted: true, reason });
      onAbort(reason);
    },
  };
}

function deliver(exchange: Exchange, { status, headers, body }: InProcessAnswer): void {
  if (exchange.isOver) return;
  exchange.isOver = true;
  const { handler, controller } = exchange;
  handler.onResponseStart?.(controller, status, headers);
  handler.onResponseData?.(controller, Buffer.from(body));
  handler.onResponseEnd?.(controller, {});
}

function breakOff(exchange: Exchange): void {
  if (exchange.isOver) return;
  exchange.isOver = true;
  const error = Object.assign(new Error("other side closed"), { code: "UND_ERR_SOCKET" });
  exchange.handler.onResponseError?.(exchange.controller, error);
}

/** The oldest state that a read accepts; undefined for other calls. */
function readStale(
  run: SimulatedRun,
  { method, path }: InProcessRequest,
): InProcessAnswer | undefined {
  const version = new URLSearchParams(path.split("?", 2)[1] ?? "").get("resourceVersion");
  const { resource, namespace, name } = resourceOfPath(path);
  if (method !== "GET" || name === "" || version === null || version === "0") return undefined;
  const key = namespace === "" ? name : `${namespace}/${name}`;
  const object = run.server.objectAt(resource, key, Number(version));
  if (object === undefined) return undefined;
  const headers = { "content-type": "application/json" };
  return { status: 200, headers, body: JSON.stringify(object) };
}

function describeRequest({ method, path, headers }: InProcessRequest): string {
  const { resource, namespace, name, subresource } = resourceOfPath(path);
  const what = [namespace, name].filter((part) => part !== "").join("/");
  const isApply = headers["content-type"]?.startsWith("application/apply-patch") === true;
  const verb = isApply ? "APPLY" : method;
  const kind = subresource === "" ? resource : `${resource}/${subresource}`;
  return [verb, kind, what].filter((part) => part !== "").join(" ");
}
