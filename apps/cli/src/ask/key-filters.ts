import type { KeyQuery } from "@konverge/client";
import { KEY_PHASES, type KeyPhase } from "@konverge/core";
import type { Command } from "commander";
import { pick, type PageFlags } from "./show-pages.ts";

/** The filters for lists of keys. */
export interface KeyFlags extends PageFlags {
  readonly controller?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly phase?: KeyPhase;
}

/** The options behind the fields of such a query. */
export const KEY_OPTIONS = {
  options: { "/name": "--name", "/controller": "--controller" },
} as const;

export function withNameFilters(command: Command): Command {
  return command
    .option("--controller <name>", "Controller name (default: all)")
    .option("-n, --namespace <name>", "Namespace; _ for cluster-scoped objects (default: all)")
    .option("--name <part>", "Substring of object names");
}

export function withKeyFilters(command: Command): Command {
  return withNameFilters(command).option("--phase <phase>", `Phase: ${KEY_PHASES.join(", ")}`);
}

export function keyQueryOf(flags: KeyFlags, cluster: string): KeyQuery {
  const filters = pick(flags, ["controller", "namespace", "name", "phase", "cursor"]);
  return { cluster, limit: Number(flags.limit), ...filters };
}
