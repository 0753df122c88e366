import { defineScript, type LuaPart, type Script, type ScriptSignature } from "@konverge/redis";

const CLOCK = "redis.call('TIME')";

/** Replaces a script's clock by two more arguments. */
export function clockAt(us: number): {
  readonly clockSeconds: number;
  readonly clockMicros: number;
} {
  return { clockSeconds: Math.floor(us / 1e6), clockMicros: us % 1e6 };
}

type WithClock<Signature extends ScriptSignature> = Signature & {
  readonly args: { readonly clockSeconds: "number"; readonly clockMicros: "number" };
};

/** Returns the script with the clock as its last arguments, for a real Redis. */
export function withInjectedClock<Signature extends ScriptSignature, Answer>(
  script: Script<Signature, Answer>,
): Script<WithClock<Signature>, Answer> {
  const { signature, body, lua, answer } = script;
  if (!lua.includes(CLOCK)) throw new RangeError(`script ${signature.name} reads no clock`);
  const inject = (part: LuaPart): LuaPart => ({
    ...part,
    lua: part.lua.replaceAll(CLOCK, "{ clockSeconds, clockMicros }"),
    include: (part.include ?? []).map(inject),
  });
  const clock = { clockSeconds: "number", clockMicros: "number" } as const;
  const clocked: WithClock<Signature> = { ...signature, args: { ...signature.args, ...clock } };
  return defineScript(clocked, { ...inject(body), answer });
}
