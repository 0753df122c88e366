/** What one test came to. `reason` is the note of a skipped one, `ctx.skip("why")`. */
export interface Verdict {
  readonly name: string;
  readonly state: "passed" | "failed" | "skipped";
  readonly reason?: string | undefined;
}

export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** For a person: each skipped test with its reason, and what was turned into a failure. */
  readonly notes: readonly string[];
}

/**
 * Counts verdicts. A skipped test without a reason counts as failed, because nobody can tell it from a forgotten one.
 * @param options.filtered tests were chosen by name: the others are skipped by vitest itself and do not count
 */
export function tally(
  verdicts: readonly Verdict[],
  { filtered = false }: { readonly filtered?: boolean } = {},
): Tally {
  const count = { passed: 0, failed: 0, skipped: 0 };
  const notes: string[] = [];
  for (const { name, state, reason } of verdicts) {
    if (state !== "skipped") count[state] += 1;
    else if (reason !== undefined) {
      count.skipped += 1;
      notes.push(`skipped: ${name}: ${reason}`);
    } else if (!filtered) {
      count.failed += 1;
      notes.push(`FAILED: ${name} was skipped without a reason; say it with ctx.skip("why")`);
    }
  }
  return { ...count, notes };
}

/** The closing line, which programs read too: `N passed, N failed` and, if there are any, `, N skipped`. */
export function closingLine({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}
