import { Option } from "commander";
import { parseDuration } from "./parse-duration.ts";

/** The longest wait of a command, in ms. */
export function timeoutOption(): Option {
  return new Option("--timeout <duration>", "Longest time to wait")
    .argParser(parseDuration)
    .default(60_000, "60s");
}
