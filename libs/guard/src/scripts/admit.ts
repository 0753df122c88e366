import { BREAKER, FLOORS, MAX_LEASE, type AdmitResponse, type AdmitRequest } from "@konverge/core";
import {
  defineScript,
  readLua,
  replyNumber,
  replyTagged,
  replyText,
  replyWord,
  type Reply,
  type Script,
  type ScriptCall,
} from "@konverge/redis";
import { tokenOrderPart } from "./token-order.ts";
import { parseTransition, type Transition } from "../transition.ts";

/** `unset` if no limits are stored: configure, then repeat the request. */
export type StoreAnswer =
  | { readonly kind: "unset" }
  | (AdmitResponse & {
      readonly kind: "answer";
      /** Grows with each change of the limits. */
      readonly revision: number;
      readonly transition?: Transition;
    });

const signature = {
  name: "admit",
  keys: ["state", "liveWorkers", "failingWorkers", "transitions", "order", "turns"],
  args: {
    channel: "text",
    worker: "text",
    askRunId: "text",
    answeredUs: "number",
    elapsedUs: "number",
    /** Generation of the report. */
    reported: "number",
    ok: "number",
    failed: "number",
    trailing: "number",
    slow: "number",
    throttled: "number",
    late: "number",
    retryAfterUs: "number",
    failure: "text",
    askTicket: "text",
    verdict: "text",
    want: "number",
    need: "number",
    rank: "number",
    /** Share of the bucket that is reserved for higher classes. */
    share: "number",
    turn: "text",
    /** A new ticket, or empty. */
    probe: "text",
    random: "number",
  },
} as const;

/**
 * One step of a cluster's guard: takes a worker's report, moves the breaker, adapts the rate, and leases tokens. It changes
 * the same fields as core's `admit`; test/integration/guard/guard-model.test.ts compares the two.
 */
export const admitScript: Script<typeof signature, StoreAnswer> = defineScript(signature, {
  lua: readLua(new URL("admit.lua", import.meta.url)),
  constants: { BREAKER, MAX_LEASE },
  include: [tokenOrderPart],
  answer: decode,
});

export function admitArguments(
  channel: string,
  ask: AdmitRequest,
): ScriptCall<typeof signature>["args"] {
  const { runId, generation, ticket, ...rest } = ask;
  return {
    ...rest,
    channel,
    askRunId: runId,
    reported: generation,
    askTicket: ticket,
    failure: ask.failure ?? "",
    share: FLOORS[ask.rank] ?? 0,
  };
}

function decode(reply: Reply): StoreAnswer {
  const [
    mode,
    atUs,
    generation,
    granted,
    waitUs,
    turnUs,
    ticket,
    rate,
    ttlMs,
    live,
    soon,
    revision,
    transition,
  ] = replyTagged(reply);
  if (mode === "unset") return { kind: "unset" };
  return {
    kind: "answer",
    mode: replyWord(mode, ["closed", "open", "halfOpen", "isolated"]),
    atUs: replyNumber(atUs),
    generation: replyNumber(generation),
    granted: replyNumber(granted),
    waitUs: replyNumber(waitUs),
    turnUs: replyNumber(turnUs),
    ticket: replyText(ticket),
    // In thousandths, because Redis truncates Lua's numbers to integers.
    ratePerSecond: replyNumber(rate) / 1_000,
    ttlMs: replyNumber(ttlMs),
    live: replyNumber(live),
    reportsSoon: replyNumber(soon) > 0,
    revision: replyNumber(revision),
    ...(transition === "" ? {} : { transition: parseTransition(replyText(transition)) }),
  };
}
