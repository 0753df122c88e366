import { Option } from "commander";
import { parseDuration } from "./parse-duration.ts";

/** How long a command with `--wait` waits, in ms. */
export function timeoutOption(): Option {
  return new Option("--timeout <duration>", "of the wait")
    .argParser(parseDuration)
    .default(60_000, "60s");
}
