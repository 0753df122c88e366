import {
  runScript,
  type RedisClient,
  type Reply,
  type ScriptCall,
  type ScriptSignature,
  type Script,
} from "@konverge/redis";

/** Runs a script and returns its reply as Redis gave it. */
export function runRaw<Signature extends ScriptSignature>(
  redis: RedisClient,
  script: Script<Signature>,
  call: ScriptCall<Signature>,
): Promise<Reply> {
  const raw: Script<Signature, Reply> = { ...script, answer: (reply) => reply };
  return runScript(redis, raw, call);
}
