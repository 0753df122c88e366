/**
 * Implements `npm test`: starts a Redis and, if available, a real API server, runs every vitest project, and prints the
 * servers and the counts. With `CI=true`, the real API server and the static checks are required.
 */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { EnvtestUnavailable } from "@konverge/infra-envtest";
import { obtainRedis, RedisUnavailable } from "@konverge/infra-redis";
import { buildTools } from "./runner/build-tools.ts";
import { findTouchedTests, isCommit, listChangedFiles } from "./runner/changed-tests.ts";
import { obtainChromium } from "./runner/obtain-chromium.ts";
import { startRealApiServer, type RealApiServer } from "./runner/real-api-server.ts";
import { runChecks, STATIC_CHECKS } from "./runner/static-checks.ts";
import { closingLine, tally, type Verdict } from "./runner/tally.ts";
import { runSeed } from "./runner/run-seed.ts";
import { createTestUsers } from "./runner/create-test-users.ts";
import { runVitest } from "./runner/vitest-run.ts";

const USAGE = `npm test [-- [--changed [REF]] [--project NAME]... [-t PATTERN] [--long] [FILE]...]
  FILE             run only test files whose path contains it
  --changed [REF]  run only test files that a change since REF touches, edits and new files included (default HEAD)
  --project NAME   unit, integration, contract, conformance, e2e or chaos; may be repeated
  -t PATTERN       run only tests whose name matches this regular expression
  --long           run more random cases and longer chaos (sets KONVERGE_TEST_LONG=1)`;

const root = fileURLToPath(new URL("..", import.meta.url));

const log = (line: string): void => console.error(`npm test: ${line}`);

try {
  process.exitCode = await main();
} catch (error) {
  if (isUsageError(error)) {
    log(`${error.message}\n${USAGE}`);
    process.exitCode = 2;
  } else {
    const isExpected = error instanceof EnvtestUnavailable || error instanceof RedisUnavailable;
    log(isExpected ? error.message : String(error instanceof Error ? error.stack : error));
    // Programs that parse the closing line would treat its absence as success.
    console.log("0 passed, 1 failed");
    process.exitCode = 1;
  }
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    args: nameReference(process.argv.slice(2)),
    allowPositionals: true,
    options: {
      changed: { type: "string" },
      project: { type: "string", multiple: true, default: [] },
      testNamePattern: { type: "string", short: "t" },
      long: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const inCi = process.env["CI"] === "true";
  const isNarrowed = values.testNamePattern !== undefined || values.changed !== undefined;
  const isWhole = positionals.length + values.project.length === 0 && !isNarrowed;
  if (values.long) process.env["KONVERGE_TEST_LONG"] = "1";
  process.env["KONVERGE_TEST_SEED"] = runSeed(root, process.env);
  const files =
    values.changed === undefined ? positionals : touchedFiles(values.changed, positionals);
  if (files === undefined) {
    console.log(`no test depends on what has changed since ${values.changed}`);
    console.log("0 passed, 0 failed");
    return 0;
  }

  const checks = inCi && isWhole ? [checkStatically()] : [];
  const redis = await obtainRedis({ log });
  process.env["REDIS_URL"] = redis.url;
  const users =
    process.env["KONVERGE_TEST_ACL"] === "1" ? await createTestUsers(redis.url) : undefined;
  Object.assign(process.env, users?.env);
  const target: Target = { redis: `${redis.kind} ${redis.version}` };
  try {
    const selection = {
      files,
      projects: values.project,
      namePattern: values.testNamePattern,
    };
    const verdicts = await runVitest(selection, async (projects) => {
      if (projects.has("e2e")) obtainChromium(log);
      if (!inCi && [...projects].every((name) => name === "unit")) return;
      // Their tests would build these programs as well.
      if ((inCi || values.long) && isWhole) await buildTools(log, values.long);
      target.server = await startRealApiServer({ required: inCi, log });
      if (target.server.kind === "running") Object.assign(process.env, target.server.env);
      report(target);
    });
    const result = tally([...checks, ...verdicts], {
      filtered: values.testNamePattern !== undefined,
    });
    for (const note of result.notes) console.log(note);
    const denied = (await users?.denied()) ?? [];
    for (const text of denied) log(`denied by the ACL of the Redis users: ${text}`);
    report(target);
    if (result.passed + result.failed === 0) log("no test was selected");
    console.log(closingLine(result));
    return result.failed === 0 && result.passed > 0 && denied.length === 0 ? 0 : 1;
  } finally {
    if (target.server?.kind === "running") await target.server.stop();
    await redis.stop();
  }
}

function checkStatically(): Verdict {
  const state = runChecks(STATIC_CHECKS) ? "passed" : "failed";
  return { name: `static checks: ${STATIC_CHECKS.join(", ")}`, state };
}

/** Gives a `--changed` without a commit its default, which `parseArgs` cannot do. */
function nameReference(args: readonly string[]): string[] {
  return args.map((arg, index) => {
    const next = args[index + 1];
    const isBare = arg === "--changed" && (next === undefined || !isCommit(root, next));
    return isBare ? "--changed=HEAD" : arg;
  });
}

/** Returns the test files to run. An empty list means all, as for `npm test` itself; `undefined` means none. */
function touchedFiles(ref: string, parts: readonly string[]): readonly string[] | undefined {
  const changed = listChangedFiles(root, ref);
  const touched = findTouchedTests(root, changed);
  if (touched === undefined) return parts;
  const files = touched.filter(
    (file) => parts.length === 0 || parts.some((part) => file.includes(part)),
  );
  log(
    `${changed.length} files have changed since ${ref}; ${files.length} test files depend on them`,
  );
  return files.length === 0 ? undefined : files;
}

/** The servers of the tests; none while only unit tests are selected. */
interface Target {
  readonly redis: string;
  server?: RealApiServer;
}

/** Printed before the tests and, because their output scrolls it away, again after them. */
function report({ redis, server }: Target): void {
  if (server === undefined) return;
  const real = server.kind === "running" ? server.description : "no real one";
  console.log(`API servers: embedded, ${real}; Redis: ${redis}`);
  if (server.kind === "absent") {
    log(`********** NOT TESTED against a real kube-apiserver **********\n${server.reason}`);
  }
}

function isUsageError(error: unknown): error is Error {
  return (
    error instanceof Error && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS")
  );
}
