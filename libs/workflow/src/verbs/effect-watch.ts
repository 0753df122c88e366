import type { CallVerb } from "@konverge/core";
import type { CallObserver, CallRecord, SentCall } from "@konverge/kube";

const READS: ReadonlySet<CallVerb> = new Set<CallVerb>(["get", "list", "watch"]);
/** A proxy in front of the API server timed out, so the server may have made the change. */
const REQUEST_TIMEOUT = 408;

let turn: object | undefined;

/** Identifies the current turn of the event loop: no I/O of a body can end before the next one. */
function currentTurn(): object {
  if (turn === undefined) {
    turn = {};
    setImmediate(() => (turn = undefined));
  }
  return turn;
}

/**
 * Whether one attempt of a body may have changed anything. It has not if it awaited only its verbs, and the API server
 * rejected each of their writes.
 */
export class EffectWatch {
  #turn = currentTurn();
  #running = 0;
  #writes = 0;
  #hasAwaitedElsewhere = false;

  get mayHaveActed(): boolean {
    this.#look();
    return this.#hasAwaitedElsewhere || this.#running > 0 || this.#writes > 0;
  }

  beginVerb(): void {
    this.#look();
    this.#running += 1;
  }

  endVerb(): void {
    this.#running -= 1;
    this.#turn = currentTurn();
  }

  /** For the scope of the verbs' calls. */
  readonly onSend = ({ verb }: SentCall): CallObserver => {
    const isWrite = !READS.has(verb);
    if (isWrite) this.#writes += 1;
    const ended = ({ status }: CallRecord): void => {
      if (isWrite && isRejection(status)) this.#writes -= 1;
    };
    return { headers: {}, ended };
  };

  /** While no verb is running, the body continues in the same turn, unless it waits for something else. */
  #look(): void {
    if (this.#running === 0 && this.#turn !== currentTurn()) this.#hasAwaitedElsewhere = true;
  }
}

function isRejection(status: number): boolean {
  return status >= 400 && status < 500 && status !== REQUEST_TIMEOUT;
}
