import { defined } from "@konverge/core";
import type { Expectation, SendStep } from "./case.ts";
import { APPLY, JSON_PATCH, MERGE, STRATEGIC } from "./objects.ts";

/** A code alone, or more of the response. */
type Expected = number | Expectation;
type Rest = Omit<SendStep, "send" | "expect">;

/** Returns a function that makes steps of one verb: its path, the expected response, and what else the step has. */
const sender =
  (verb: string) =>
  (path: string, expected: Expected, rest: Rest = {}): SendStep => ({
    send: `${verb} ${path}`,
    expect: typeof expected === "number" ? { code: expected } : expected,
    ...rest,
  });
/** As {@link sender}, for requests with a body. `type` is its content type. */
const bodySender = (verb: string, type?: string) => {
  const send = sender(verb);
  return (
    path: string,
    expected: Expected,
    body: NonNullable<SendStep["body"]>,
    rest: Rest = {},
  ): SendStep => send(path, expected, { ...defined({ type }), body, ...rest });
};

export const get = sender("GET");
export const remove = sender("DELETE");
export const post = bodySender("POST");
export const put = bodySender("PUT");
export const mergePatch = bodySender("PATCH", MERGE);
export const jsonPatch = bodySender("PATCH", JSON_PATCH);
export const strategicPatch = bodySender("PATCH", STRATEGIC);
export const applyPatch = bodySender("PATCH", APPLY);
