import {
  runScript,
  type RedisClient,
  type Reply,
  type ScriptCall,
  type ScriptSignature,
  type TypedScript,
} from "@konverge/redis";

/** Runs a script and returns its reply as Redis gave it. */
export function runRaw<Signature extends ScriptSignature>(
  redis: RedisClient,
  script: TypedScript<Signature>,
  call: ScriptCall<Signature>,
): Promise<Reply> {
  const raw: TypedScript<Signature, Reply> = { ...script, answer: (reply) => reply };
  return runScript(redis, raw, call);
}
