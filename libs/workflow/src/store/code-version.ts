/** A version of a workflow's code, and the older versions whose runs it continues. */
export interface CodeVersion {
  readonly version: number;
  readonly accepts: readonly number[];
}

/** How long a worker counts as live after its last announcement, in ms; four of its rounds. */
export const CODE_TTL_MS = 20_000;

/** Most blocked runs to recheck for one announcement. */
export const MAX_RECHECKED = 1_000;

/** Returns the text of a version in Redis: its number, then those that it accepts. */
export function codeText({ version, accepts }: CodeVersion): string {
  return [version, ...accepts].join(",");
}

/** Returns true if the code may continue a run. Code older than that of the last record may not. */
export function fitsRun(
  { version, accepts }: CodeVersion,
  run: { readonly version: number; readonly continuedBy?: number | undefined },
): boolean {
  const isAccepted = run.version === version || accepts.includes(run.version);
  return isAccepted && version >= (run.continuedBy ?? 0);
}
