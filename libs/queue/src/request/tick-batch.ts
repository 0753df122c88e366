import { ensureError } from "@konverge/core";

/** A call that was handed over: `sent` when it is on its way, `answer` when it came back. */
export interface Handed<Answer> {
  readonly sent: Promise<void>;
  readonly answer: Promise<Answer>;
}

/**
 * Gathers the calls of one turn of the event loop into one. BullMQ hands out jobs in bursts, as replies arrive, and the
 * fixed cost of a script call is what a no-op reconcile consists of.
 */
export function createTickBatch<Call, Answer>(
  maxSize: number,
  send: (calls: readonly Call[]) => Promise<readonly Answer[]>,
  /** When a batch leaves. Default: at the end of what runs now; the later, the more come along. */
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
