/** Whether the run of an execution is to be paused, as last read from the store. */
export class PauseState {
  #isPausing = false;
  #wasPausing = false;
  #hasResumed = false;
  #resumes: number;
  #onResumed: () => void = () => undefined;

  /** @param resumes how often the run was resumed before */
  constructor(resumes = 0) {
    this.#resumes = resumes;
  }

  /** True while no further verb may begin. */
  get isPausing(): boolean {
    return this.#isPausing;
  }

  /** True once the run was to be paused: some of its verbs may wait for nothing else. */
  get wasPausing(): boolean {
    return this.#wasPausing;
  }

  /** True once the run was resumed during the execution. */
  get hasResumed(): boolean {
    return this.#hasResumed;
  }

  /** Stores the state that was read. `resumes` reveals pauses between two reads, and reads from before a pause. */
  note(isPausing: boolean, resumes?: number): void {
    if (!isPausing && resumes === this.#resumes) return;
    const known = this.#resumes;
    this.#resumes = resumes ?? known;
    const isResumed = this.#resumes > known || (this.#isPausing && !isPausing);
    this.#isPausing = isPausing;
    this.#wasPausing ||= isPausing;
    this.#hasResumed ||= isResumed;
    if (isResumed) this.#onResumed();
  }

  /** Sets the function that is called when the run is resumed. */
  onResumed(call: () => void): void {
    this.#onResumed = call;
  }
}
