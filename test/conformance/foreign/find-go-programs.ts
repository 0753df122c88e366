import { fileURLToPath } from "node:url";
import { findGoProgram } from "../../../infra/host/go-program.js";

const folder = fileURLToPath(new URL("go-programs", import.meta.url));

/** The programs of `go-programs`, in the order of the output. */
export const GO_SCENARIOS: readonly string[] = [
  "informers",
  "clients",
  "patches",
  "applying",
  "subresource",
  "eviction",
  "watches",
  "election",
  "events",
  "controller",
];

/** Finds or, with `build`, builds the programs that use client-go and controller-runtime: a minute or two, once. */
export function findGoPrograms(options: {
  readonly log: (line: string) => void;
  readonly build: boolean;
}): ReturnType<typeof findGoProgram> {
  return findGoProgram({ name: "go-programs", folder }, options);
}
