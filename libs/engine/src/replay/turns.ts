interface Waiting {
  readonly answeredAt: number;
  readonly go: () => void;
}

/**
 * Delivers answers in the recorded order: of all calls that wait, the one that was answered first. Calls that run at the same time then
 * meet as they did in the attempt.
 */
export class Turns {
  #waiting: Waiting[] = [];
  #isScheduled = false;

  /** Resolves when the answer is due. */
  async take(answeredAt: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ answeredAt, go: resolve });
    this.#schedule();
    await promise;
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0) return;
    this.#isScheduled = true;
    // After the code that runs now has sent all its calls.
    setImmediate(() => {
      this.#isScheduled = false;
      const first = this.#waiting.reduce((one, other) =>
        other.answeredAt < one.answeredAt ? other : one,
      );
      this.#waiting = this.#waiting.filter((each) => each !== first);
      first.go();
      this.#schedule();
    });
  }
}
