import { fileURLToPath } from "node:url";
import { createVitest, type TestModule, type TestSpecification, type Vitest } from "vitest/node";
import { judge, type Verdict } from "./tally.ts";

/** Most failed files that run again. More of them are not chance. */
const MAX_REPEATED_FILES = 3;

export interface Selection {
  /** Parts of file paths. Empty: every file. */
  readonly files: readonly string[];
  /** Names of projects. Empty: all. */
  readonly projects: readonly string[];
  /** A regular expression over test names. */
  readonly namePattern?: string | undefined;
}

/**
 * Runs the selected tests in this process' vitest. Files with failures that use servers or processes run once more, one at a time and
 * with the same seed: what passes then is unstable rather than failed.
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
    // With the projects whose name continues one of these, such as "conformance-kinds".
    ...(projects.length > 0 && { project: projects.map((name) => `${name}*`) }),
    ...(namePattern !== undefined && { testNamePattern: namePattern }),
  });
  try {
    const specifications = await vitest.globTestSpecifications([...files]);
    if (specifications.length === 0) return [];
    await prepare(new Set(specifications.map(({ project }) => project.name)));
    // The plain `start` would collect again, but it also sets up the reporters.
    const { testModules, unhandledErrors } = await vitest.start([...files]);
    const verdicts = new Map<string, readonly Verdict[]>(
      testModules.map((module) => [module.moduleId, verdictsOf(module)]),
    );
    const failed = testModules.filter((module) => hasFailed(verdicts.get(module.moduleId) ?? []));
    const isRepeatable = failed.every(({ project }) => project.name !== "unit");
    if (isRepeatable && failed.length <= MAX_REPEATED_FILES && unhandledErrors.length === 0) {
      for (const { moduleId } of failed) {
        const own = specifications.filter((specification) => specification.moduleId === moduleId);
        const again = await runAgain(vitest, own);
        verdicts.set(moduleId, judge(verdicts.get(moduleId) ?? [], again));
      }
    }
    return [
      ...[...verdicts.values()].flat(),
      ...unhandledErrors.map((error) => ({
        name: `error outside of any test: ${textOf(error)}`,
        state: "failed" as const,
      })),
    ];
  } finally {
    await vitest.close();
  }
}

async function runAgain(
  vitest: Vitest,
  specifications: TestSpecification[],
): Promise<readonly Verdict[]> {
  console.log(`running again: ${specifications.map(({ moduleId }) => moduleId).join(", ")}`);
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
  // Vitest also returns the modules of the first run.
  const ran = new Set(specifications.map(({ moduleId }) => moduleId));
  const again = testModules.filter(({ moduleId }) => ran.has(moduleId));
  return unhandledErrors.length > 0 ? [] : again.flatMap(verdictsOf);
}

/** Vitest passes errors of its workers as plain objects, some without a prototype. */
function textOf(error: unknown): string {
  const { stack, message } = (error ?? {}) as Partial<Error>;
  return stack ?? message ?? JSON.stringify(error);
}

function hasFailed(verdicts: readonly Verdict[]): boolean {
  return verdicts.some(({ state }) => state === "failed");
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
