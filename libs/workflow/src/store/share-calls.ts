import { atEndOfTurn, createTickBatch } from "@konverge/redis";

/** Calls of a script per call of Redis. Larger ones save little more, and block Redis for longer. */
const BATCH = 8;
/** Longest text of a call that shares one of Redis, in characters. */
export const MAX_SHARED = 16_384;

/**
 * Combines calls of one script of one turn of the event loop: the executions of a worker begin, continue and end in bursts, and the
 * fixed cost of a call of Redis is higher than that of most calls. An error that Redis returns for one of them, for example
 * because a key has a foreign type, does not affect the others.
 */
export function shareCalls<Call, Answer>(
  send: (calls: readonly Call[]) => Promise<readonly Answer[]>,
): (call: Call) => Promise<Answer> {
  const batch = createTickBatch<Call, () => Answer>(
    BATCH,
    async (calls) => {
      try {
        return (await send(calls)).map((answer) => () => answer);
      } catch (error) {
        if (calls.length === 1 || !isReply(error)) throw error;
        // The scripts may be repeated: they find what they have changed.
        return await Promise.all(calls.map((call) => alone(send, call)));
      }
    },
    atEndOfTurn,
  );
  return async (call) => (await batch(call).answer)();
}

async function alone<Call, Answer>(
  send: (calls: readonly Call[]) => Promise<readonly Answer[]>,
  call: Call,
): Promise<() => Answer> {
  try {
    const [answer] = await send([call]);
    return () => answer as Answer;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

/** True for an error that Redis has returned, as opposed to a lost connection. */
function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === "ReplyError";
}
