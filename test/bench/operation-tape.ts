import diagnostics from "node:diagnostics_channel";
import { Redis, type Command } from "ioredis";

/** An operation that a reconcile waited for, with times of `performance.now()`. */
export interface Operation {
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
}

export interface OperationTape {
  /** The operations that ended since the tape was last emptied. */
  take(): Operation[];
  /** Records a moment in the program's own code. */
  mark(name: string): void;
  /** Resolves when an operation of that name ends. */
  next(name: string): Promise<void>;
  /** Returns the name of a called script by its hash. */
  scriptName(sha: string): string | undefined;
  stop(): void;
}

/** The fields used of undici's request (channel `undici:request:create`). */
interface SentRequest {
  readonly method: string;
  readonly path: string;
}

/**
 * Records the start and end of each Redis command and each HTTP request of this process. It wraps ioredis and subscribes to
 * undici's diagnostics channels, so the measured code is unchanged.
 * @param scripts names of Lua scripts by hash, in addition to BullMQ's, which are read from ioredis
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
    // The time of a failed command counts too. Its caller receives the error.
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

/** Returns a script's name, such as `moveToActive`, instead of `evalsha`, and caches it in `known`. */
function commandName(redis: Redis, command: Command, known: Map<string, string>): string {
  const [sha] = command.args;
  if (command.name !== "evalsha" || typeof sha !== "string") return command.name;
  if (!known.has(sha)) {
    // `defineCommand` puts scripts on the connection. BullMQ adds its version to each name.
    const { scriptsSet } = redis as unknown as {
      readonly scriptsSet: Readonly<Record<string, { readonly sha: string }>>;
    };
    for (const [name, script] of Object.entries(scriptsSet)) {
      known.set(script.sha, name.split(":", 1)[0] ?? name);
    }
  }
  return known.get(sha) ?? command.name;
}

/** Returns `status` for the subresource, otherwise the plural. */
function kindOf(path: string): string {
  const parts = path.split("?", 1)[0]?.split("/") ?? [];
  return parts.at(-1) === "status" ? "status" : (parts.at(-2) ?? path);
}
