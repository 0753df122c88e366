import { expect, test } from "vitest";
import { nameCalls } from "./program-name.ts";

const HELP = `Usage: konverge status [options]

Durable konverge texts

Examples:
  konverge status --watch
  bash   konverge completion bash > konverge
`;

test.each(["/usr/bin/kubectl-konverge", "kubectl-konverge.js"])(
  "%s names calls by the name of the plugin",
  (program) => {
    expect(nameCalls(HELP, program)).toBe(`Usage: kubectl konverge status [options]

Durable konverge texts

Examples:
  kubectl konverge status --watch
  bash   kubectl konverge completion bash > konverge
`);
  },
);

test.each(["/usr/bin/konverge", "/app/dist/main.js", ""])("%s keeps the texts", (program) => {
  expect(nameCalls(HELP, program)).toBe(HELP);
});
