import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { parseYamlText } from "./decode-body.ts";

test("unknown tags of YAML cause no warning of the process", async () => {
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on("warning", note);
  onTestFinished(() => void process.off("warning", note));
  expect(parseYamlText("a: !odd x")).toEqual({ a: "x" });
  await setImmediate();
  expect(warnings).toEqual([]);
});
