import diagnostics from "node:diagnostics_channel";
import { Redis, type Command } from "ioredis";

/** Something that a reconcile waited for. Times are of `performance.now()`. */
export interface Operation {
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
}

export interface OperationTape {
  /** All that ended since the tape was last emptied. */
  take(): Operation[];
  /** A moment in the program's own code. */
  mark(name: string): void;
  /** Resolves when an operation of that name ends. */
  next(name: string): Promise<void>;
  /** Of a script that was called, by its hash. */
  scriptName(sha: string): string | undefined;
  stop(): void;
}

/** What of undici's request is looked at (channel `undici:request:create`). */
interface SentRequest {
  readonly method: string;
  readonly path: string;
}

/**
 * Writes down when each Redis command and each HTTP request of this process began and ended: by a wrapper around ioredis and
 * by undici's own diagnostics channels, so that the code under measurement knows nothing of it.
 * @param scripts names of Lua scripts by hash, beside BullMQ's, which ioredis knows
 */
export function startOperationTape(scripts: ReadonlyMap<string, string>): OperationTape {
  let operations: Operation[] = [];
  const waiting = new Map<string, () => void>();
  const known = new Map(scripts);
  const note = (name: string, startMs: number) => {
    operations.push({ name, startMs, endMs: performance.now() });
    waiting.get(name)?.();
    waiting.delete(name);
  };

  // oxlint-disable-next-line typescript/unbound-method -- called with its own `this` below
  const { sendCommand } = Redis.prototype;
  Redis.prototype.sendCommand = function noted(this: Redis, command: Command, stream) {
    const startMs = performance.now();
    const name = commandName(this, command, known);
    // A command that fails took its time as well; whoever sent it hears of the failure.
    void command.promise.then(
      () => note(name, startMs),
      () => note(name, startMs),
    );
    return sendCommand.call(this, command, stream);
  };

  const requests = new WeakMap<object, number>();
  const onCreate = (message: unknown) => {
    requests.set((message as { request: SentRequest }).request, performance.now());
  };
  const onTrailers = (message: unknown) => {
    const { request } = message as { request: SentRequest };
    const startMs = requests.get(request);
    if (startMs !== undefined) note(`${request.method} ${kindOf(request.path)}`, startMs);
  };
  diagnostics.subscribe("undici:request:create", onCreate);
  diagnostics.subscribe("undici:request:trailers", onTrailers);

  return {
    take() {
      const taken = operations;
      operations = [];
      return taken;
    },
    mark: (name) => note(name, performance.now()),
    next: (name) => new Promise((resolve) => waiting.set(name, resolve)),
    scriptName: (sha) => known.get(sha),
    stop() {
      Redis.prototype.sendCommand = sendCommand;
      diagnostics.unsubscribe("undici:request:create", onCreate);
      diagnostics.unsubscribe("undici:request:trailers", onTrailers);
    },
  };
}

/** `moveToActive` instead of `evalsha`; what it learns is kept in `known`. */
function commandName(redis: Redis, command: Command, known: Map<string, string>): string {
  const [sha] = command.args;
  if (command.name !== "evalsha" || typeof sha !== "string") return command.name;
  if (!known.has(sha)) {
    // What `defineCommand` has put on the connection. BullMQ adds its version to each name.
    const { scriptsSet } = redis as unknown as {
      readonly scriptsSet: Readonly<Record<string, { readonly sha: string }>>;
    };
    for (const [name, script] of Object.entries(scriptsSet)) {
      known.set(script.sha, name.split(":", 1)[0] ?? name);
    }
  }
  return known.get(sha) ?? command.name;
}

/** `status` of a subresource, else the plural. */
function kindOf(path: string): string {
  const parts = path.split("?", 1)[0]?.split("/") ?? [];
  return parts.at(-1) === "status" ? "status" : (parts.at(-2) ?? path);
}
