import { AsyncLocalStorage } from "node:async_hooks";
import { Socket } from "node:net";

/** The process as a replayed handler sees it. */
export interface ReplayedProcess {
  /** The start of the attempt, in Unix ms. */
  readonly beganAtMs: number;
  /** Called for each connection that the handler opens by itself. Its error rejects the connection. */
  readonly onConnect: (address: string) => Error;
}

interface Running extends ReplayedProcess {
  readonly offsetMs: number;
}

const running = new AsyncLocalStorage<Running>();
const RealDate = Date;
let installed = 0;
let restore = (): void => undefined;

/**
 * Runs a handler with the clock of its attempt and without a network. Other code of the process is not affected.
 */
export async function inReplayedProcess<R>(
  replayed: ReplayedProcess,
  run: () => Promise<R>,
): Promise<R> {
  if (installed === 0) restore = install();
  installed += 1;
  try {
    const offsetMs = RealDate.now() - replayed.beganAtMs;
    return await running.run({ ...replayed, offsetMs }, run);
  } finally {
    installed -= 1;
    if (installed === 0) restore();
  }
}

function install(): () => void {
  globalThis.Date = ReplayedDate;
  const connect = Reflect.get(Socket.prototype, "connect") as (...args: unknown[]) => Socket;
  Socket.prototype.connect = function connectUnlessReplayed(this: Socket, ...args: unknown[]) {
    const replay = running.getStore();
    if (replay === undefined) return connect.apply(this, args);
    process.nextTick(() => this.destroy(replay.onConnect(addressOf(args))));
    return this;
  };
  return () => {
    globalThis.Date = RealDate;
    Socket.prototype.connect = connect;
  };
}

/** A constructor and a function, as Date is. */
const ReplayedDate = new Proxy(RealDate, {
  construct(target, args: [], newTarget) {
    const given = args.length === 0 ? [now()] : args;
    return Reflect.construct(target, given, newTarget) as Date;
  },
  apply: () => new RealDate(now()).toString(),
  get: (target, property, receiver) =>
    property === "now" ? now : (Reflect.get(target, property, receiver) as unknown),
});

function now(): number {
  return RealDate.now() - (running.getStore()?.offsetMs ?? 0);
}

function addressOf(args: readonly unknown[]): string {
  // `net` passes its normalized arguments as one array.
  const [first, second] = Array.isArray(args[0]) ? (args[0] as readonly unknown[]) : args;
  if (typeof first === "object" && first !== null) {
    const { host = "localhost", port, path } = first as Record<string, unknown>;
    return port === undefined ? String(path) : `${String(host)}:${String(port)}`;
  }
  return typeof second === "string" ? `${second}:${String(first)}` : String(first);
}
