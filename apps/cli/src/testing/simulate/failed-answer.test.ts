import { createInProcessServer } from "@konverge/apiserver";
import { expect, test } from "vitest";
import { canConflict, failedAnswer } from "./failed-answer.ts";
import { SimulatedRun } from "./simulated-run.ts";

const PATH = "/apis/apps/v1/namespaces/default/deployments/web";
const guard = [{ op: "replace", path: "/metadata/resourceVersion", value: "7" }];
const versioned = { metadata: { name: "web", resourceVersion: "7" } };
const call = (method: string, body: object) => ({
  method,
  path: PATH,
  headers: {},
  body: JSON.stringify(body),
});

test.each([
  ["GET", {}, false],
  ["POST", versioned, false],
  ["DELETE", {}, false],
  ["PATCH", { spec: {} }, false],
  ["PATCH", guard, true],
  ["PUT", versioned, true],
] as const)("%s of %j can conflict: %s", (method, body, expected) => {
  expect(canConflict(call(method, body))).toBe(expected);
});

test("a conflict waits for a call that can have one", () => {
  const run = new SimulatedRun(
    () => createInProcessServer(),
    [
      { kind: "fail", call: 1, answer: 409, landed: false },
      { kind: "fail", call: 2, answer: 500, landed: false },
    ],
  );
  const answers = [false, false, true, true].map((can) =>
    run.nextCall({ canConflict: can }).faults.map((fault) => "answer" in fault && fault.answer),
  );
  expect(answers).toEqual([[], [500], [409], []]);
});

test("a conflict has the text of the server", () => {
  expect(JSON.parse(failedAnswer(409, call("PUT", versioned))!.body)).toEqual({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    code: 409,
    reason: "Conflict",
    message:
      'Operation cannot be fulfilled on deployments.apps "web": the object has been modified; please apply your changes to the latest version and try again',
    details: { name: "web", group: "apps", kind: "deployments" },
  });
});

test("a rejection for too many requests is text, as from API Priority and Fairness", () => {
  expect(failedAnswer(429, call("GET", {}))).toEqual({
    status: 429,
    headers: { "content-type": "text/plain; charset=utf-8", "retry-after": "1" },
    body: "Too many requests, please try again later.\n",
  });
});
