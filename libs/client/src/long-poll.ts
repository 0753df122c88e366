import { ProblemError } from "./problem-error.ts";
import { delayOf, type RetryOptions } from "./send-request.ts";

/** Wait of one request, shorter than the idle timeout of proxies. */
const WAIT_MS = 20_000;

export interface LongPoll<Answer> {
  readonly id: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  readonly retry: Required<RetryOptions>;
  readonly random: () => number;
  readonly sleep: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
  /** Sends a request that waits up to `waitMs` for the end, or for a state other than `lastState`. */
  readonly ask: (waitMs: number, lastState: string | undefined) => Promise<Answer>;
  /** The state of an answer. Without it, only the end is awaited. */
  readonly stateOf?: ((answer: Answer) => string) | undefined;
  readonly hasEnded: (answer: Answer) => boolean;
  /** The phase for error messages. */
  readonly phaseOf: (answer: Answer) => string;
}

/** Yields every answer with a new state, and the last one. @throws ProblemError `wait_timeout` */
export async function* longPoll<Answer>(poll: LongPoll<Answer>): AsyncGenerator<Answer, void> {
  const { id, timeoutMs, signal, retry, random, sleep } = poll;
  const endMs = performance.now() + timeoutMs;
  let lastState: string | undefined;
  for (;;) {
    const isFirst = poll.stateOf !== undefined && lastState === undefined;
    const leftMs = isFirst ? 0 : Math.max(0, Math.ceil(endMs - performance.now()));
    let answer: Answer;
    try {
      answer = await poll.ask(Math.min(WAIT_MS, leftMs), lastState);
    } catch (error) {
      // A restart of the server does not end a wait, because the work continues.
      const again = delayOf(error, 0, retry, random);
      if (again === undefined || performance.now() >= endMs) throw error;
      await sleep(again, signal);
      continue;
    }
    const hasEnded = poll.hasEnded(answer);
    const now = poll.stateOf?.(answer);
    if (hasEnded || now === undefined || now !== lastState) yield answer;
    if (hasEnded) return;
    lastState = now;
    if (performance.now() >= endMs) throw waitTimeout(id, poll.phaseOf(answer), timeoutMs);
  }
}

/** Returns the last answer. */
export async function lastOf<Answer>(answers: AsyncIterable<Answer>): Promise<Answer> {
  let last: { readonly answer: Answer } | undefined;
  for await (const answer of answers) last = { answer };
  if (last === undefined) throw new TypeError("a long poll yields at least one answer");
  return last.answer;
}

function waitTimeout(id: string, phase: string, timeoutMs: number): ProblemError {
  return new ProblemError({
    code: "wait_timeout",
    status: 504,
    title: "The wait timed out; the work continues",
    detail: `${id} is still ${phase} after ${Number((timeoutMs / 1_000).toPrecision(2))} s; the work continues, wait again or longer`,
  });
}
