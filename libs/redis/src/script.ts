import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { Cluster } from "ioredis";
import { composeLua, UNMOVED, type LuaPart } from "./compose-lua.ts";
import type { RedisClient } from "./redis-target.ts";
import type { Reply } from "./reply.ts";
import type { ArgumentKinds, ScriptCall, ScriptSignature } from "./script-signature.ts";

/** A Lua script with a typed call and answer. The clock is that of Redis (TIME). */
export interface Script<Signature extends ScriptSignature = ScriptSignature, Answer = unknown> {
  readonly name: string;
  readonly signature: Signature;
  readonly body: LuaPart;
  /** The complete text that is sent to Redis. */
  readonly lua: string;
  readonly sha: string;
  /** @throws KonvergeError `internal` for an unexpected reply. */
  readonly answer: (reply: Reply) => Answer;
}

/**
 * Defines a script. Declare `signature` as a constant of its own (`as const`), since exported types cannot be inferred:
 * `export const xScript: Script<typeof signature, Answer> = defineScript(signature, { lua: readLua(...), answer })`.
 */
export function defineScript<Signature extends ScriptSignature, Answer>(
  signature: Signature,
  definition: LuaPart & { readonly answer: (reply: Reply) => Answer },
): Script<Signature, Answer> {
  const { answer, ...body } = definition;
  const lua = composeLua(signature, body);
  const { name } = signature;
  return { name, signature, body, lua, sha: createHash("sha1").update(lua).digest("hex"), answer };
}

/** Reads a Lua file: `readLua(new URL("begin.lua", import.meta.url))`. The build copies Lua files beside the compiled modules. */
export function readLua(file: URL): string {
  return readFileSync(file, "utf8");
}

/**
 * Runs a script by its hash. A Redis that does not have it (restart, failover, another node of a cluster) gets the text.
 * The first key decides which node of a Redis Cluster runs the script.
 * @throws the error that Redis returns
 */
export async function runScript<Signature extends ScriptSignature, Answer>(
  redis: RedisClient,
  script: Script<Signature, Answer>,
  call: ScriptCall<Signature>,
): Promise<Answer> {
  const { count, values } = flatten(script.signature, call as AnyCall);
  const added = redis instanceof Cluster ? withUnmoved(values, count) : 0;
  return script.answer((await evaluate(redis, script, count + added, values)) as Reply);
}

/**
 * Adds a key that never exists, in the slot of the first one. While the slot moves, Redis then rejects the whole script
 * (TRYAGAIN). Without it, a script with one key could run on one node although other keys that it uses are on the other.
 * Returns the number of added keys.
 */
function withUnmoved(values: (string | number)[], count: number): number {
  const [root] = /^[^{}]*\{[^{}]+\}/.exec(String(values[0] ?? "")) ?? [];
  if (count === 0 || root === undefined) return 0;
  values.splice(count, 0, `${root}${UNMOVED}`);
  return 1;
}

async function evaluate(
  redis: RedisClient,
  { sha, lua }: Script,
  count: number,
  values: readonly (string | number)[],
): Promise<unknown> {
  try {
    return await redis.evalsha(sha, count, ...values);
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
    return await redis.eval(lua, count, ...values);
  }
}

type Values = Readonly<Record<string, string | number | boolean>>;

/** A call, without the types of its signature. */
interface AnyCall {
  readonly keys?: Readonly<Record<string, string>>;
  readonly args?: Values;
  readonly each?: readonly Values[];
}

/** KEYS and ARGV in the order of the signature; `count` of them are keys. */
function flatten(
  { keys = [], args = {}, each = {} }: ScriptSignature,
  call: AnyCall,
): { readonly count: number; readonly values: (string | number)[] } {
  const values: (string | number)[] = [];
  const items = call.each ?? [];
  pushKeys(values, keys, call.keys ?? {});
  for (const item of items) pushKeys(values, each.keys ?? [], item);
  const count = values.length;
  pushArguments(values, args, call.args ?? {});
  for (const item of items) pushArguments(values, each.args ?? {}, item);
  return { count, values };
}

function pushKeys(values: (string | number)[], names: readonly string[], from: Values): void {
  for (const name of names) values.push(from[name] as string);
}

function pushArguments(values: (string | number)[], kinds: ArgumentKinds, from: Values): void {
  for (const name in kinds) {
    const value = from[name] as string | number | boolean;
    values.push(typeof value === "boolean" ? Number(value) : value);
  }
}
