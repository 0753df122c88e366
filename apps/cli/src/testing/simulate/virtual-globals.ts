import { AsyncLocalStorage } from "node:async_hooks";
import nodeCrypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import net from "node:net";
import nodeTimers from "node:timers";
import timersPromises from "node:timers/promises";
import { places, START_MS, type Place, type Planned, type VirtualClock } from "./virtual-clock.ts";

/** A timer of a simulation. */
class VirtualTimer {
  readonly #place: Place;
  readonly #ms: number;
  readonly #run: () => void;
  readonly #isRepeated: boolean;
  #planned: Planned | undefined;

  constructor(place: Place, ms: number, run: () => void, isRepeated = false) {
    this.#place = place;
    // A repeated timer of 0 ms would stop the clock.
    this.#ms = Math.max(isRepeated ? 1 : 0, ms);
    // The callback keeps the asynchronous context of its caller.
    const inContext = AsyncLocalStorage.snapshot();
    this.#run = () => inContext(run);
    this.#isRepeated = isRepeated;
    this.refresh();
  }

  refresh(): this {
    this.close();
    const { clock, actor } = this.#place;
    this.#planned = clock.plan(
      actor,
      this.#ms,
      () => {
        if (this.#isRepeated) this.refresh();
        this.#run();
      },
      // Node.js runs timers with an equal delay in the order in which they were set.
      { isWork: false, line: `${this.#ms}` },
    );
    return this;
  }

  close(): this {
    if (this.#planned !== undefined) this.#place.clock.cancel(this.#planned);
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

type Callback = (...args: unknown[]) => void;
type Patch = readonly [target: object, name: string, make: (original: Function) => unknown];

const msOf = (ms: unknown): number => (Number(ms) > 0 ? Number(ms) : 0);

/** Replaces a function inside simulations; outside of them the original runs. */
function inside(
  target: object,
  name: string,
  run: (place: Place, args: unknown[], original: Function) => unknown,
): Patch {
  return [
    target,
    name,
    (original) =>
      function replaced(this: unknown, ...args: unknown[]) {
        const place = places.getStore();
        return place === undefined
          ? Reflect.apply(original, this, args)
          : Reflect.apply(run, this, [place, args, original]);
      },
  ];
}

const timeout = (isRepeated: boolean) => (place: Place, args: unknown[]) => {
  const [run, ms, ...rest] = args as [Callback, unknown, ...unknown[]];
  return new VirtualTimer(place, msOf(ms), () => run(...rest), isRepeated);
};

const immediate = (place: Place, args: unknown[]) => {
  const [run, ...rest] = args as [Callback, ...unknown[]];
  const inContext = AsyncLocalStorage.snapshot();
  const { clock, actor } = place;
  return new Immediate(
    clock.plan(actor, 0, () => inContext(run, ...rest), { isWork: true, line: "immediate" }),
    place,
  );
};

/** An immediate of a simulation. */
class Immediate {
  readonly #planned: Planned;
  readonly #place: Place;

  constructor(planned: Planned, place: Place) {
    this.#planned = planned;
    this.#place = place;
  }

  close(): void {
    this.#place.clock.cancel(this.#planned);
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

/** Timers may be cleared outside of the simulation that made them. */
const clear = (target: object, name: string): Patch => [
  target,
  name,
  (original) => (timer: unknown) => {
    if (timer instanceof VirtualTimer || timer instanceof Immediate) timer.close();
    else Reflect.apply(original, undefined, [timer]);
  },
];

const sleep = async (_place: Place, args: unknown[]) => {
  const [ms, value, options] = args as [unknown, unknown, { signal?: AbortSignal } | undefined];
  await new Promise<void>((resolve, reject) => {
    const signal = options?.signal;
    signal?.throwIfAborted();
    const timer = setTimeout(resolve, msOf(ms));
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
  });
  return value;
};

const bytes = (place: Place, size: number): Buffer =>
  Buffer.from(Array.from({ length: size }, () => Math.floor(place.clock.random() * 256)));

/** Fills a buffer with random bytes. */
function fill(place: Place, view: unknown): unknown {
  const { buffer, byteOffset, byteLength } = view as Uint8Array;
  new Uint8Array(buffer, byteOffset, byteLength).set(bytes(place, byteLength));
  return view;
}

/** Virtual time in seconds and nanoseconds, since an earlier value if there is one. */
function hrtime(clock: VirtualClock, since: unknown): [number, number] {
  const ms = clock.nowMs - START_MS;
  const [s0, ns0] = (since ?? [0, 0]) as [number, number];
  const ns = (ms % 1_000) * 1e6 - ns0;
  const seconds = Math.floor(ms / 1_000) - s0;
  return ns < 0 ? [seconds - 1, ns + 1e9] : [seconds, ns];
}

/** `process.hrtime` with its member `bigint`. */
const highResolutionTime: Patch = [
  process,
  "hrtime",
  (original) => {
    const [, , make] = inside(process, "hrtime", ({ clock }, [since]) => hrtime(clock, since));
    const bigint = Reflect.get(original, "bigint") as () => bigint;
    return Object.assign(make(original) as Function, {
      bigint: () => {
        const clock = places.getStore()?.clock;
        return clock === undefined ? bigint() : BigInt(clock.nowMs - START_MS) * 1_000_000n;
      },
    });
  },
];

interface ZonedTime {
  toPlainDateTime(): unknown;
  toPlainDate(): unknown;
  toPlainTime(): unknown;
}

/** The parts of Temporal that are used here. Node.js has it since version 26. */
interface TemporalApi {
  readonly Now: { timeZoneId(): string };
  readonly Instant: {
    fromEpochMilliseconds(ms: number): { toZonedDateTimeISO(zone: unknown): ZonedTime };
  };
}

/** The current time of Temporal. */
function temporalNow(): readonly Patch[] {
  const { Temporal } = globalThis as { readonly Temporal?: TemporalApi };
  if (Temporal === undefined) return [];
  const { Now, Instant } = Temporal;
  const instant = ({ clock }: Place) => Instant.fromEpochMilliseconds(clock.nowMs);
  const zoned = (place: Place, [zone]: unknown[]) =>
    instant(place).toZonedDateTimeISO(zone ?? Now.timeZoneId());
  return [
    inside(Now, "instant", instant),
    inside(Now, "zonedDateTimeISO", zoned),
    inside(Now, "plainDateTimeISO", (place, args) => zoned(place, args).toPlainDateTime()),
    inside(Now, "plainDateISO", (place, args) => zoned(place, args).toPlainDate()),
    inside(Now, "plainTimeISO", (place, args) => zoned(place, args).toPlainTime()),
  ];
}

async function* repeat(place: Place, args: unknown[]): AsyncGenerator {
  for (;;) yield await sleep(place, args);
}

/**
 * Replaces `AbortSignal.any`. Node.js keeps its signals, and the run that they reference, in memory until they are
 * aborted. A run ends without aborting them.
 */
function anySignal(signals: readonly AbortSignal[]): AbortSignal {
  const controller = new AbortController();
  for (const signal of signals) {
    if (signal.aborted) controller.abort(signal.reason);
    else {
      const onAbort = () => controller.abort(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
    }
  }
  return controller.signal;
}

/** A call that leaves the process. */
const network = (target: object, name: string, describe: (args: unknown[]) => string): Patch =>
  inside(target, name, (place, args) => {
    const what = describe(args);
    place.clock.onNetwork(what);
    throw new Error(
      `a simulation cannot make network calls: ${what}; pass a fake to the controller`,
    );
  });

function patches(): readonly Patch[] {
  const timers = [globalThis, nodeTimers].flatMap((target) => [
    inside(target, "setTimeout", timeout(false)),
    inside(target, "setInterval", timeout(true)),
    inside(target, "setImmediate", immediate),
    clear(target, "clearTimeout"),
    clear(target, "clearInterval"),
    clear(target, "clearImmediate"),
  ]);
  return [
    ...timers,
    inside(timersPromises, "setTimeout", sleep),
    inside(timersPromises, "setInterval", repeat),
    inside(timersPromises.scheduler, "wait", (place, [ms, options]) =>
      sleep(place, [ms, undefined, options]),
    ),
    inside(timersPromises, "setImmediate", (place, [value]) => sleep(place, [0, value])),
    inside(performance, "now", ({ clock }) => clock.nowMs - START_MS),
    inside(Math, "random", ({ clock }) => clock.random()),
    highResolutionTime,
    ...temporalNow(),
    inside(globalThis.crypto, "getRandomValues", (place, [view]) => fill(place, view)),
    inside(nodeCrypto, "randomFillSync", (place, [view]) => fill(place, view)),
    inside(globalThis.crypto, "randomUUID", ({ clock }) => clock.uuid()),
    inside(nodeCrypto, "randomUUID", ({ clock }) => clock.uuid()),
    inside(nodeCrypto, "randomBytes", (place, [size]) => bytes(place, Number(size))),
    inside(nodeCrypto, "randomInt", ({ clock }, args) => {
      const [min, max] =
        args.length === 1 ? [0, Number(args[0])] : [Number(args[0]), Number(args[1])];
      return min + Math.floor(clock.random() * (max - min));
    }),
    inside(AbortSignal, "timeout", (place, [ms]) => {
      const controller = new AbortController();
      const reason = new DOMException("The operation was aborted due to timeout", "TimeoutError");
      void new VirtualTimer(place, msOf(ms), () => controller.abort(reason));
      return controller.signal;
    }),
    inside(AbortSignal, "any", (_place, [signals]) => anySignal(signals as AbortSignal[])),
    network(
      globalThis,
      "fetch",
      ([url]) => `fetch of ${String(url instanceof Request ? url.url : url)}`,
    ),
    network(net.Socket.prototype, "connect", ([to]) => `connection to ${JSON.stringify(to)}`),
  ];
}

/** `new Date()` and `Date.now()` in virtual time. */
function virtualDate(original: DateConstructor): DateConstructor {
  const now = () => places.getStore()?.clock.nowMs;
  const realNow = original.now;
  const virtualNow = () => now() ?? realNow.call(original);
  return new Proxy(original, {
    construct(target, args: unknown[], newTarget) {
      const nowMs = args.length === 0 ? now() : undefined;
      return Reflect.construct(target, nowMs === undefined ? args : [nowMs], newTarget) as object;
    },
    apply(target, self, args) {
      const nowMs = now();
      return nowMs === undefined ? Reflect.apply(target, self, args) : new target(nowMs).toString();
    },
    get: (target, name, receiver) =>
      name === "now" ? virtualNow : (Reflect.get(target, name, receiver) as unknown),
  });
}

let uses = 0;
let restore: (() => void) | undefined;

/**
 * Makes time and chance of the code of simulations virtual: timers, `Date`, `performance.now`, `Math.random`, random bytes and
 * UUIDs. Code outside of simulations is not affected. Returns the function that ends it.
 */
export function useVirtualGlobals(): () => void {
  uses += 1;
  restore ??= install();
  let isOver = false;
  return () => {
    if (isOver) return;
    isOver = true;
    uses -= 1;
    if (uses > 0) return;
    restore?.();
    restore = undefined;
  };
}

function install(): () => void {
  const undo: (() => void)[] = [];
  const replace = (target: object, name: string, value: unknown) => {
    const own = Object.getOwnPropertyDescriptor(target, name);
    Object.defineProperty(target, name, {
      value,
      configurable: true,
      writable: true,
      enumerable: own?.enumerable ?? true,
    });
    undo.push(() => {
      if (own === undefined) Reflect.deleteProperty(target, name);
      else Object.defineProperty(target, name, own);
    });
  };
  const end = () => {
    for (const each of undo.toReversed()) each();
    syncBuiltinESMExports();
  };
  try {
    for (const [target, name, make] of patches()) {
      replace(target, name, make(Reflect.get(target, name) as Function));
    }
    const { prototype } = Date;
    replace(globalThis, "Date", virtualDate(Date));
    // A comparison with `Date` still holds.
    replace(prototype, "constructor", Date);
    syncBuiltinESMExports();
  } catch (error) {
    end();
    throw error;
  }
  return end;
}
