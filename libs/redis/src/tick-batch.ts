import { ensureError } from "@konverge/core";

/** A batched call: `sent` resolves when it was written, `answer` when its result arrived. */
export interface Handed<Answer> {
  readonly sent: Promise<void>;
  readonly answer: Promise<Answer>;
}

/**
 * Combines the calls of one turn of the event loop. They arrive in bursts, and the fixed cost of script calls dominates that
 * of most calls.
 */
export function createTickBatch<Call, Answer>(
  maxSize: number,
  send: (calls: readonly Call[]) => Promise<readonly Answer[]>,
  /** Schedules the send. Default: after the current operation; a later send combines more calls. */
  atEnd: (flush: () => void) => void = (flush) => process.nextTick(flush),
): (call: Call) => Handed<Answer> {
  interface Waiting {
    readonly call: Call;
    readonly sent: () => void;
    readonly resolve: (answer: Answer) => void;
    readonly reject: (error: Error) => void;
  }
  let waiting: Waiting[] = [];

  const flush = () => {
    const batch = waiting;
    waiting = [];
    for (let start = 0; start < batch.length; start += maxSize) {
      void sendPart(batch.slice(start, start + maxSize));
    }
  };
  const sendPart = async (part: readonly Waiting[]) => {
    try {
      const answers = send(part.map(({ call }) => call));
      for (const { sent } of part) sent();
      for (const [index, answer] of (await answers).entries()) part[index]?.resolve(answer);
    } catch (error) {
      for (const { reject, sent } of part) {
        sent();
        reject(ensureError(error));
      }
    }
  };

  return (call) => {
    const sent = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<Answer>();
    if (waiting.length === 0) atEnd(flush);
    waiting.push({
      call,
      sent: sent.resolve,
      resolve: answer.resolve,
      reject: answer.reject,
    });
    return { sent: sent.promise, answer: answer.promise };
  };
}
