/** No real control plane can be had on this machine. Its message says why, and ends with the cure. */
export class EnvtestUnavailable extends Error {
  /** @type {"envtest_unavailable"} */
  code = "envtest_unavailable";

  /** @param {string} reason @param {{ cure: string, cause?: unknown }} options */
  constructor(reason, { cure, cause }) {
    super(`${reason}\nTo have one: ${cure}`, cause === undefined ? undefined : { cause });
    this.name = "EnvtestUnavailable";
    this.cure = cure;
  }
}
