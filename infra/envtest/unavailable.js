/** No real control plane is available on this machine. The message names the reason and ends with a suggested fix. */
export class EnvtestUnavailable extends Error {
  /** @type {"envtest_unavailable"} */
  code = "envtest_unavailable";

  /** @param {string} reason @param {{ fix: string, cause?: unknown }} options */
  constructor(reason, { fix, cause }) {
    super(`${reason}\nSuggested fix: ${fix}`, cause === undefined ? undefined : { cause });
    this.name = "EnvtestUnavailable";
    this.fix = fix;
  }
}
