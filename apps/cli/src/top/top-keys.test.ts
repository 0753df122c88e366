import { expect, test } from "vitest";
import { parseKeys } from "./top-keys.ts";

test("splits terminal input into keys, and skips unknown sequences", () => {
  const named = (name: string) => ({ kind: "named", name });
  const char = (text: string) => ({ kind: "char", char: text });
  expect(parseKeys("j\u001b[A\u001bOB\r")).toEqual([
    char("j"),
    named("up"),
    named("down"),
    named("enter"),
  ]);
  expect(parseKeys("\u001b[5~\u001b[99;5u\u001b[F")).toEqual([named("pageUp"), named("end")]);
  expect(parseKeys("\u001b")).toEqual([named("escape")]);
  expect(parseKeys("é/\u0003\u0001")).toEqual([char("é"), char("/"), named("interrupt")]);
});
