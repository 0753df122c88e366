/** The machine could not be made ready. Shown without a stack: its reader is a newcomer, not its author. */
export class SetupError extends Error {
  /** @param {string} problem @param {string} fix @param {unknown} [cause] */
  constructor(problem, fix, cause) {
    super(`${problem}\n  fix: ${fix}`, cause === undefined ? undefined : { cause });
    this.name = "SetupError";
  }
}
