/** The machine could not be made ready. Shown without a stack: its reader is a newcomer, not its author. */
export class SetupError extends Error {
  /** @param {string} problem @param {string} cure @param {unknown} [cause] */
  constructor(problem, cure, cause) {
    super(`${problem}\n  cure: ${cure}`, cause === undefined ? undefined : { cause });
    this.name = "SetupError";
  }
}
