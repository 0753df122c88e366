/** The result of one test. `reason` is the note of a skipped one, `ctx.skip("why")`. */
export interface Verdict {
  readonly name: string;
  readonly state: "passed" | "failed" | "skipped";
  readonly reason?: string | undefined;
  /** True if it passed only when its file ran again, alone. */
  readonly unstable?: boolean;
}

export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** Each skipped test with its reason, and each skip that counts as a failure; each unstable test. */
  readonly notes: readonly string[];
}

/**
 * Counts verdicts. A skipped test without a reason counts as failed, because it may have been forgotten.
 * @param options.filtered tests were selected by name; vitest skips the others, which do not count
 */
export function tally(
  verdicts: readonly Verdict[],
  { filtered = false }: { readonly filtered?: boolean } = {},
): Tally {
  const count = { passed: 0, failed: 0, skipped: 0 };
  const notes: string[] = [];
  for (const { name, state, reason, unstable } of verdicts) {
    if (unstable === true) {
      notes.push(`UNSTABLE: ${name} failed, and passed when its file ran again; make it stable`);
    }
    if (state !== "skipped") count[state] += 1;
    else if (reason !== undefined) {
      count.skipped += 1;
      notes.push(`skipped: ${name}: ${reason}`);
    } else if (!filtered) {
      count.failed += 1;
      notes.push(`FAILED: ${name} was skipped without a reason; add one with ctx.skip("why")`);
    }
  }
  return { ...count, notes };
}

/**
 * Joins the verdicts of a file that failed with those of its second run.
 * @param again empty if the file did not run to its end
 */
export function judge(first: readonly Verdict[], again: readonly Verdict[]): readonly Verdict[] {
  if (again.length === 0 || again.some(({ state }) => state === "failed")) return first;
  const failed = new Set(first.filter(({ state }) => state === "failed").map(({ name }) => name));
  const named = again.map((verdict) =>
    failed.delete(verdict.name) ? { ...verdict, unstable: true } : verdict,
  );
  // A file that did not load, or a hook that failed.
  const lost = [...failed].map((name) => ({ name, state: "passed", unstable: true }) as const);
  return [...named, ...lost];
}

/** Returns the closing line, which programs parse: `N passed, N failed` and, if there are any, `, N skipped`. */
export function closingLine({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}
