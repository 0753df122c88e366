/** A failed set-up of the machine. Shown without a stack, because its readers are new users. */
export class SetupError extends Error {
  /** @param {string} problem @param {string} fix @param {unknown} [cause] */
  constructor(problem, fix, cause) {
    super(`${problem}\n  fix: ${fix}`, cause === undefined ? undefined : { cause });
    this.name = "SetupError";
  }
}
