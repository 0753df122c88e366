import type { ApiObject } from "@konverge/core";
import { ConfigMap, Deployment } from "@konverge/kube/kinds";
import type { VerbFleet } from "./verb-fleet.ts";
import {
  counterOf,
  COUNTERS,
  emptyState,
  MAKER,
  NAMESPACE,
  predictInto,
  TEST,
  type VerbProgram,
} from "./verb-programs.ts";
import { WIDGETS } from "./verb-waits.ts";

/** Each running step leaves one mark; at the end only the last mutations' marks remain. */
const MAX_MARKS = 60;

/** Compares runs and cluster with the prediction (I5). `late`: objects that exist although they were undone; `bodies`: as predicted. */
export async function findWrongState(
  { plane, workflows, test }: VerbFleet,
  programs: readonly { readonly id: string; readonly program: VerbProgram }[],
): Promise<{ readonly wrong: string[]; readonly late: string[]; readonly bodies: number }> {
  const wrong: string[] = [];
  const late: string[] = [];
  const state = emptyState();
  for (const { id, program } of programs) {
    const sum = predictInto(state, program, id);
    const run = await workflows.get({ workflow: "verbs", id });
    const got = program.fails ? run?.error?.message : run?.result;
    const wanted = program.fails ? `as planned: ${sum}` : sum;
    if (got !== wanted) wrong.push(`${id}: ${String(got)} instead of ${wanted}`);
  }
  for (let counter = 0; counter < COUNTERS; counter += 1) {
    const { name } = counterOf(test, counter);
    const { data, metadata } = await plane.admin.get(ConfigMap, { namespace: NAMESPACE, name });
    const got = `${data?.["sum"]} of ${data?.["count"]}`;
    const wanted = `${state.sums[counter]} of ${state.counts[counter]}`;
    if (got !== wanted) wrong.push(`counter ${counter}: ${got} instead of ${wanted}`);
    const marks = Object.keys(metadata.annotations ?? {}).length;
    if (marks > MAX_MARKS) wrong.push(`counter ${counter} has ${marks} marks`);
  }
  const found = new Map<string, string>();
  const options = { namespace: NAMESPACE, labelSelector: `${TEST}=${test}` };
  const add = (object: ApiObject, content: string) => {
    const maker = object.metadata.labels?.[MAKER] ?? "";
    if (found.has(maker)) wrong.push(`${maker} has created several objects`);
    found.set(maker, content);
  };
  for (const one of (await plane.admin.list(ConfigMap, options)).items) {
    add(one, one.data?.["content"] ?? "");
  }
  for (const one of (await plane.admin.list(Deployment, options)).items) {
    add(one, `${one.spec?.replicas} replicas`);
  }
  for (const one of (await plane.admin.list(WIDGETS, options)).items) {
    add(one, one.spec?.what ?? "");
  }
  for (const [maker, content] of state.objects) {
    const got = found.get(maker);
    if (got !== content) wrong.push(`${maker}: ${got ?? "nothing"} instead of ${content}`);
    found.delete(maker);
  }
  for (const maker of found.keys()) {
    if (state.gone.has(maker)) late.push(maker);
    else wrong.push(`${maker} was not planned`);
  }
  return { wrong, late, bodies: state.bodies };
}
