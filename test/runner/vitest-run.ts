import { fileURLToPath } from "node:url";
import { createVitest, type TestModule } from "vitest/node";
import type { Verdict } from "./tally.ts";

export interface Selection {
  /** Parts of file paths. Empty: every file. */
  readonly files: readonly string[];
  /** Names of projects. Empty: all. */
  readonly projects: readonly string[];
  /** A regular expression over test names. */
  readonly namePattern?: string | undefined;
}

/**
 * Runs the selected tests in this process' vitest.
 * @param prepare receives the names of the projects with files to run, before any test starts. Its changes to
 * `process.env` reach the tests
 */
export async function runVitest(
  { files, projects, namePattern }: Selection,
  prepare: (projects: ReadonlySet<string>) => Promise<void>,
): Promise<readonly Verdict[]> {
  const vitest = await createVitest({
    config: fileURLToPath(new URL("../vitest.config.ts", import.meta.url)),
    watch: false,
    ...(projects.length > 0 && { project: [...projects] }),
    ...(namePattern !== undefined && { testNamePattern: namePattern }),
  });
  try {
    const specifications = await vitest.globTestSpecifications([...files]);
    if (specifications.length === 0) return [];
    await prepare(new Set(specifications.map(({ project }) => project.name)));
    // The plain `start` would collect again, but it also sets up the reporters.
    const { testModules, unhandledErrors } = await vitest.start([...files]);
    return [
      ...testModules.flatMap(verdictsOf),
      ...unhandledErrors.map((error) => ({
        name: `error outside of any test: ${String(error)}`,
        state: "failed" as const,
      })),
    ];
  } finally {
    await vitest.close();
  }
}

function verdictsOf(module: TestModule): Verdict[] {
  const verdicts: Verdict[] = [...module.children.allTests()].map((test) => {
    const result = test.result();
    const name = `${module.relativeModuleId} > ${test.fullName}`;
    if (result.state === "skipped") return { name, state: "skipped", reason: result.note };
    // A test that is pending after the run belongs to a file that failed.
    return { name, state: result.state === "passed" ? "passed" : "failed" };
  });
  // A file that fails to load, or a hook that throws, has no failed test.
  const broken = module.state() === "failed" && !verdicts.some(({ state }) => state === "failed");
  return broken ? [...verdicts, { name: module.relativeModuleId, state: "failed" }] : verdicts;
}
