import { CASES } from "./cases/index.ts";
import type { Case } from "./case.ts";
import { findDifferences, type Difference } from "./differences.ts";
import { DEFINITIONS, definitions } from "./objects.ts";
import { runCase, type CaseResult } from "./run-case.ts";
import type { TestedServer } from "./servers.ts";

/** The result of a run. */
export interface Report {
  readonly servers: readonly { readonly kind: string; readonly version: string }[];
  readonly cases: number;
  /** Cases in which every server met the expectations and all responses were equal. */
  readonly passed: number;
  readonly differences: readonly Difference[];
  readonly failures: readonly Failure[];
}

interface Failure {
  readonly case: string;
  readonly server: string;
  readonly problem: string;
}

/** Runs every case, or those whose name matches, on every server. */
export async function runSuite(
  servers: readonly TestedServer[],
  matches: (name: string) => boolean = () => true,
): Promise<Report> {
  const runs = await Promise.all(servers.map(prepare));
  const failures: Failure[] = [];
  const differences: Difference[] = [];
  let passed = 0;
  const chosen = CASES.map((one, index) => ({ one, id: `c${index + 1}` })).filter(({ one }) =>
    matches(one.name),
  );
  const runOne = async ({ one, id }: { readonly one: Case; readonly id: string }) => {
    const tested = runs.filter(
      ({ server }) => one.only !== "embedded" || server.kind === "embedded",
    );
    const results = new Map(
      await Promise.all(
        tested.map(async ({ server, namespace }) => {
          return [server.kind, await runSafely(one, server, { id, namespace })] as const;
        }),
      ),
    );
    const found = [...results].flatMap(([server, { problems }]) =>
      problems.map((problem) => ({ case: one.name, server, problem })),
    );
    const different = compare(one.name, results.get("embedded"), results.get("kube-apiserver"));
    failures.push(...found);
    differences.push(...different);
    if (found.length + different.length === 0) passed++;
  };
  await Promise.all(chosen.filter(({ one }) => one.waits === true).map(runOne));
  for (const one of chosen.filter(({ one: { waits } }) => waits !== true)) await runOne(one);
  await Promise.all(runs.map(({ cleanUp }) => cleanUp()));
  return {
    servers: servers.map(({ kind, version }) => ({ kind, version })),
    cases: chosen.length,
    passed,
    differences,
    failures,
  };
}

/** An aborted case is a failure of that case, not of the run. */
async function runSafely(
  one: Case,
  server: TestedServer,
  names: { readonly id: string; readonly namespace: string },
): Promise<CaseResult> {
  try {
    return await runCase(one, server, names);
  } catch (error) {
    return {
      record: [],
      problems: [`aborted: ${error instanceof Error ? error.message : String(error)}`],
    };
  }
}

function compare(
  name: string,
  embedded: CaseResult | undefined,
  real: CaseResult | undefined,
): Difference[] {
  if (embedded === undefined || real === undefined) return [];
  const steps = Math.max(embedded.record.length, real.record.length);
  return Array.from({ length: steps }, (_, index) =>
    findDifferences(embedded.record[index], real.record[index], `step ${index + 1}`),
  )
    .flat()
    .map(({ path, left, right }) => ({ case: name, path, embedded: left, real: right }));
}

const NAMESPACE = "conformance";

/** Creates the definitions and the namespace for the cases. */
async function prepare(server: TestedServer): Promise<{
  readonly server: TestedServer;
  readonly namespace: string;
  readonly cleanUp: () => Promise<void>;
}> {
  const { api } = server;
  const post = (path: string, body: unknown) =>
    api.send({
      method: "POST",
      path,
      body: JSON.stringify(body),
      headers: { "Content-Type": "application/json" },
    });
  const namespace = NAMESPACE;
  await post("/api/v1/namespaces", {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: namespace },
  });
  for (const definition of DEFINITIONS) await post(definitions, definition);
  for (const definition of DEFINITIONS) await untilServed(server, definition, namespace);
  const remove = (path: string) => api.send({ method: "DELETE", path });
  return {
    server,
    namespace,
    cleanUp: async () => {
      const groups = ["/api/v1", "/apis/apps/v1", "/apis/coordination.k8s.io/v1"];
      const kinds = ["configmaps", "secrets", "events", "pods", "deployments", "leases"];
      for (const group of groups) {
        for (const kind of kinds) {
          await remove(`${group}/namespaces/${namespace}/${kind}?gracePeriodSeconds=0`);
        }
      }
      for (const { metadata } of DEFINITIONS) {
        await remove(`${definitions}/${String((metadata as { name: string }).name)}`);
      }
    },
  };
}

const SERVED_LIMIT_MS = 90_000;

/** Established does not mean served: the first create can fail for a second or two. */
async function untilServed(
  { api }: TestedServer,
  definition: unknown,
  namespace: string,
): Promise<void> {
  const { spec } = definition as {
    readonly spec: {
      readonly group: string;
      readonly names: { readonly plural: string; readonly kind: string };
      readonly versions: readonly { readonly name: string }[];
    };
  };
  const deadline = Date.now() + SERVED_LIMIT_MS;
  for (const { name: version } of spec.versions) {
    const path = `/apis/${spec.group}/${version}/namespaces/${namespace}/${spec.names.plural}?dryRun=All`;
    const apiVersion = `${spec.group}/${version}`;
    const body = JSON.stringify({
      apiVersion,
      kind: spec.names.kind,
      metadata: { name: "probe" },
      spec: { size: "s" },
    });
    for (;;) {
      const { code } = await api.send({
        method: "POST",
        path,
        body,
        headers: { "Content-Type": "application/json" },
      });
      if (code === 201) break;
      if (Date.now() > deadline) throw new Error(`${path} is not served: ${code}`);
      await new Promise((wake) => setTimeout(wake, 50));
    }
  }
}
