import {
  findLabelIssue,
  isEncoded,
  KonvergeError,
  MAX_LABELS,
  type RunLabels,
} from "@konverge/core";
import { checkJson } from "./define/check-json.ts";
import { parseWith } from "./define/parse-with.ts";
import type { StartedWorkflow } from "./workflows.ts";

/** @throws KonvergeError `invalid_request`, `invalid_result` */
export function checkInput(workflow: StartedWorkflow<unknown>, input: unknown): void {
  const what = `the input of "${workflow.name}"`;
  checkJson(input, what);
  if (workflow.input !== undefined && !isEncoded(input)) parseWith(workflow.input, input, what);
}

/** @throws KonvergeError `invalid_request` with each invalid label */
export function checkLabels(labels: RunLabels): void {
  const entries = Object.entries(labels);
  const issues = entries.flatMap(([name, value]) => {
    const detail = findLabelIssue(name, value);
    return detail === undefined ? [] : [{ pointer: `/labels/${name}`, detail }];
  });
  if (entries.length > MAX_LABELS) {
    const detail = `a run has at most ${MAX_LABELS} labels (got ${entries.length})`;
    issues.push({ pointer: "/labels", detail });
  }
  const [first] = issues;
  if (first !== undefined) throw new KonvergeError("invalid_request", first.detail, { issues });
}
