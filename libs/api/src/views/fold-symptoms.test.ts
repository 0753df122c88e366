import type { OverviewProblem } from "@konverge/contracts";
import { expect, test } from "vitest";
import { foldSymptoms } from "./fold-symptoms.ts";

const ago = (minutes: number) => Date.now() - minutes * 60_000;
const at = (minutes: number) => new Date(ago(minutes)).toISOString();

/** An outage since 10 minutes, and a controller that fails. */
const problems = (failingMinutes: number): OverviewProblem[] => [
  { code: "api_server_outage", level: "error", message: "API server is failing", since: at(10) },
  {
    code: "failing",
    level: "warning",
    message: "issuer: 9 of 10 attempts failed in 5 minutes",
    since: at(failingMinutes),
    controller: "issuer",
  },
];

const errorsOf = (codes: readonly string[], minutes = 1) =>
  new Map([
    ["issuer", { errors: codes.map((code) => ({ code, text: code, atMs: ago(minutes) })) }],
  ]);
const own = ["handler_failed", "handler_failed", "handler_failed"];

test.each([
  ["errors of the outage", 9, errorsOf(["kube_unreachable", "kube_timeout", "deferred"])],
  ["error responses of the server", 9, errorsOf(["kube_api.ServiceUnavailable", "kube_api."])],
  ["errors of the outage after older failures", 30, errorsOf(["kube_unreachable"])],
  ["no known error, since the outage", 10, errorsOf([])],
  ["own errors that are not recent", 9, errorsOf(own, 7)],
  ["a single own error among those of the outage", 9, errorsOf(["handler_failed", "kube_timeout"])],
])("a controller with %s is a symptom", (_, minutes, troubles) => {
  const folded = foldSymptoms(problems(minutes), troubles);
  expect(folded).toMatchObject([
    { code: "api_server_outage", symptoms: [{ code: "failing", controller: "issuer" }] },
  ]);
});

test.each([
  ["its own errors", 9, errorsOf(own)],
  ["its own errors since before the outage", 30, errorsOf(own)],
  ["its own errors besides those of the outage", 9, errorsOf(["kube_timeout", ...own])],
  ["no known error, since before the outage", 30, errorsOf([])],
  ["rejections of the server", 9, errorsOf(own.map(() => "kube_api.Forbidden"))],
])("a controller that fails with %s is a problem of its own", (_, minutes, troubles) => {
  const before = problems(minutes);
  expect(foldSymptoms(before, troubles)).toEqual(before);
});

test.each([
  ["of its dead letters", ["no domain", "no answer"], true],
  ["of its dead letters and others", ["no domain", "connection refused"], false],
  ["that are not known", [], false],
])("a controller whose errors are those %s fails as their symptom only then", (_, texts, is) => {
  const [, failing] = problems(9);
  const dead: OverviewProblem = {
    code: "dead_letters",
    level: "error",
    message: "issuer: 2 dead-lettered keys",
    controller: "issuer",
  };
  const other = { ...dead, controller: "other" };
  const deadLetters = ["no domain of the shop", "no answer"].map((error) => ({
    since: at(1),
    error,
  }));
  const errors = texts.map((text) => ({ code: "retry", text, atMs: ago(1) }));
  const folded = foldSymptoms(
    [other, dead, ...(failing === undefined ? [] : [failing])],
    new Map([["issuer", { errors, deadLetters }]]),
  );
  expect(folded.map(({ code, symptoms = [] }) => [code, symptoms.length])).toEqual(
    is
      ? [
          ["dead_letters", 0],
          ["dead_letters", 1],
        ]
      : [
          ["dead_letters", 0],
          ["dead_letters", 0],
          ["failing", 0],
        ],
  );
});
